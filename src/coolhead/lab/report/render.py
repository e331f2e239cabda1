"""Fill the templates and write the page."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from coolhead.figures.style import CHANGES, WARMTH
from coolhead.io.archive import DomainArchive
from coolhead.io.files import write_text
from coolhead.lab.report.evaluated import gather_evaluation
from coolhead.lab.report.load import ReportData, load_run
from coolhead.lab.report.plot import VARIABLES, draw_figures
from coolhead.lab.report.summarise import summarise
from coolhead.lab.tables.table import Table


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    *,
    tables: list[Table] | None = None,
) -> Path:
    """Write the report of a run, one HTML file that needs no network.

    Parameters
    ----------
    run : folder of a run, as `coolhead sweep` leaves it.
    out : file to write; ``report.html`` in that folder by default.
    tables : of that run, where they were computed before.

    Returns
    -------
    Path of the page.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.lab.protocol_files import check_protocol
    >>> from coolhead.lab.sweep import run_sweep
    >>> sites = ch.datasets.simulate_domains([1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in sites.domain_names:    # what a classifier of each says
    ...         sites.save(f"{folder}/{name}.safetensors")
    ...     pattern = f"{folder}/{{source}}.safetensors"
    ...     protocol = {
    ...         "name": "sites",
    ...         "title": "Three sites",
    ...         "data": {"kind": "trained", "pattern": pattern},
    ...         "roles": {"domains": sites.domain_names, "source": 1, "calibration": 1}
    ...         | {"target": 1, "arrangement": "cyclic"},
    ...         "methods": {"names": ["uncalibrated", "set-level"]},
    ...         "evaluation": {"size": 60, "draws": 20, "bootstrap": 50},
    ...     }
    ...     run = run_sweep(check_protocol(protocol, "here"), folder, jobs=1).run
    ...     print(ch.lab.report.write_report(run).name)
    ...
    report.html
    """
    path = Path(run) / "report.html" if out is None else Path(out)
    write_text(path, render(load_run(run, tables)))
    return path


def write_evaluation_report(
    path: str | Path,
    calibrator: Any,
    archive: DomainArchive,
    lines: Any,
    metadata: dict[str, Any],
) -> Path:
    """Write the report of one calibrator on labelled predictions.

    Parameters
    ----------
    path : file to write.
    calibrator, archive : what was evaluated, and on which rows.
    lines : what `coolhead.evaluate.evaluate_domains` found.
    metadata : what the calibrator's file says about it.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.evaluate import evaluate_domains
    >>> data = ch.datasets.simulate_domains()
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = evaluate_domains(cal, unseen, n_draws=50)
    ...     page = f"{folder}/page.html"
    ...     ch.lab.report.write_evaluation_report(page, cal, unseen, lines, {}).name
    ...
    'page.html'
    """
    page = render(gather_evaluation(calibrator, archive, lines, metadata))
    write_text(path, page)
    return Path(path)


def render(data: ReportData) -> str:
    """The whole page as text."""
    summary = summarise(data)
    for part in summary["classifiers"]:
        part["figures"] = draw_figures(part)
    environment = Environment(
        # Names of domains, classes and methods come from users.
        autoescape=True,
        loader=PackageLoader("coolhead.lab.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    look = {"variables": VARIABLES, "changes": CHANGES, "warmth": WARMTH}
    return environment.get_template("page.html").render(summary | look)
