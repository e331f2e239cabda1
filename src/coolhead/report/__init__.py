"""The report: summarise → plot → render, one HTML file that needs no network.

`load` gathers the tables of a run (`evaluated` makes the same tables from one
calibrator and its predictions), `summarise` turns them into plain values, `plot` has
`coolhead.figures` draw them as SVG, and `render` fills the templates.
"""

from coolhead.report.render import write_evaluation_report, write_report

__all__ = ["write_evaluation_report", "write_report"]
