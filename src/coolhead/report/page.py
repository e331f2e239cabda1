"""One HTML page on calibration: of an evaluation, or of the laboratory's runs."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from coolhead.figures.style import CHANGES, WARMTH
from coolhead.report.plot import VARIABLES, draw_figures
from coolhead.report.summarise import ReportData, summarise


def render(data: ReportData) -> str:
    """Return the whole page as text."""
    summary = summarise(data)
    for part in summary["classifiers"]:
        part["figures"] = draw_figures(part)
    environment = Environment(
        # Names of domains, classes and methods come from users.
        autoescape=True,
        loader=PackageLoader("coolhead.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    look = {"variables": VARIABLES, "changes": CHANGES, "warmth": WARMTH}
    return environment.get_template("page.html").render(summary | look)
