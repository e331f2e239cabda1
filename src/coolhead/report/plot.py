"""The figures of the page as SVG, in the page's own colours."""

import re
import warnings
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure

from coolhead import figures
from coolhead.experiment.tables.answer import BEFORE

# Colours of figures that follow the page into dark mode.
VARIABLES = {
    figures.INK: "--ink",
    figures.GREY: "--soft",
    figures.PALE: "--line",
    "#e3e7eb": "--grid",
    figures.BEFORE: "--before",
    figures.BEFORE_WORDS: "--words-before",
    figures.AFTER: "--after",
    "#ffffff": "--paper",
}
MANY = 24
WIDTH = 4.3
# A figure may be shown this much larger than it is drawn.
GROWTH = 1.3
Drawing = tuple[float, Callable[[Any], Any]]


def draw_figures(part: dict[str, Any]) -> dict[str, Markup]:
    """The figures of one classifier, those without data left out."""
    frames, after = part["frames"], part["answer"]["method"]
    drawings: dict[str, Drawing] = {}
    if after is not None:
        drawings |= _comparisons(frames["results"], after)
        drawings |= _curves(frames, [BEFORE, after])
    quantiles = frames["temperature"]
    if len(quantiles):
        height = 0.9 + 0.22 * quantiles["method"].n_unique()
        drawings["temperatures"] = (
            height,
            lambda ax: figures.temperatures(quantiles, ax),
        )
    return {name: to_svg(name, *drawing) for name, drawing in drawings.items()}


def _comparisons(results: Any, after: str) -> dict[str, Drawing]:
    drawings: dict[str, Drawing] = {}
    # Many splits make a long figure: it then goes by target.
    if results["split"].n_unique() > MANY:
        results = results.with_columns(split="target")
    height = 0.9 + 0.21 * results["split"].n_unique()
    drawings["before_after"] = (
        height,
        lambda ax: figures.before_after(results, ax, method=after),
    )
    present = set(results["method"])
    methods = [name for name in (BEFORE, after, "target-only") if name in present]
    if results["target"].n_unique() > 1:
        drawings["by_target"] = (
            3.0,
            lambda ax: figures.by_target(results, ax, methods=methods),
        )
    return drawings


def _curves(frames: dict[str, Any], methods: list[str]) -> dict[str, Drawing]:
    bins, curves = frames["histogram"], frames["selective"]
    drawings: dict[str, Drawing] = {}
    if len(bins):
        for place, name in zip(("before", "after"), methods, strict=True):
            drawings[f"histogram_{place}"] = (
                2.4,
                partial(figures.confidence_histogram, bins, method=name),
            )
    if len(curves):
        drawings["selective"] = (
            3.0,
            lambda ax: figures.selective_prediction(curves, ax, methods=methods),
        )
    return drawings


def to_svg(name: str, height: float, draw: Callable[[Any], Any]) -> Markup:
    """Draw a figure and return it as one SVG element for a page."""
    target = StringIO()
    with figures.figure_style():
        # A figure of its own, apart from pyplot: no window, nothing left behind.
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        with warnings.catch_warnings():
            # The browser has the letters that the fonts at hand here lack.
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            figure.savefig(target, format="svg", metadata={"Date": None})
    return Markup(_for_page(target.getvalue(), name, GROWTH * WIDTH * 96))


def _for_page(svg: str, name: str, width: float) -> str:
    """Without prologue, metadata, fixed size and needless names."""
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
