"""What confidence is good for: answering only the surest rows."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import polars as pl

from coolhead.figures.style import LINES, canvas
from coolhead.figures.tables import of_method, read_frame


def selective_prediction(
    curves: Any,
    ax: Any = None,
    *,
    methods: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    **line: Any,
) -> Any:
    """Accuracy when only the most confident share of the rows is answered.

    Parameters
    ----------
    curves : the table ``selective``, averaged where there are several splits, or the
        result of `coolhead.metrics.risk_coverage_curve`
    methods : the methods of the table to draw
    **line : passed to `Axes.plot`

    Examples
    --------
    >>> import coolhead as ch
    >>> curve = ch.metrics.risk_coverage_curve([1, 1, 0, 1], [0.9, 0.8, 0.6, 0.5])
    >>> ax = ch.figures.selective_prediction(curve, label="ensemble")
    """
    with canvas(ax) as ax:
        for (name, share, right), style in zip(_lines(curves, methods), cycle(LINES)):
            look = {}
            if name is not None:
                label = (labels or {}).get(name, name)
                look = {"color": style[0], "ls": style[1], "label": label}
            ax.plot(100 * share, 100 * right, **(look | line))
        if methods:
            ax.legend(loc="best")
        ax.set(xlim=(0, 100), xlabel="rows answered, the surest first (%)")
        ax.set_ylabel("accuracy among them (%)")
        ax.grid(axis="y")
    return ax


def _lines(curves: Any, methods: Sequence[str]) -> list[tuple[Any, Any, Any]]:
    """Name, coverage and accuracy of each line."""
    if hasattr(curves, "risk"):
        return [(None, curves.coverage, 1 - curves.risk)]
    frame = read_frame(curves, "selective")
    mean = pl.col("accuracy").mean()
    found = []
    for name in methods:
        own = of_method(frame, name).group_by("coverage").agg(mean).sort("coverage")
        found.append((name, own["coverage"].to_numpy(), own["accuracy"].to_numpy()))
    return found
