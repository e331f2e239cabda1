"""Figures for papers and notebooks; the report draws the same ones.

Each function takes plain data (arrays, a polars frame with the columns of a table of a
run, or the folder of that run), draws on `ax` (a new figure by default) and returns the
Axes. Methods carry the names they have in the table; `labels` gives them other ones.
"""

from coolhead.figures.arrival import arrival
from coolhead.figures.before_after import before_after
from coolhead.figures.by_target import by_target
from coolhead.figures.confidence_histogram import confidence_histogram
from coolhead.figures.error_by_labels import error_by_labels
from coolhead.figures.expected_accuracy import expected_accuracy
from coolhead.figures.feature_map import feature_map
from coolhead.figures.heat_map import heat_map
from coolhead.figures.reliability import reliability
from coolhead.figures.selective_prediction import selective_prediction
from coolhead.figures.style import figure_style
from coolhead.figures.temperatures import temperatures

__all__ = [
    "arrival",
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
