"""Archives of simulated logits at the sizes of the paper's two data sets.

A classifier is more over-confident the farther a domain lies from its sources; features
hold the class, the domain and noise, so that every method has something to find.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coolhead.io.archive import DomainArchive

OFFICE_HOME = {"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357}
DOMAINNET_TEST = {
    "quickdraw": 51750,
    "infograph": 15582,
    "sketch": 20916,
    "clipart": 14604,
    "painting": 21850,
    "real": 52041,
}
N_FEATURES = 512


def simulate_archive(
    sizes: dict[str, int], n_classes: int, source: Sequence[str], random_state: int
) -> DomainArchive:
    """Logits (float32) and features (float16) of one classifier on all domains."""
    rng = np.random.default_rng(random_state)
    # The same world for every classifier: only the logits depend on the source.
    world = np.random.default_rng(12345)
    names = list(sizes)
    codes = np.repeat(np.arange(len(names)), list(sizes.values()))
    labels = world.integers(n_classes, size=len(codes))
    class_means = world.standard_normal((n_classes, N_FEATURES)).astype(np.float32)
    domain_means = world.standard_normal((len(names), N_FEATURES)).astype(np.float32)
    features = world.standard_normal((len(codes), N_FEATURES), dtype=np.float32)
    features += class_means[labels] + 0.3 * domain_means[codes]
    logits = rng.standard_normal((len(codes), n_classes), dtype=np.float32)
    known = np.isin(names, source)
    skill = np.where(known, 3.2, world.uniform(1.5, 3.0, len(names)))[codes]
    sharpness = np.where(known, 1.1, world.uniform(1.2, 2.5, len(names)))[codes]
    logits[np.arange(len(codes)), labels] += skill
    logits *= sharpness[:, None].astype(np.float32)
    return DomainArchive(
        logits,
        features.astype(np.float16),
        labels,
        codes,
        domain_names=names,
        metadata={"simulated": True},
    )


def write_archives(
    folder: Path, sizes: dict[str, int], n_classes: int, sources: list[tuple[str, ...]]
) -> None:
    """One file per source set, named as the protocol's pattern wants it."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, source in enumerate(sources):
        path = folder / f"source={'+'.join(source)}.safetensors"
        if not path.is_file():
            simulate_archive(sizes, n_classes, source, number).save(path)
