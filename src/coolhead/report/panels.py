"""Reliability diagrams and feature maps as coordinates; the template draws them."""

from typing import Any

import numpy as np
import polars as pl

from coolhead.report.colours import temperature_colours

SIDE = 100
STRIP = 14
MAP_WIDTH, MAP_HEIGHT = 320, 220
MARGIN = 8
LABEL_WIDTH, LABEL_HEIGHT = 26, 13
ROLES = ("calibration", "target", "centre")


def reliability_panel(bins: pl.DataFrame) -> dict[str, Any]:
    """Bars, gaps and counts of one method on one split, in a square of `SIDE`."""
    columns = ("n", "sum_confidence", "sum_correct")
    sums = bins.group_by("bin").agg(pl.col(*columns).sum()).sort("bin")
    count, sure, right = (sums[name].to_numpy().astype(float) for name in columns)
    step = SIDE / max(len(count), 1)
    bars, over, under, strip = [], [], [], []
    for number in np.flatnonzero(count > 0):
        x, n = _short(number * step + 0.06 * step), count[number]
        accuracy, confidence = right[number] / n, sure[number] / n
        top, mean = _short(SIDE * (1 - accuracy)), _short(SIDE * (1 - confidence))
        bars.append((x, top))
        (over if confidence > accuracy else under).append((x, top, mean))
        strip.append((x, _short(max(STRIP * n / count.max(), 0.4))))
    return {
        "width": _short(0.88 * step),
        "bars": bars,
        "over": over,
        "under": under,
        "strip": strip,
        "n": int(count.sum()),
    }


def feature_map(points: pl.DataFrame) -> dict[str, Any]:
    """One path of points per cluster, crosses of the target, centres with their T."""
    place = _scale(points)
    temperatures = points["temperature"].to_numpy()
    lowest, highest = float(temperatures.min()), float(temperatures.max())
    parts = {role: points.filter(pl.col("role") == role) for role in ROLES}
    clusters = [
        {
            "colour": temperature_colours([own["temperature"][0]], lowest, highest)[0],
            "points": place(own),
        }
        for (_,), own in parts["calibration"].group_by("cluster", maintain_order=True)
    ]
    centres = zip(place(parts["centre"]), parts["centre"]["temperature"], strict=True)
    return {
        "clusters": clusters,
        "target": place(parts["target"]),
        "centres": _apart([(x, y, _label(value)) for (x, y), value in centres]),
        "low": _label(lowest),
        "high": _label(highest),
    }


def _scale(points: pl.DataFrame) -> Any:
    """A function from feature-plane coordinates to the drawing's.

    The frame holds the middle 99 per cent; a point farther out stands on its edge.
    """
    limits = {
        name: np.quantile(points[name].to_numpy(), [0.005, 0.995]) for name in "xy"
    }
    room = {"x": MAP_WIDTH, "y": MAP_HEIGHT}

    def place(part: pl.DataFrame) -> list[tuple[int, int]]:
        scaled = []
        for name, (low, high) in limits.items():
            share = (part[name].to_numpy() - low) / max(high - low, 1e-12)
            share = np.clip(share if name == "x" else 1 - share, 0, 1)
            scaled.append(np.rint(MARGIN + share * (room[name] - 2 * MARGIN)))
        return [(int(x), int(y)) for x, y in zip(*scaled, strict=True)]

    return place


def _apart(labels: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Labels from the top down, each moved down until it covers none before it."""
    placed: list[tuple[int, int, str]] = []
    for x, y, text in sorted(labels, key=lambda label: label[1]):
        near = [label for label in placed if abs(label[0] - x) < LABEL_WIDTH]
        for _, other, _ in near:
            if abs(other - y) < LABEL_HEIGHT:
                y = other + LABEL_HEIGHT
        placed.append((x, min(y, MAP_HEIGHT - MARGIN), text))
    return placed


def _label(temperature: float) -> str:
    return f"{temperature:.1f}" if temperature < 10 else f"{temperature:.0f}"


def _short(value: float) -> str:
    """One digit after the point, and none where it is zero."""
    return f"{value:.1f}".removesuffix(".0")
