"""How sure the classifier is, when right and when wrong."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from coolhead.figures.style import AFTER, BASELINE, BEFORE, PAPER, canvas
from coolhead.figures.tables import of_method, read_frame


def confidence_histogram(
    bins: Any,
    ax: Any = None,
    *,
    method: str = BASELINE,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """How often each confidence occurs, right and wrong answers apart.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> bins = pl.DataFrame(
    ...     {
    ...         "method": "uncalibrated",
    ...         "low": [0.0, 0.5],
    ...         "high": [0.5, 1.0],
    ...         "n": [30, 70],
    ...         "n_correct": [12, 50],
    ...     }
    ... )
    >>> ax = ch.figures.confidence_histogram(bins)
    """
    frame = of_method(read_frame(bins, "histogram"), method)
    sums = frame.group_by("low", "high").agg(pl.col("n", "n_correct").sum()).sort("low")
    share = 100 / max(int(sums["n"].sum()), 1)
    right, total = (share * sums[name].to_numpy() for name in ("n_correct", "n"))
    low, width = sums["low"].to_numpy(), (sums["high"] - sums["low"]).to_numpy()
    look = {"fc": BEFORE, "ec": PAPER, "lw": 0, "hatch": "///", "label": "wrong"}
    with canvas(ax, (4.6, 2.4)) as ax:
        ax.bar(low, right, width, align="edge", color=AFTER, label="right")
        ax.bar(low, total - right, width, right, align="edge", **look)
        ax.set(xlim=(0, 1), xlabel="confidence", ylabel="rows (%)")
        ax.set_title((labels or {}).get(method, method))
        # Room for the legend above the highest bar.
        ax.set_ylim(0, 1.25 * max(total.max(initial=0), 1e-9))
        ax.legend(loc="upper left", ncols=2)
    return ax
