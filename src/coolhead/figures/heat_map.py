"""The heat map: every split and method, where calibration helps and where it harms."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coolhead.figures.style import BASELINE, CHANGES, GREY, PAPER, canvas, shorten
from coolhead.figures.tables import wide_means

STEPS = 5
# Changes below this many points are about equal.
EQUAL = 0.05


def heat_map(
    results: Any,
    ax: Any = None,
    *,
    metric: str = "ece_mean",
    methods: Sequence[str] | None = None,
    baseline: str = BASELINE,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """An error of every split and method in per cent; the colour is its change.

    Blue: lower than the baseline; orange with ▲: higher, calibration did harm.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> results = pl.DataFrame(
    ...     {
    ...         "split": ["art > photo", "art > sketch"] * 2,
    ...         "method": ["uncalibrated"] * 2 + ["set-level"] * 2,
    ...         "metric": "ece_mean",
    ...         "value": [0.20, 0.30, 0.05, 0.32],
    ...     }
    ... )
    >>> ax = ch.figures.heat_map(results)
    """
    from matplotlib.patches import Rectangle

    wide = wide_means(results, "split", methods, metric)
    names = wide.columns[1:]
    values = wide.select(names).to_numpy().astype(float)
    steps = change_steps(changes(values, names, baseline))
    with canvas(ax, (1.6 + 0.45 * len(names), 1.3 + 0.22 * len(wide))) as ax:
        for (row, column), step in np.ndenumerate(steps):
            ground, ink = CHANGES.get(step, (PAPER, GREY))
            corner = column - 0.48, row - 0.46
            ax.add_patch(Rectangle(corner, 0.96, 0.92, color=ground, lw=0))
            text = cell_text(float(values[row, column]), step)
            bold = {"weight": "bold"} if step.startswith("w") else {}
            middle = {"ha": "center", "va": "center", "fontsize": 7}
            ax.text(column, row, text, color=ink, **middle, **bold)
        heads = [(labels or {}).get(name, name) for name in names]
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(names)), heads, **turned)
        ax.set_yticks(range(len(wide)), map(shorten, wide["split"]))
        ax.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(wide) - 0.5, -0.5))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    return ax


def changes(values: np.ndarray, names: Sequence[str], baseline: str) -> np.ndarray:
    """Values less those of the baseline's column; NaN there and where unknown."""
    if baseline not in names:
        return np.full_like(values, np.nan)
    column = list(names).index(baseline)
    found = values - values[:, [column]]
    found[:, column] = np.nan
    return found


def change_steps(found: np.ndarray) -> np.ndarray:
    """Steps of colour: b1…b5 better, w1…w5 worse, z about equal, "" not comparable."""
    sizes = np.abs(found[~np.isnan(found)])
    # One outlier must not turn all other cells pale.
    largest = np.quantile(sizes, 0.95) if sizes.size else 0.0
    return np.vectorize(lambda change: change_step(change, largest), otypes=[object])(
        found
    )


def change_step(change: float, largest: float) -> str:
    """The step of one change, where `largest` and above have the deepest colour."""
    if np.isnan(change):
        return ""
    if largest <= 0 or abs(change) < EQUAL:
        return "z"
    size = min(STEPS, 1 + int(STEPS * abs(change) / largest))
    return f"{'w' if change > 0 else 'b'}{size}"


def cell_text(value: float, step: str) -> str:
    """The number with a mark of harm, or a dash."""
    if np.isnan(value):
        return "–"
    return f"{value:.1f}{'▲' if step.startswith('w') else ''}"
