"""Figures as SVG text: the same data give the same bytes."""

import warnings
from collections.abc import Callable
from io import StringIO
from typing import Any

from coolhead.figures.style import figure_style


def draw_svg(size: tuple[float, float], draw: Callable[[Any], Any], title: str) -> str:
    """Draw on a new figure of this size in inches and return the text of the SVG.

    The figure is apart from pyplot: no window, nothing left behind. `draw` gets it;
    `title` says in words what it shows, to those who cannot see it.
    """
    from matplotlib.figure import Figure

    target = StringIO()
    with figure_style(), warnings.catch_warnings():
        # The reader's program has the letters that the fonts at hand here lack.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        about = {"Date": None, "Title": title}
        figure.savefig(target, format="svg", metadata=about)
    return target.getvalue()
