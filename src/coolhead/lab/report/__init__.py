"""The report of a run."""

from coolhead.lab.report.render import write_evaluation_report, write_report

__all__ = ["write_evaluation_report", "write_report"]
