"""Reliability diagrams and feature maps as coordinates of small SVG drawings.

A page holds hundreds of them. The template draws the layout of `coolhead.figures` in a
fiftieth of the time and bytes that matplotlib would take.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup

from coolhead import figures
from coolhead.figures import style
from coolhead.figures.maps import feature_plane, temperature_text
from coolhead.figures.reliability import reliability_bars
from coolhead.figures.style import WARMTH, draw_svg
from coolhead.report.answer import BEFORE
from coolhead.report.tables import label

SIDE = 100
STRIP = 14
MAP_SIZE = 320, 220
MARGIN = 8
# Bars of fewer rows are pale.
FEW_IN_BIN = 10


def reliability_panel(bins: pl.DataFrame) -> dict[str, Any]:
    """Bars, gaps and counts of one method on one split, in a square of `SIDE`."""
    bars = reliability_bars(bins)
    left, width = _short(SIDE * bars.left), _short(SIDE * bars.width)
    top, mean = (_short(SIDE * (1 - v)) for v in (bars.accuracy, bars.confidence))
    heights = _short(np.maximum(STRIP * bars.share, 0.4))
    few = bars.count < FEW_IN_BIN
    over = (bars.gap > 0) & ~few

    def kept(mask: np.ndarray, *columns: list[str]) -> list[tuple[str, ...]]:
        return list(compress(zip(*columns, strict=True), mask))

    right, sure = (_short(SIDE * v) for v in (bars.accuracy, bars.confidence))
    count = [str(int(n)) for n in bars.count]
    return {
        "width": width[0] if width else "0",
        "bars": kept(~few, left, top),
        "pale": kept(few, left, top),
        "over": kept(over, left, top, mean),
        "under": kept(~over & ~few, left, top, mean),
        "strip": kept(few | ~few, left, heights),
        "n": int(bars.count.sum()),
        # Of each bar its left edge, accuracy, mean confidence in per cent, and rows.
        "numbers": " ".join(map(":".join, zip(left, right, sure, count, strict=True))),
    }


def feature_map(points: pl.DataFrame) -> dict[str, Any]:
    """Lay out one path per colour, crosses of the target, centres with their T."""
    plane = feature_plane(points)
    return {
        "known": [
            {"colour": colour, "points": _pixels(plane.known[plane.colours == colour])}
            for colour in WARMTH
            if colour in plane.colours
        ],
        "target": _pixels(plane.target),
        "centres": [
            (*_pixels(np.array([[x, y]]))[0], text) for x, y, text in plane.centres
        ],
        "low": temperature_text(plane.low),
        "high": temperature_text(plane.high),
    }


def _pixels(points: np.ndarray) -> list[tuple[int, int]]:
    """Map a square of side one to the drawing, whose second axis points down."""
    shares = points * [1, -1] + [0, 1]
    found = np.rint(MARGIN + shares * (np.array(MAP_SIZE) - 2 * MARGIN))
    return [(int(x), int(y)) for x, y in found]


def _short(values: np.ndarray) -> list[str]:
    """Format with one digit after the point, none where it is zero."""
    return [f"{value:.1f}".removesuffix(".0") for value in values]


# Colours of figures that follow the page into dark mode.
VARIABLES = {
    style.INK: "--ink",
    style.GREY: "--soft",
    style.PALE: "--line",
    style.GRID: "--grid",
    style.BEFORE: "--before",
    style.BEFORE_WORDS: "--words-before",
    style.GREEN_WORDS: "--words-green",
    style.ROSE_WORDS: "--words-rose",
    style.AFTER: "--after",
    style.PAPER: "--paper",
}
MANY, FEW_TARGETS = 24, 3
WIDTH = 4.3
# A figure may be shown this much larger than it is drawn.
GROWTH = 1.3


# Height in inches, the drawing on axes, and a description for screen readers.
Drawing = tuple[float, Callable[[Any], Any], str]


def draw_figures(part: dict[str, Any]) -> dict[str, Markup]:
    """Draw the figures of one classifier; those without data are left out."""
    frames, answer = part["frames"], part["answer"]
    drawings: dict[str, Drawing] = {}
    if answer["method"] is not None:
        drawings |= _comparisons(frames["results"], answer)
        drawings |= _curves(frames, [BEFORE, answer["method"]])
    shown = frames["temperature"].filter(pl.col("method").is_in(part["shown"]))
    if len(shown):
        drawings["temperatures"] = _temperatures(shown)
    if part["adaptation"]:
        drawings |= _adaptations(frames["adaptation"], part["adaptation"])
    return {name: to_svg(name, *drawing) for name, drawing in drawings.items()}


def _comparisons(results: Any, answer: dict[str, Any]) -> dict[str, Drawing]:
    after = answer["method"]
    # Many splits make a long figure: it then goes by target.
    if results["split"].n_unique() > MANY:
        results = results.with_columns(split="target")
    n_rows = results["split"].n_unique()
    drawings: dict[str, Drawing] = {}
    if n_rows > 1:
        drawings["before_after"] = (
            style.rows_height(n_rows),
            partial(figures.before_after, results, method=after),
            f"ECE in {n_rows} rows before and after {answer['label']}: on average "
            f"{answer['before']:.1f} % before, {answer['after']:.1f} % after",
        )
    methods = [m for m in (BEFORE, after, "target-only") if m in set(results["method"])]
    names = {name: label(name) for name in methods}
    # Lines through fewer targets show no shape; domains of an evaluation have no order.
    if results["target"].n_unique() >= FEW_TARGETS and answer["noun"] == "split":
        drawings["by_target"] = (
            3.0,
            partial(figures.by_target, results, methods=methods, labels=names),
            f"Mean ECE of each target, a line for each of: {', '.join(names.values())}",
        )
    return drawings


def _curves(frames: dict[str, Any], methods: list[str]) -> dict[str, Drawing]:
    bins, curves = frames["histogram"], frames["selective"]
    names = {name: label(name) for name in methods}
    drawings: dict[str, Drawing] = {}
    if len(bins):
        for when, name in zip(("before", "after"), methods, strict=True):
            drawings[f"histogram_{when}"] = (
                2.4,
                partial(figures.confidence_histogram, bins, method=name, labels=names),
                f"Rows at each confidence, right and wrong: {names[name]}",
            )
    if len(curves):
        drawings["selective"] = (
            3.0,
            partial(
                figures.selective_prediction, curves, methods=methods, labels=names
            ),
            "Accuracy against the share of rows answered, most confident first: "
            + " and ".join(names.values()),
        )
    return drawings


def _temperatures(quantiles: Any) -> Drawing:
    medians = {
        name: own["value"].median()
        for (name,), own in quantiles.group_by("method", maintain_order=True)
        if name != BEFORE
    }
    text = ", ".join(f"{label(name)} {value:.2f}" for name, value in medians.items())
    return (
        style.rows_height(len(medians)),
        partial(figures.temperatures, quantiles, labels={n: label(n) for n in medians}),
        f"Temperatures of each method; medians: {text}",
    )


def _adaptations(table: Any, section: dict[str, Any]) -> dict[str, Drawing]:
    names, shown = section["labels"], section["shown"]
    draw = partial(figures.expected_accuracy, table, methods=shown, labels=names)
    text = "; ".join(section["sentences"])
    drawings: dict[str, Drawing] = {
        "expected_accuracy": (3.6, draw, f"Expected against true accuracy. {text}")
    }
    if table["n_labels"].n_unique() > 1:
        drawings["error_by_labels"] = (
            3.0,
            partial(figures.error_by_labels, table),
            "Mean ECE against the number of labels of the new domain",
        )
    return drawings


def to_svg(name: str, height: float, draw: Callable[[Any], Any], alt: str) -> Markup:
    """Draw a figure and return it as one SVG element for a page."""
    svg = draw_svg((WIDTH, height), lambda figure: draw(figure.subplots()), alt)
    return Markup(_for_page(svg, name, GROWTH * WIDTH * 96))


def _for_page(svg: str, name: str, width: float) -> str:
    """Drop prologue, metadata, fixed size and needless names."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[a-z0-9]+_\d+"', "", svg)
    svg = re.sub(r"(font(?:-family)?): ([^;\"]*?)'DejaVu Sans'[^;\"]*", _font, svg)
    for colour, variable in VARIABLES.items():
        svg = re.sub(rf"(fill|stroke): {colour}", rf"\1: var({variable})", svg)
        svg = re.sub(rf'(fill|stroke)="{colour}"', rf'style="\1: var({variable})"', svg)
    box = re.search(r'viewBox="[^"]*"', svg)
    head = f'<svg class="figure {name}" role="img" style="max-width:{width:.0f}px" '
    return head + (box.group(0) if box else "") + svg[svg.index(">") :]


def _font(found: re.Match) -> str:
    return f"{found.group(1)}: {found.group(2)}var(--font)"
