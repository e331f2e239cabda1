"""The reliability diagram: is 80 % sure right 80 % of the time?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from coolhead.figures.style import AFTER, BEFORE, GREY, INK, PALE, PAPER, canvas
from coolhead.figures.tables import of_method, read_frame
from coolhead.numerics.proportions import proportion_error

# Part of a bin that its bar fills, and the height of the strip of counts.
FILL = 0.88
STRIP = 0.14


@dataclass(frozen=True)
class Bars:
    """What the diagram shows of every bin that is not empty.

    Attributes
    ----------
    left, width : of the bar, (m,)
    accuracy, confidence : means, (m,)
    count : rows, (m,)
    """

    left: np.ndarray
    width: np.ndarray
    accuracy: np.ndarray
    confidence: np.ndarray
    count: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """Confidence minus accuracy, (m,): positive where too sure."""
        return self.confidence - self.accuracy

    @property
    def share(self) -> np.ndarray:
        """Rows relative to the fullest bin, (m,)."""
        return self.count / max(self.count.max(initial=0), 1)

    @property
    def error(self) -> float:
        """Expected calibration error over these bins."""
        return float(np.abs(self.gap) @ self.count / max(self.count.sum(), 1))


def reliability(
    bins: Any, ax: Any = None, *, method: str | None = None, **bar: Any
) -> Any:
    """Accuracy in bars with standard errors, the gap to the mean confidence hatched.

    Orange: more sure than right; white: less. The strip below shows how many rows each
    bin holds.

    Parameters
    ----------
    bins : the result of `coolhead.reliability_curve`, or the table ``reliability``,
        summed where there are several splits
    method : the method to draw, where the table holds several
    **bar : passed to `Axes.bar`, e.g. label="ensemble"

    Examples
    --------
    >>> import coolhead as ch
    >>> curve = ch.reliability_curve([1, 0, 1, 1], [0.9, 0.6, 0.7, 0.95], n_bins=5)
    >>> ax = ch.figures.reliability(curve)
    >>> ax.get_title()
    'ECE 26.2 %, n = 4'
    """
    bars = reliability_bars(bins, method)
    low, gap = np.minimum(bars.accuracy, bars.confidence), np.abs(bars.gap)
    with canvas(ax, (3.0, 3.4)) as ax:
        edge = {"align": "edge"}
        place = bars.left, bars.accuracy, bars.width
        ax.bar(*place, **(edge | {"color": AFTER} | bar))
        for chosen, colour, line, hatch in (
            (bars.gap > 0, BEFORE, BEFORE, "////"),
            (bars.gap <= 0, PAPER, INK, r"\\\\"),
        ):
            box = bars.left[chosen], gap[chosen], bars.width[chosen], low[chosen]
            # Twice: the hatch takes the colour of the edge.
            ax.bar(*box, fc="none", ec=colour, hatch=hatch, lw=0, **edge)
            ax.bar(*box, fc="none", ec=line, lw=0.8, **edge)
        error = proportion_error(bars.accuracy, bars.count)
        # An accuracy cannot leave the diagram, nor can its error.
        error = np.minimum(error, [bars.accuracy, 1 - bars.accuracy])
        middle = bars.left + bars.width / 2
        ax.errorbar(middle, bars.accuracy, error, fmt="none", ecolor=INK, lw=0.8)
        ax.plot([0, 1], [0, 1], "--", color=GREY, lw=0.8)
        strip = bars.left, STRIP * bars.share, bars.width, -0.03 - STRIP
        ax.bar(*strip, color=PALE, **edge)
        ax.axhline(0, color=PALE, lw=0.6)
        ax.spines["left"].set_bounds(0, 1)
        ax.set_title(f"ECE {100 * bars.error:.1f} %, n = {bars.count.sum():,}")
        ax.set(xlim=(0, 1), ylim=(-0.04 - STRIP, 1), aspect="equal")
        ax.set(xlabel="confidence", ylabel="accuracy", yticks=np.arange(6) / 5)
    return ax


def reliability_bars(bins: Any, method: str | None = None) -> Bars:
    """Bars of a reliability curve, or of bins given as counts and sums."""
    if hasattr(bins, "accuracy"):
        edges, count = bins.edges, bins.count
        accuracy, confidence = bins.accuracy, bins.confidence
    else:
        count, sure, right = _sums(read_frame(bins, "reliability"), method)
        count = count.astype(int)
        # Every row of the table is a bin of equal width, the empty ones too.
        edges = np.linspace(0, 1, len(count) + 1)
        safe = np.maximum(count, 1)
        accuracy, confidence = right / safe, sure / safe
    filled = count > 0
    width = np.diff(edges)[filled]
    return Bars(
        left=edges[:-1][filled] + (1 - FILL) / 2 * width,
        width=FILL * width,
        accuracy=accuracy[filled],
        confidence=confidence[filled],
        count=count[filled],
    )


def _sums(frame: pl.DataFrame, method: str | None) -> list[np.ndarray]:
    """Rows, confidence and right answers of every bin, summed over the table."""
    if method is not None:
        frame = of_method(frame, method)
    elif "method" in frame.columns and frame["method"].n_unique() > 1:
        names = ", ".join(dict.fromkeys(frame["method"]))
        raise ValueError(f"method is None; wanted one of those in the table: {names}")
    # Pages have hundreds of these small tables: a query for each would take seconds.
    number = frame["bin"].to_numpy()
    columns = ("n", "sum_confidence", "sum_correct")
    return [np.bincount(number, frame[name].to_numpy()) for name in columns]
