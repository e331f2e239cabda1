"""Simulated formations: a stand-in for data that was never published."""

from coolhead.datasets.formations.simulate import (
    MAP_NAMES,
    formation_images,
    load_formations,
    write_formations,
)

__all__ = ["MAP_NAMES", "formation_images", "load_formations", "write_formations"]
