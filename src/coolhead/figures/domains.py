"""How far each method cools or heats the logits."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import isotonic_regression

from coolhead.figures.style import (
    AFTER,
    BASELINE,
    GREY,
    INK,
    LINES,
    canvas,
    of_method,
    read_frame,
    rows_height,
    shorten,
    wide_means,
)

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
        # First: around one temperature alone the range would be empty to rounding.
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


def by_target(
    results: Any,
    ax: Any = None,
    *,
    methods: Sequence[str],
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Mean ECE of each target domain, in the order of the protocol.

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
    frame = wide_means(results, "target", methods)
    places = np.arange(len(frame))
    with canvas(ax) as ax:
        ends = []
        for name, (colour, dashes, marker, words) in zip(methods, cycle(LINES)):
            values = frame[name].to_numpy()
            style = {"color": colour, "ls": dashes, "marker": marker}
            ax.plot(places, values, ms=4, mfc="white", **style)
            known = values[~np.isnan(values)]
            if len(known):
                ends.append((known[-1], (labels or {}).get(name, name), words))
        many = len(frame) > 6
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        names = [shorten(name) for name in frame["target"]]
        ax.set_xticks(places, names, **(turned if many else {}))
        ax.set_ylim(bottom=0)
        ax.set_ylabel("ECE (%)")
        ax.grid(axis="y")
        label_ends(ax, places[-1], ends)
    return ax


def label_ends(ax: Any, place: float, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names of lines to the right of their ends, none over another."""
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    low, high = ax.get_ylim()
    text = {"xytext": (9, 0), "textcoords": "offset points", "va": "center"}
    heights = apart(np.array([end[0] for end in ends]), 12 * (high - low) / points)
    for height, (_, name, colour) in zip(heights, ends, strict=True):
        ax.annotate(name, (place, height), color=colour, annotation_clip=False, **text)


def apart(values: np.ndarray, gap: float) -> np.ndarray:
    """The nearest values, by least squares, that lie at least `gap` apart.

    In sorted order and less a staircase of gaps they only have to be monotone.
    """
    order = np.argsort(values, kind="stable")
    stairs = gap * np.arange(len(values))
    moved = np.empty(len(values))
    if len(values):
        moved[order] = isotonic_regression(values[order] - stairs).x + stairs
    return moved


PLAIN = "plain"


def error_by_labels(arrival: Any, ax: Any = None) -> Any:
    """Mean ECE against the number of labels, a line for what else was used.

    arrival : the table ``arrival``. Lines: each base with labels alone, the same with
        the unlabelled rows, and scaling on the labels alone.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> arrival = pl.DataFrame(
    ...     {
    ...         "method": ["auto+batch", "auto+batch+20", "plain+20"],
    ...         "base": ["auto", "auto", "plain"],
    ...         "batch": [True, True, False],
    ...         "n_labels": [0, 20, 20],
    ...         "ece": [0.09, 0.06, 0.11],
    ...     }
    ... )
    >>> ax = ch.figures.error_by_labels(arrival)
    """
    frame = read_frame(arrival, "arrival")
    counts = sorted(set(frame["n_labels"]))
    means = frame.group_by("base", "batch", "n_labels", maintain_order=True).agg(
        ece=100 * pl.col("ece").mean()
    )
    lines = means.select("base", "batch").unique(maintain_order=True).rows()
    with canvas(ax) as ax:
        ends = []
        # From the second on: the first colour means "before" everywhere else.
        looks = cycle([*LINES[1:], LINES[0]])
        for (base, batch), (colour, dashes, marker, words) in zip(
            lines, looks, strict=False
        ):
            own = means.filter(pl.col("base") == base, pl.col("batch") == batch)
            own = own.sort("n_labels")
            places = [counts.index(n) for n in own["n_labels"]]
            style = {"color": colour, "ls": dashes, "marker": marker}
            ax.plot(places, own["ece"], ms=4, mfc="white", **style)
            ends.append((own["ece"][-1], line_name(base, batch), words))
        ax.set_xticks(range(len(counts)), [str(count) for count in counts])
        ax.set_xlabel("labels of the new domain")
        ax.set_ylim(bottom=0)
        ax.set_ylabel("ECE (%)")
        ax.grid(axis="y")
        label_ends(ax, len(counts) - 1, ends)
    return ax


def line_name(base: str, batch: bool) -> str:
    """What a line is called beside its end."""
    if base == PLAIN:
        return "labels alone"
    return f"{base} + batch" if batch else base


def arrival(
    table: Any, ax: Any = None, *, labels: Mapping[str, str] | None = None
) -> Any:
    """How far the expected accuracy was off in every split, and on average.

    table : the table ``arrival``; each split is a dot, the mean over draws a bar.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> table = pl.DataFrame(
    ...     {
    ...         "split": ["art > photo", "art > sketch"],
    ...         "seed": 0,
    ...         "method": "auto+batch",
    ...         "base": "auto",
    ...         "batch": True,
    ...         "n_labels": 0,
    ...         "truth": [0.70, 0.55],
    ...         "expected": [0.66, 0.61],
    ...         "low": [0.56, 0.50],
    ...         "high": [0.75, 0.72],
    ...     }
    ... )
    >>> ax = ch.figures.arrival(table)
    """
    frame = read_frame(table, "arrival").filter(pl.col("expected").is_not_null())
    order = frame.sort("base", "n_labels", "batch", maintain_order=True)
    names = list(dict.fromkeys(order["method"]))[::-1]
    with canvas(ax, (4.6, rows_height(2 * len(names)))) as ax:
        for row, name in enumerate(names):
            own = of_method(frame, name).with_columns(
                off=100 * (pl.col("expected") - pl.col("truth")).abs()
            )
            by_split = own.group_by("split", "seed", maintain_order=True)
            off = by_split.agg(pl.col("off").mean())["off"].to_numpy()
            # Heights from the order alone: the same picture each time.
            spread = 0.5 * ((np.arange(len(off)) * 0.618) % 1 - 0.5)
            ax.plot(off, row + spread, "o", color=AFTER, ms=3, alpha=0.35, mew=0)
            ax.plot(off.mean(), row, "|", color=INK, ms=14, mew=1.8)
        texts = [_told(frame, name, labels or {}) for name in names]
        ax.set_yticks(range(len(names)), texts)
        ax.set(xlim=(0, None), ylim=(-0.6, max(len(names), 1) - 0.4))
        ax.set_xlabel("expected accuracy off by (points)")
        ax.grid(axis="x")
    return ax


def _told(frame: pl.DataFrame, name: str, labels: Mapping[str, str]) -> str:
    own = of_method(frame, name)
    covered = own.select(pl.col("truth").is_between("low", "high").mean()).item()
    width = own.select((pl.col("high") - pl.col("low")).median()).item()
    text = f"covers {100 * covered:.0f} %, {100 * width:.0f} points wide"
    return f"{labels.get(name, name)}\n{text}"
