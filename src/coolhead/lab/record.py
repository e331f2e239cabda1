"""How a run came about: everything needed to repeat it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coolhead.io.files import write_text
from coolhead.lab.plan import Plan
from coolhead.lab.protocol import Protocol
from coolhead.lab.results import read_json
from coolhead.report.results import describe_machine, package_versions

# What tables and report read of a record, and the kind of each: a table stands for
# its keys, a list for its entries.
TOLD = {
    "command": str,
    "commit": str | None,
    "data_checksum": str | None,
    "date": str,
    "machine": str,
    "n_cells": int,
    "protocol": {
        "title": str,
        "data": {"kind": str},
        "roles": {
            **dict.fromkeys(("source", "calibration", "target"), int),
            "domains": [str],
            "calibrate_on": str,
        },
        "methods": {"names": [str], "clusters": int},
        "classifiers": {},
        "division": {},
        "evaluation": dict.fromkeys(
            ("size", "draws", "bins", "other_bins", "bootstrap"), int
        ),
        "seeds": [int],
        "vary": [str],
        "paper": str | None,
    },
    "versions": {},
}


def write_run_record(
    run: Path, protocol: Protocol, plan: Plan, *, seconds: float
) -> None:
    """Write ``run.json`` beside the results."""
    record = {
        "protocol": protocol.model_dump(mode="json"),
        "data_checksum": plan.checksum,
        "n_cells": len(plan.jobs),
        "seconds_of_last_run": round(seconds, 1),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _commit(),
        "machine": describe_machine(),
        "versions": package_versions(),
    }
    write_text(run / "run.json", json.dumps(record, indent=2))


def read_run_record(run: str | Path) -> dict[str, Any]:
    """Read ``run.json`` of a run folder."""
    path = Path(run) / "run.json"
    if not path.is_file():
        raise ValueError(f"{run} holds no run.json; is it the folder of a run?")
    record = read_json(path)
    missing = list(_missing(record, TOLD))
    if missing:
        raise ValueError(f"{path} is damaged: it has no {', '.join(missing)}")
    return record


def _missing(found: Any, wanted: Any, name: str = "") -> Iterator[str]:
    """Names of what is not there, or is of another kind."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            yield name
            return
        for key, kind in wanted.items():
            place = f"{name}.{key}".lstrip(".")
            if key in found:
                yield from _missing(found[key], kind, place)
            else:
                yield place
    elif isinstance(wanted, list):
        whole = isinstance(found, list) and all(isinstance(v, wanted[0]) for v in found)
        if not whole:
            yield name
    elif not isinstance(found, wanted):
        yield name


def _commit() -> str | None:
    """The commit of the checkout the package runs from, if it runs from one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    folder = Path(__file__).parent
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError:
        return None
    return answer.stdout.strip() or None
