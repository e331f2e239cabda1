"""How far each method cools or heats the logits."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coolhead.figures.style import AFTER, BASELINE, GREY, INK, canvas, rows_height
from coolhead.figures.tables import of_method, read_frame

MIDDLE_HALF = 0.25, 0.75
MOST = 0.05, 0.95


def temperatures(
    quantiles: Any, ax: Any = None, *, labels: Mapping[str, str] | None = None
) -> Any:
    """The spread of T(x) of every method: median, middle half, and 90 per cent.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> spread = pl.DataFrame(
    ...     {"method": ["ensemble"] * 5, "value": [1.1, 1.3, 1.5, 1.9, 2.6]}
    ... )
    >>> ax = ch.figures.temperatures(spread)
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    frame = read_frame(quantiles, "temperature")
    names = [name for name in dict.fromkeys(frame["method"]) if name != BASELINE][::-1]
    with canvas(ax, (4.6, rows_height(len(names)))) as ax:
        ax.set_xscale("log")
        # First, while the axis has a width: a constant temperature alone has none.
        ax.axvline(1, color=GREY, lw=0.8, ls="--")
        for row, name in enumerate(names):
            own = of_method(frame, name)["value"].to_numpy()
            ax.hlines(row, *np.quantile(own, MOST), AFTER, lw=1.2, alpha=0.5)
            ax.hlines(row, *np.quantile(own, MIDDLE_HALF), AFTER, lw=5, alpha=0.5)
            ax.plot(np.median(own), row, "|", color=INK, ms=9, mew=1.6)
        low, high = ax.get_xlim()
        # Powers of ten alone would leave a narrow range without a number.
        narrow = high < 10 * low
        locator = MaxNLocator(6) if narrow else LogLocator(subs=(1, 2, 5))
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_yticks(range(len(names)), [(labels or {}).get(n, n) for n in names])
        ax.set_ylim(-0.6, max(len(names), 1) - 0.4)
        ax.set_xlabel("temperature (log scale)")
    return ax
