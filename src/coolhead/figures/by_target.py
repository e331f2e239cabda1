"""How the error depends on the domain that nobody has seen."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from coolhead.figures.style import LINES, canvas, shorten
from coolhead.figures.tables import wide_means


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
