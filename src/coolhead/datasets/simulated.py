"""Predictions drawn so that the best temperature of every domain is known."""

from collections.abc import Sequence

import numpy as np

from coolhead.io.archive import DomainArchive


def simulate_domains(
    temperatures: Sequence[float] = (1.0, 1.5, 2.0, 3.0),
    *,
    n_rows: int = 300,
    n_classes: int = 3,
    n_features: int = 4,
    random_state: int = 0,
) -> DomainArchive:
    """Predictions in several sites, each with a best temperature that is known.

    Labels are drawn from softmax(z), and the classifier says T·z, so that dividing by
    T is exactly right. The features of each site lie two standard deviations beyond
    those of the one before.

    Parameters
    ----------
    temperatures : sequence of float
        Best temperature of each site, greater than zero; the sites are called
        "site-0", "site-1", ...
    n_rows : int
        Number of rows of each site.
    n_classes, n_features : int
        Number of columns of the logits and of the features.
    random_state : int, default=0
        The same seed gives the same rows.

    Returns
    -------
    DomainArchive
        Logits, features, labels and domains.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> fit = ch.fit_temperature(data.logits, data.labels, groups=data.domains)
    >>> fit.temperature.round(1)
    array([1.1, 1.8])
    """
    wanted = np.asarray(temperatures, float)
    if wanted.ndim != 1 or not len(wanted) or not np.all(wanted > 0):
        raise ValueError(
            f"temperatures is {temperatures!r}; wanted one number above zero per site"
        )
    rng = np.random.default_rng(random_state)
    site = np.repeat(np.arange(len(wanted)), n_rows)
    truth = 2 * rng.normal(size=(len(site), n_classes))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    features = rng.normal(size=(len(site), n_features)) + 2.0 * site[:, None]
    return DomainArchive(
        logits=wanted[site][:, None] * truth,
        features=features,
        labels=labels,
        domains=site,
        domain_names=[f"site-{number}" for number in range(len(wanted))],
    )
