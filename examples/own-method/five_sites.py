"""Your own data: five sites with increasing shift."""

import numpy as np

import coolhead as ch


def five_sites() -> ch.DomainArchive:
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(5), 80)
    features = rng.normal(size=(400, 6)) + site[:, None] / 4
    labels = (features[:, :3] + rng.gumbel(size=(400, 3))).argmax(axis=1)
    names = [f"site{i}" for i in range(5)]
    return ch.DomainArchive(None, features, labels, site, domain_names=names)
