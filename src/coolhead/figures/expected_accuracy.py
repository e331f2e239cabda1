"""What was expected of domains nobody had labels of, beside what came true."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import polars as pl

from coolhead.figures.style import GREY, LINES, canvas
from coolhead.figures.tables import of_method, read_frame


def expected_accuracy(
    arrival: Any,
    ax: Any = None,
    *,
    methods: Sequence[str],
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Expected accuracy with its interval against the true one, a point per split.

    arrival : the table ``arrival``; of several draws of labels the first is drawn.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> arrival = pl.DataFrame(
    ...     {
    ...         "split": ["art > photo", "art > sketch"],
    ...         "method": "auto+batch",
    ...         "draw": 0,
    ...         "truth": [0.70, 0.55],
    ...         "expected": [0.66, 0.61],
    ...         "low": [0.56, 0.50],
    ...         "high": [0.75, 0.72],
    ...     }
    ... )
    >>> ax = ch.figures.expected_accuracy(arrival, methods=["auto+batch"])
    """
    frame = read_frame(arrival, "arrival").filter(
        pl.col("draw") == 0, pl.col("expected").is_not_null()
    )
    with canvas(ax, (4.6, 4.0)) as ax:
        ends = []
        for name, (colour, _, marker, _) in zip(methods, cycle(LINES)):
            own = of_method(frame, name).select("truth", "expected", "low", "high")
            truth, middle, low, high = 100 * own.to_numpy().T
            missed = (truth < low) | (truth > high)
            ax.vlines(
                truth, low, high, colour, lw=np.where(missed, 2.2, 0.8), alpha=0.6
            )
            text = (labels or {}).get(name, name)
            look = {"color": colour, "ls": "", "ms": 4, "label": text}
            ax.plot(truth, middle, marker=marker, mfc="white", **look)
            ends += [truth.min(), low.min(), truth.max(), high.max()]
        limits = max(min(ends) - 3, 0), min(max(ends) + 3, 100)
        ax.axline((limits[0], limits[0]), slope=1, color=GREY, lw=0.8, ls="--")
        ax.set(xlim=limits, ylim=limits, xlabel="true accuracy (%)")
        ax.set_ylabel("expected accuracy (%), 90 % interval")
        ax.legend(loc="upper left")
    return ax
