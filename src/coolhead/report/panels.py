"""Reliability diagrams and feature maps as coordinates of small SVG drawings.

A page holds hundreds of them: the template draws what `coolhead.figures` lays out in a
fiftieth of the time and the bytes that matplotlib would take.
"""

from typing import Any

import numpy as np
import polars as pl

from coolhead.figures.feature_map import feature_plane, temperature_text
from coolhead.figures.reliability import reliability_bars
from coolhead.figures.style import WARMTH

SIDE = 100
STRIP = 14
MAP_SIZE = 320, 220
MARGIN = 8


def reliability_panel(bins: pl.DataFrame) -> dict[str, Any]:
    """Bars, gaps and counts of one method on one split, in a square of `SIDE`."""
    bars = reliability_bars(bins)
    left, width = _short(SIDE * bars.left), _short(SIDE * bars.width)
    top, mean = (_short(SIDE * (1 - v)) for v in (bars.accuracy, bars.confidence))
    heights = _short(np.maximum(STRIP * bars.share, 0.4))
    gaps = list(zip(left, top, mean, bars.gap > 0, strict=True))
    return {
        "width": width[0] if width else "0",
        "bars": list(zip(left, top, strict=True)),
        "over": [gap[:3] for gap in gaps if gap[3]],
        "under": [gap[:3] for gap in gaps if not gap[3]],
        "strip": list(zip(left, heights, strict=True)),
        "n": int(bars.count.sum()),
        # Of each bar its left edge, accuracy, mean confidence in per cent, and rows.
        "numbers": " ".join(
            ":".join(bin)
            for bin in zip(
                left,
                _short(SIDE * bars.accuracy),
                _short(SIDE * bars.confidence),
                map(str, bars.count.astype(int)),
                strict=True,
            )
        ),
    }


def feature_map(points: pl.DataFrame) -> dict[str, Any]:
    """One path of points per colour, crosses of the target, centres with their T."""
    plane = feature_plane(points)
    return {
        "known": [
            {"colour": colour, "points": _place(plane.known[plane.colours == colour])}
            for colour in WARMTH
            if colour in plane.colours
        ],
        "target": _place(plane.target),
        "centres": [
            (*_place(np.array([[x, y]]))[0], text) for x, y, text in plane.centres
        ],
        "low": temperature_text(plane.low),
        "high": temperature_text(plane.high),
    }


def _place(points: np.ndarray) -> list[tuple[int, int]]:
    """From a square of side one to the drawing, where up is down."""
    shares = points * [1, -1] + [0, 1]
    places = np.rint(MARGIN + shares * (np.array(MAP_SIZE) - 2 * MARGIN))
    return [(int(x), int(y)) for x, y in places]


def _short(values: np.ndarray) -> list[str]:
    """One digit after the point, and none where it is zero."""
    return [f"{value:.1f}".removesuffix(".0") for value in values]
