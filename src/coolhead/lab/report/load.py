"""What a report is made of: the tables of a run and the record of how it came about."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from coolhead.lab.record import read_run_record
from coolhead.lab.results import TABLES, read_or_empty
from coolhead.lab.tables.all_tables import all_tables
from coolhead.lab.tables.table import Table


@dataclass(frozen=True)
class ReportData:
    """Everything the page shows.

    Attributes
    ----------
    title : heading of the page.
    frames : {name: table} by the names of `coolhead.lab.results`.
    tables : the finished tables, in order.
    planned : names of the methods that were asked for.
    facts : what is needed to repeat it, {name: text}.
    noun : what a row of the results is called: "split" or "domain".
    judged : the rows the answer rests on, where not on all: domains that the
        calibrator has not seen.
    order : along what the list of domains runs, if along something.
    """

    title: str
    frames: dict[str, pl.DataFrame]
    tables: list[Table]
    planned: tuple[str, ...]
    facts: dict[str, str]
    noun: str = "split"
    judged: tuple[str, ...] | None = None
    order: str | None = None


def load_run(run: str | Path, tables: list[Table] | None = None) -> ReportData:
    """Read the folder of a run; its tables are made unless they are given."""
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
