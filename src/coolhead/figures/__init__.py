"""Figures for papers and notebooks; the report draws the same ones.

Each function takes plain data (arrays, a polars frame with the columns of a table of a
run, or the folder of that run), draws on `ax` (a new figure by default) and returns the
Axes. Methods have their names in the table; `labels` gives them others.
"""

from coolhead.extras import needs

with needs("coolhead.figures"):
    # The extra that brings matplotlib brings polars as well, so it is looked for first.
    import matplotlib

    from coolhead.figures.domains import (
        by_target,
        error_by_labels,
        expected_accuracy,
        temperatures,
    )
    from coolhead.figures.maps import feature_map, heat_map
    from coolhead.figures.reliability import (
        before_after,
        confidence_histogram,
        reliability,
        selective_prediction,
    )
    from coolhead.figures.style import figure_style

__all__ = [
    "before_after",
    "by_target",
    "confidence_histogram",
    "error_by_labels",
    "expected_accuracy",
    "feature_map",
    "figure_style",
    "heat_map",
    "reliability",
    "selective_prediction",
    "temperatures",
]


def __dir__() -> list[str]:
    return __all__
