"""Where the units of a formation stand."""

import numpy as np

FORMATIONS = ("line", "column", "wedge", "circle", "box", "scattered")


def place_units(formation: str, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return places (m, 2) in the square [-1, 1]² and the heading in radians.

    A formation of 8 to 14 units is drawn, some of them missing, with jitter, rotation
    (up to 25°, so that a line never turns into a column), scale and displacement.
    """
    n_units = int(rng.integers(8, 15))
    places = formation_shape(formation, n_units, rng)
    places = places[rng.random(n_units) > 0.08]
    places = places + rng.normal(0, 0.06, places.shape)
    heading = np.deg2rad(rng.uniform(-25, 25))
    turn = np.array(
        [[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]]
    )
    scale = rng.uniform(0.45, 0.75)
    return scale * places @ turn.T + rng.uniform(-0.2, 0.2, 2), float(heading)


def formation_shape(
    formation: str, n_units: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the (n_units, 2) ideal places, x to the right and y downwards."""
    along = np.linspace(-1, 1, n_units)
    if formation == "line":
        return np.stack([along, np.zeros(n_units)], axis=1)
    if formation == "column":
        return np.stack([np.zeros(n_units), along], axis=1)
    if formation == "wedge":
        return np.stack([along, 1.4 * np.abs(along) - 0.7], axis=1)
    if formation == "circle":
        angle = 2 * np.pi * np.arange(n_units) / n_units
        return 0.85 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if formation == "box":
        return box_outline(np.arange(n_units) / n_units)
    if formation == "scattered":
        return rng.uniform(-1, 1, (n_units, 2))
    raise ValueError(f"formation must be one of {FORMATIONS}; found {formation!r}")


def box_outline(share: np.ndarray) -> np.ndarray:
    """Return points on the outline of a square, by share of the way around."""
    side, rest = np.divmod(4 * share, 1)
    start = 2 * rest - 1
    x = np.select([side == 0, side == 1, side == 2], [start, 1, -start], -1)
    y = np.select([side == 0, side == 1, side == 2], [-1, start, 1], -start)
    return 0.8 * np.stack([x, y], axis=1)
