"""The report of a run: one HTML page, and its answer as text."""

from pathlib import Path
from typing import Any

from coolhead.io.files import write_text
from coolhead.lab.record import read_run_record
from coolhead.lab.results import load_scores, read_or_empty
from coolhead.lab.tables.all_tables import all_tables
from coolhead.report.answer import describe_answer
from coolhead.report.page import render
from coolhead.report.results import TABLES
from coolhead.report.summarise import ReportData
from coolhead.report.tables import Table

__all__ = ["write_report"]


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    *,
    tables: list[Table] | None = None,
) -> Path:
    """Write the report of a run, one HTML file that needs no network.

    Parameters
    ----------
    run : str or Path
        Folder of a run, as `coolhead sweep` writes it.
    out : str or Path, default=None
        File to write; ``report.html`` in that folder by default.
    tables : list of Table, default=None
        Tables of that run, if they have been computed already.

    Returns
    -------
    path : Path
        The page.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.lab.protocol_files import check_protocol
    >>> from coolhead.lab.sweep import run_sweep
    >>> sites = ch.datasets.simulate_domains([1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in sites.domain_names:    # logits of a classifier of each
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


def answers(run: str | Path) -> list[str]:
    """Return the answer for every classifier of a run, as text."""
    by_classifier = load_scores(run)
    several = len(by_classifier) > 1
    return [
        (f"Classifier {name}: " if several else "")
        + describe_answer(scores, "split")["sentence"]
        for name, scores in by_classifier.items()
    ]


def load_run(run: str | Path, tables: list[Table] | None = None) -> ReportData:
    """Read the folder of a run; compute its tables unless they are given."""
    record = read_run_record(run)
    frames = {name: read_or_empty(run, name) for name in TABLES}
    if tables is None:
        tables = [] if frames["results"].is_empty() else all_tables(run)
    protocol = record["protocol"]
    return ReportData(
        title=protocol["title"],
        frames=frames,
        tables=tables,
        planned=tuple(protocol["methods"]["names"]),
        facts=_facts(record),
        order=protocol.get("order"),
    )


def _facts(record: dict[str, Any]) -> dict[str, str]:
    protocol = record["protocol"]
    roles, evaluation = protocol["roles"], protocol["evaluation"]
    heads = protocol["classifiers"] or {"given": {"kind": "logits of the user"}}
    return {
        "Command": record["command"],
        "Date": record["date"],
        "Commit": record["commit"] or "not from a checkout",
        "Data": _pairs(protocol["data"]),
        "Data checksum": record["data_checksum"],
        "Domains": ", ".join(roles["domains"]),
        "Roles": f"{roles['source']} source, {roles['calibration']} calibration, "
        f"{roles['target']} target; {record['n_cells']} cells",
        "Division": _pairs(protocol["division"]),
        "Classifiers": "; ".join(f"{n}: {_pairs(s)}" for n, s in heads.items()),
        "Clusters": str(protocol["methods"]["clusters"]),
        "Evaluation": f"ECE with {evaluation['bins']} equal-width bins; "
        f"{evaluation['draws']} draws of {evaluation['size']} rows without "
        f"replacement; paired bootstrap of {evaluation['bootstrap']}",
        "Seeds": ", ".join(map(str, protocol["seeds"]))
        + f" (varying {', '.join(protocol['vary'])})",
        "Versions": _pairs(record["versions"], " "),
        "Machine": record["machine"],
    }


def _pairs(content: dict[str, Any], between: str = " = ") -> str:
    given = {key: value for key, value in content.items() if value is not None}
    return ", ".join(f"{key}{between}{value}" for key, value in given.items())
