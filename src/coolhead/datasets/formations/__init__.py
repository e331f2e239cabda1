"""Simulated formations: a stand-in for data that was never published."""

from coolhead.datasets.formations.shapes import FORMATIONS
from coolhead.datasets.formations.simulate import (
    MAP_NAMES,
    NOTE,
    contrast_features,
    formation_image,
    formation_images,
    write_formations,
)

__all__ = [
    "FORMATIONS",
    "MAP_NAMES",
    "NOTE",
    "contrast_features",
    "formation_image",
    "formation_images",
    "write_formations",
]
