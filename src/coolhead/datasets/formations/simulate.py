"""Simulated formations of units on ten maps.

A simulated stand-in for the paper's StarCraft2 experiment, whose data was never
published: six formations (the classes) on ten maps (the domains) that differ in
terrain, palette, clutter, unit sprites and light. Nothing here comes from the game,
and numbers obtained on it are not numbers of the paper.
"""

import numpy as np

from coolhead.datasets.formations.drawing import draw_scene
from coolhead.datasets.formations.maps import MAPS
from coolhead.datasets.formations.shapes import FORMATIONS, place_units

NOTE = "simulated stand-in for the paper's StarCraft2 maps, not data of the game"
MAP_NAMES = tuple(f"map {number}" for number in range(len(MAPS)))


def formation_images(
    n_images: int, *, size: int = 96, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw formations on every map.

    Parameters
    ----------
    n_images : int
        Images per map; the six classes take turns.
    size : int
        Side of an image in pixels.

    Returns
    -------
    images : (10 · n_images, size, size, 3) uint8
    labels : (10 · n_images,) int, indices into ``FORMATIONS``
    maps : (10 · n_images,) int, 0 … 9
    """
    if n_images < 1 or size < 16:
        raise ValueError(
            f"n_images must be >= 1 and size >= 16; found {n_images}, {size}"
        )
    maps = np.repeat(np.arange(len(MAPS)), n_images)
    labels = np.tile(np.arange(n_images) % len(FORMATIONS), len(MAPS))
    images = np.empty((len(maps), size, size, 3), np.uint8)
    for row, code in enumerate(maps):
        images[row] = formation_image(
            int(code), row % n_images, size=size, random_state=random_state
        )
    return images, labels, maps


def formation_image(
    code: int, number: int, *, size: int = 96, random_state: int = 0
) -> np.ndarray:
    """Image `number` of map `code`, (size, size, 3) uint8."""
    # A generator per image: image i of a map is the same however many are asked.
    rng = np.random.default_rng([random_state, code, number])
    units, heading = place_units(FORMATIONS[number % len(FORMATIONS)], rng)
    return draw_scene(MAPS[code], units, heading, size, rng)


def contrast_features(images: np.ndarray, n_cells: int = 12) -> np.ndarray:
    """Return (n, n_cells²) float32: how much each cell departs from its surroundings.

    Parameters
    ----------
    images : (n, s, s, 3) uint8
    """
    grey = images.mean(axis=3, dtype=np.float32)
    side = grey.shape[1] // n_cells
    cut = grey[:, : side * n_cells, : side * n_cells]
    cells = cut.reshape(len(grey), n_cells, side, n_cells, side)
    spread = cells.std(axis=(2, 4)).reshape(len(grey), -1)
    return spread / (spread.mean(axis=1, keepdims=True) + 1e-6)
