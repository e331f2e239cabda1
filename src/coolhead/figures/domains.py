"""Figures of domains: temperatures, expected accuracy, error by target and label."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import isotonic_regression

from coolhead.figures import style

MIDDLE_HALF = 0.25, 0.75
MOST = 0.05, 0.95
PLAIN = "plain"
# The end of a line: place, height, name, colour of the name.
End = tuple[float, float, str, str]


def temperatures(
    quantiles: Any, ax: Any = None, *, labels: Mapping[str, str] | None = None
) -> Any:
    """Draw the spread of T(x) of every method: median, middle half, and 90 per cent.

    Parameters
    ----------
    quantiles : DataFrame, str or Path
        The table ``temperature`` of a run, or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    labels : dict of str to str, default=None
        Names of the methods in the figure.

    Returns
    -------
    ax : Axes

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

    frame = style.read_frame(quantiles, "temperature")
    frame = frame.filter(pl.col("method") != style.BASELINE)
    names = list(dict.fromkeys(frame["method"]))[::-1]
    with style.canvas(ax, (4.6, style.rows_height(len(names)))) as ax:
        ax.set_xscale("log")
        # First: around one temperature alone the range would be empty to rounding.
        ax.axvline(1, color=style.GREY, lw=0.8, ls="--")
        for row, name in enumerate(names):
            own = style.of_method(frame, name)["value"].to_numpy()
            ax.hlines(row, *np.quantile(own, MOST), style.AFTER, lw=1.2, alpha=0.5)
            ax.hlines(row, *np.quantile(own, MIDDLE_HALF), style.AFTER, lw=5, alpha=0.5)
            ax.plot(np.median(own), row, "|", color=style.INK, ms=9, mew=1.6)
        low, high = ax.get_xlim()
        # Powers of ten alone would leave a narrow range without a number.
        narrow = high < 10 * low
        locator = MaxNLocator(6) if narrow else LogLocator(subs=(1, 2, 5))
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_yticks(range(len(names)), [(labels or {}).get(n, n) for n in names])
        ax.set_ylim(-0.6, max(len(names), 1) - 0.4)
        ax.set(xlabel="temperature T (log scale)", ylabel="method")
    return ax


def expected_accuracy(
    adaptation: Any,
    ax: Any = None,
    *,
    methods: Sequence[str],
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Draw expected accuracy with its interval against the true one, split by split.

    Parameters
    ----------
    adaptation : DataFrame, str or Path
        The table ``adaptation`` of a run, or the run's folder; of several draws of
        labels the first is drawn.
    ax : Axes, default=None
        A new figure by default.
    methods : sequence of str
        The methods to draw.
    labels : dict of str to str, default=None
        Names of the methods in the figure.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> found = pl.DataFrame(
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
    >>> ax = ch.figures.expected_accuracy(found, methods=["auto+batch"])
    """
    frame = style.read_frame(adaptation, "adaptation").filter(
        pl.col("draw") == 0, pl.col("expected").is_not_null()
    )
    with style.canvas(ax, (4.6, 4.0)) as ax:
        ends = []
        for name, (colour, _, marker, _) in zip(methods, cycle(style.LINES)):
            own = style.of_method(frame, name)
            columns = own.select("truth", "expected", "low", "high").to_numpy()
            truth, middle, low, high = 100 * columns.T
            missed = (truth < low) | (truth > high)
            ax.vlines(
                truth, low, high, colour, lw=np.where(missed, 2.2, 0.8), alpha=0.6
            )
            text = (labels or {}).get(name, name)
            look = {"color": colour, "ls": "", "ms": 4, "label": text}
            ax.plot(truth, middle, marker=marker, mfc="white", **look)
            ends += [truth.min(), low.min(), truth.max(), high.max()]
        limits = max(min(ends) - 3, 0), min(max(ends) + 3, 100)
        ax.axline((limits[0], limits[0]), slope=1, color=style.GREY, lw=0.8, ls="--")
        ax.set(xlim=limits, ylim=limits, xlabel="true accuracy (%)")
        ax.set_ylabel("expected accuracy (%), 90 % interval")
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1))
    return ax


def by_target(
    results: Any,
    ax: Any = None,
    *,
    methods: Sequence[str],
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Draw the mean ECE of each target domain, in the order of the protocol.

    Parameters
    ----------
    results : DataFrame, str or Path
        The results of a run, or the run's folder.
    ax : Axes, default=None
        A new figure by default.
    methods : sequence of str
        The methods to draw.
    labels : dict of str to str, default=None
        Names of the methods in the figure.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> results = pl.DataFrame(
    ...     {
    ...         "target": ["photo", "sketch"] * 2,
    ...         "method": ["uncalibrated"] * 2 + ["set-level"] * 2,
    ...         "metric": "ece_mean",
    ...         "value": [0.20, 0.30, 0.05, 0.12],
    ...     }
    ... )
    >>> ax = ch.figures.by_target(results, methods=["uncalibrated", "set-level"])
    """
    frame = style.wide_means(results, "target", methods)
    lines = [
        (np.arange(len(frame)), frame[name].to_numpy(), (labels or {}).get(name, name))
        for name in methods
    ]
    with style.canvas(ax) as ax:
        style.name_ticks(ax, map(style.shorten, frame["target"]), turned=len(frame) > 6)
        ax.set_xlabel("target domain")
        draw_error_lines(ax, lines, style.LINES)
    return ax


def error_by_labels(adaptation: Any, ax: Any = None) -> Any:
    """Draw the mean ECE against the number of labels, a line for what else was used.

    Lines: each base with labels alone, the same with unlabelled rows, and scaling on
    the labels alone.

    Parameters
    ----------
    adaptation : DataFrame, str or Path
        The table ``adaptation`` of a run, or the run's folder.
    ax : Axes, default=None
        A new figure by default.

    Returns
    -------
    ax : Axes

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> found = pl.DataFrame(
    ...     {
    ...         "method": ["auto+batch", "auto+batch+20", "plain+20"],
    ...         "base": ["auto", "auto", "plain"],
    ...         "batch": [True, True, False],
    ...         "n_labels": [0, 20, 20],
    ...         "ece": [0.09, 0.06, 0.11],
    ...     }
    ... )
    >>> ax = ch.figures.error_by_labels(found)
    """
    frame = style.read_frame(adaptation, "adaptation")
    counts = sorted(set(frame["n_labels"]))
    means = frame.group_by("base", "batch", "n_labels", maintain_order=True).agg(
        ece=100 * pl.col("ece").mean()
    )
    lines = []
    for (base, batch), own in means.sort("n_labels", maintain_order=True).group_by(
        "base", "batch", maintain_order=True
    ):
        name = "labels alone" if base == PLAIN else f"{base}{' + batch' * bool(batch)}"
        places = np.array([counts.index(n) for n in own["n_labels"]])
        lines.append((places, own["ece"].to_numpy(), name))
    with style.canvas(ax) as ax:
        style.name_ticks(ax, map(str, counts))
        ax.set_xlabel("labels of the new domain")
        # From the second on: the first colour means "before" everywhere else.
        draw_error_lines(ax, lines, [*style.LINES[1:], style.LINES[0]])
    return ax


def draw_error_lines(
    ax: Any, lines: Sequence[tuple[np.ndarray, np.ndarray, str]], looks: Sequence[Any]
) -> None:
    """Draw lines of ECE in per cent, each with its name at its own end."""
    ends: list[End] = []
    for (places, values, name), (colour, dashes, marker, words) in zip(
        lines, cycle(looks)
    ):
        look = {"color": colour, "ls": dashes, "marker": marker}
        ax.plot(places, values, ms=4, mfc="white", **look)
        known = np.flatnonzero(~np.isnan(values))
        if len(known):
            at = float(places[known[-1]]), float(values[known[-1]])
            ends.append((*at, name, words))
    ax.set_ylim(bottom=0)
    ax.set_ylabel("ECE (%)")
    ax.grid(axis="y")
    label_ends(ax, ends)


def label_ends(ax: Any, ends: Sequence[End]) -> None:
    """Write names of lines to the right of their ends, none over another."""
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    low, high = ax.get_ylim()
    text = {"xytext": (9, 0), "textcoords": "offset points", "va": "center"}
    for place in dict.fromkeys(end[0] for end in ends):
        own = [end for end in ends if end[0] == place]
        gap = 12 * (high - low) / points
        heights = apart(np.array([end[1] for end in own]), gap)
        for height, (_, _, name, colour) in zip(heights, own, strict=True):
            at = place, height
            ax.annotate(name, at, color=colour, annotation_clip=False, **text)


def apart(values: np.ndarray, gap: float) -> np.ndarray:
    """Return the nearest values, by least squares, that lie at least `gap` apart.

    In sorted order and less a staircase of gaps they only have to be monotone.
    """
    order = np.argsort(values, kind="stable")
    stairs = gap * np.arange(len(values))
    moved = np.empty(len(values))
    if len(values):
        moved[order] = isotonic_regression(values[order] - stairs).x + stairs
    return moved
