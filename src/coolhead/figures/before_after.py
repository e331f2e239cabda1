"""What calibration changes, split by split."""

from typing import Any

import numpy as np

from coolhead.figures.style import AFTER, BASELINE, BEFORE, canvas, rows_height, shorten
from coolhead.figures.tables import wide_means


def before_after(
    results: Any, ax: Any = None, *, method: str, baseline: str = BASELINE
) -> Any:
    """ECE of every split before and after one method, the worst split on top.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> results = pl.DataFrame(
    ...     {
    ...         "split": ["art > photo", "art > sketch"] * 2,
    ...         "method": ["uncalibrated"] * 2 + ["set-level"] * 2,
    ...         "metric": "ece_mean",
    ...         "value": [0.20, 0.30, 0.05, 0.12],
    ...     }
    ... )
    >>> ax = ch.figures.before_after(results, method="set-level")   # or a run's folder
    """
    wide = wide_means(results, "split", [baseline, method]).drop_nulls().sort(baseline)
    before, after = wide[baseline].to_numpy(), wide[method].to_numpy()
    rows, worse = np.arange(len(wide)), after > before
    with canvas(ax, (4.6, rows_height(len(wide)))) as ax:
        for chosen, colour in ((~worse, AFTER), (worse, BEFORE)):
            ends = rows[chosen], before[chosen], after[chosen]
            ax.hlines(*ends, colour, lw=2, alpha=0.45)
        ax.scatter(before, rows, s=26, facecolor="white", edgecolor=BEFORE, zorder=3)
        ax.scatter(after, rows, s=26, color=AFTER, zorder=4)
        ax.set_yticks(rows, map(shorten, wide["split"]))
        ax.set_xlim(left=0)
        ax.set_ylim(-0.6, len(wide) - 0.4)
        ax.set_xlabel("ECE (%): ○ before, ● after")
        ax.grid(axis="x")
    return ax
