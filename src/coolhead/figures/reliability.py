"""Reliability diagrams: is a confidence of 80 % right 80 % of the time?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import polars as pl

from coolhead.figures import style
from coolhead.numerics.weights import proportion_error

# Part of a bin that its bar fills, and the height of the strip of counts.
FILL = 0.88
STRIP = 0.14


@dataclass(frozen=True)
class Bars:
    """Layout of the bins that are not empty.

    Attributes
    ----------
    left, width : ndarray of shape (n_bars,)
    accuracy, confidence : ndarray of shape (n_bars,)
        Means.
    count : ndarray of shape (n_bars,)
        Rows.
    """

    left: np.ndarray
    width: np.ndarray
    accuracy: np.ndarray
    confidence: np.ndarray
    count: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """Confidence minus accuracy, positive where overconfident."""
        return self.confidence - self.accuracy

    @property
    def share(self) -> np.ndarray:
        """Rows relative to the fullest bin."""
        return self.count / max(self.count.max(initial=0), 1)

    @property
    def error(self) -> float:
        """Expected calibration error over these bins."""
        return float(np.abs(self.gap) @ self.count / max(self.count.sum(), 1))


def reliability(
    bins: Any, ax: Any = None, *, method: str | None = None, **bar: Any
) -> Any:
    """Draw accuracy in bars with standard errors, the gap to the confidence hatched.

    Orange: overconfident; white: underconfident. The strip below shows how many rows
    each bin holds.

    Parameters
    ----------
    bins : ReliabilityCurve, DataFrame, str or Path
        The result of `coolhead.reliability_curve`; the table ``reliability`` of a run,
        summed where there are several splits; or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    method : str, default=None
        The method to draw, where the table holds several.
    **bar : dict
        Passed to `Axes.bar`, such as label="ensemble".

    Returns
    -------
    ax : Axes

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
    with style.canvas(ax, (3.0, 3.4)) as ax:
        edge = {"align": "edge"}
        box = bars.left, bars.accuracy, bars.width
        ax.bar(*box, **(edge | {"color": style.AFTER} | bar))
        for chosen, colour, line, hatch in (
            (bars.gap > 0, style.BEFORE, style.BEFORE, "////"),
            (bars.gap <= 0, style.PAPER, style.INK, r"\\\\"),
        ):
            box = bars.left[chosen], gap[chosen], bars.width[chosen], low[chosen]
            # Twice: the hatch takes the colour of the edge.
            ax.bar(*box, fc="none", ec=colour, hatch=hatch, lw=0, **edge)
            ax.bar(*box, fc="none", ec=line, lw=0.8, **edge)
        error = proportion_error(bars.accuracy, bars.count)
        # Accuracy lies between 0 and 1, and so does its error bar.
        error = np.minimum(error, [bars.accuracy, 1 - bars.accuracy])
        middle = bars.left + bars.width / 2
        ax.errorbar(middle, bars.accuracy, error, fmt="none", ecolor=style.INK, lw=0.8)
        ax.plot([0, 1], [0, 1], "--", color=style.GREY, lw=0.8)
        strip = bars.left, STRIP * bars.share, bars.width, -0.03 - STRIP
        ax.bar(*strip, color=style.PALE, **edge)
        ax.axhline(0, color=style.PALE, lw=0.6)
        ax.spines["left"].set_bounds(0, 1)
        ax.set_title(f"ECE {100 * bars.error:.1f} %, n = {bars.count.sum():,}")
        ax.set(xlim=(0, 1), ylim=(-0.04 - STRIP, 1), aspect="equal")
        ax.set(xlabel="confidence (%)", ylabel="accuracy (%)", yticks=np.arange(6) / 5)
        style.in_per_cent(ax.xaxis)
        style.in_per_cent(ax.yaxis)
    return ax


def reliability_bars(bins: Any, method: str | None = None) -> Bars:
    """Lay out a reliability curve, or bins given as counts and sums."""
    if hasattr(bins, "accuracy"):
        edges, count = bins.edges, bins.count
        accuracy, confidence = bins.accuracy, bins.confidence
    else:
        count, sure, right = _sums(style.read_frame(bins, "reliability"), method)
        count = count.astype(int)
        # Every row of the table is a bin of equal width, also where it is empty.
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
    """Sum rows, confidence and correct predictions of every bin over the table."""
    if method is not None:
        frame = style.of_method(frame, method)
    elif "method" in frame.columns and frame["method"].n_unique() > 1:
        names = ", ".join(dict.fromkeys(frame["method"]))
        raise ValueError(f"method is None; wanted one of those in the table: {names}")
    # Pages have hundreds of these small tables: a query for each would take seconds.
    number = frame["bin"].to_numpy()
    columns = ("n", "sum_confidence", "sum_correct")
    return [np.bincount(number, frame[name].to_numpy()) for name in columns]


def confidence_histogram(
    bins: Any,
    ax: Any = None,
    *,
    method: str = style.BASELINE,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Draw how often each confidence occurs, right and wrong predictions apart.

    Parameters
    ----------
    bins : DataFrame, str or Path
        The table ``histogram`` of a run, or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    method : str, default="uncalibrated"
        The method to draw.
    labels : dict of str to str, default=None
        Names of the methods in the figure.

    Returns
    -------
    ax : Axes

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
    frame = style.of_method(style.read_frame(bins, "histogram"), method)
    sums = frame.group_by("low", "high").agg(pl.col("n", "n_correct").sum()).sort("low")
    share = 100 / max(int(sums["n"].sum()), 1)
    right, total = (share * sums[name].to_numpy() for name in ("n_correct", "n"))
    low, width = sums["low"].to_numpy(), (sums["high"] - sums["low"]).to_numpy()
    look = {"fc": style.BEFORE, "ec": style.PAPER, "lw": 0, "hatch": "///"}
    with style.canvas(ax, (4.6, 2.4)) as ax:
        ax.bar(low, right, width, align="edge", color=style.AFTER, label="right")
        ax.bar(low, total - right, width, right, align="edge", label="wrong", **look)
        ax.set(xlim=(0, 1), xlabel="confidence (%)", ylabel="rows (%)")
        style.in_per_cent(ax.xaxis)
        ax.set_title((labels or {}).get(method, method))
        # The legend stands above the highest bar.
        ax.set_ylim(0, 1.25 * max(total.max(initial=0), 1e-9))
        ax.legend(loc="upper left", ncols=2)
    return ax


def selective_prediction(
    curves: Any,
    ax: Any = None,
    *,
    methods: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    **line: Any,
) -> Any:
    """Draw the accuracy when only the most confident rows are answered.

    Parameters
    ----------
    curves : RiskCoverageCurve, DataFrame, str or Path
        The result of `coolhead.metrics.risk_coverage_curve`; the table ``selective`` of
        a run, averaged where there are several splits; or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    methods : sequence of str, default=()
        The methods of the table to draw.
    labels : dict of str to str, default=None
        Names of the methods in the figure.
    **line : dict
        Passed to `Axes.plot`.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import coolhead as ch
    >>> curve = ch.metrics.risk_coverage_curve([1, 1, 0, 1], [0.9, 0.8, 0.6, 0.5])
    >>> ax = ch.figures.selective_prediction(curve, label="ensemble")
    """
    with style.canvas(ax) as ax:
        lines = zip(_lines(curves, methods), cycle(style.LINES))
        for (name, share, right), (colour, dashes, *_) in lines:
            look = {}
            if name is not None:
                label = (labels or {}).get(name, name)
                look = {"color": colour, "ls": dashes, "label": label}
            ax.plot(100 * share, 100 * right, **(look | line))
        if methods:
            ax.legend(loc="best")
        ax.set(xlim=(0, 100), xlabel="rows answered, most confident first (%)")
        ax.set_ylabel("accuracy among them (%)")
        ax.grid(axis="y")
    return ax


def _lines(curves: Any, methods: Sequence[str]) -> list[tuple[Any, Any, Any]]:
    """Return name, coverage and accuracy of each line."""
    if hasattr(curves, "risk"):
        return [(None, curves.coverage, 1 - curves.risk)]
    frame = style.read_frame(curves, "selective")
    mean = pl.col("accuracy").mean()
    found = []
    for name in methods:
        own = style.of_method(frame, name)
        own = own.group_by("coverage").agg(mean).sort("coverage")
        found.append((name, own["coverage"].to_numpy(), own["accuracy"].to_numpy()))
    return found


def before_after(
    results: Any, ax: Any = None, *, method: str, baseline: str = style.BASELINE
) -> Any:
    """Draw the ECE of every split before and after one method, the worst on top.

    Parameters
    ----------
    results : DataFrame, str or Path
        The results of a run, or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    method : str
        The method after calibration.
    baseline : str, default="uncalibrated"
        The method before it.

    Returns
    -------
    ax : Axes

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
    means = style.wide_means(results, "split", [baseline, method])
    wide = means.drop_nulls().sort(baseline)
    before, after = wide[baseline].to_numpy(), wide[method].to_numpy()
    rows, worse = np.arange(len(wide)), after > before
    with style.canvas(ax, (4.6, style.rows_height(len(wide)))) as ax:
        for chosen, colour in ((~worse, style.AFTER), (worse, style.BEFORE)):
            ends = rows[chosen], before[chosen], after[chosen]
            ax.hlines(*ends, colour, lw=2, alpha=0.45)
        ax.scatter(before, rows, 26, "white", edgecolor=style.BEFORE, zorder=3)
        ax.scatter(after, rows, 26, style.AFTER, zorder=4)
        ax.set_yticks(rows, map(style.shorten, wide["split"]))
        ax.set_xlim(left=0)
        ax.set_ylim(-0.6, len(wide) - 0.4)
        ax.set_xlabel("ECE (%): ○ before, ● after")
        ax.grid(axis="x")
    return ax
