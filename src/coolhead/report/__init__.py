"""The report of an evaluation: one HTML page."""

from coolhead.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.report",
    {"evaluated": ["write_evaluation_report"]},
    moved={"write_report": "coolhead.lab.report.write_report"},
)
