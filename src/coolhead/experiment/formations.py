"""Features of the simulated formations, drawn once and kept."""

from os import PathLike
from pathlib import Path

import numpy as np

from coolhead.archive import DomainArchive, load_archive
from coolhead.datasets.formations.shapes import FORMATIONS
from coolhead.datasets.formations.simulate import (
    MAP_NAMES,
    NOTE,
    contrast_features,
    formation_images,
)

VERSION = 1


def load_formations(
    n_images: int = 600,
    backbone: str = "efficientnet-lite0",
    *,
    random_state: int = 0,
    cache: str | PathLike | None = None,
) -> DomainArchive:
    """Return features and labels of simulated formations.

    Parameters
    ----------
    n_images : int
        Images per map.
    backbone : str
        A network's name, or ``"contrast"`` for plain features without torch.
    cache : folder, optional
        Where the archive is kept; asked for again, it is read and not drawn.
    """
    name = f"formations-v{VERSION}-{n_images}-{backbone}-{random_state}.safetensors"
    place = None if cache is None else Path(cache) / name.replace(":", "_")
    if place is not None and place.exists():
        return load_archive(place)
    images, labels, maps = formation_images(n_images, random_state=random_state)
    archive = DomainArchive(
        features=_features(images, backbone),
        labels=labels,
        domains=maps,
        domain_names=MAP_NAMES,
        class_names=FORMATIONS,
        metadata={
            "dataset": "formations",
            "note": NOTE,
            "backbone": backbone,
            "n_images_per_map": n_images,
            "random_state": random_state,
        },
    )
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        archive.save(place)
    return archive


def _features(images: np.ndarray, backbone: str) -> np.ndarray:
    if backbone == "contrast":
        return contrast_features(images)
    from coolhead.torch.arrays import array_features

    # Scenes have no margin to cut off, and half the usual side costs a quarter.
    return array_features(images, backbone, size=112, crop=1.0)
