"""How a run came about: everything needed to repeat it."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coolhead.io.files import write_text
from coolhead.lab.plan import Plan
from coolhead.lab.protocol import Protocol
from coolhead.lab.results import read_json
from coolhead.report.results import describe_machine, package_versions

# What tables and report read of a record, and of the protocol in it.
TOP = ("command", "commit", "data_checksum", "date", "machine", "n_cells", "versions")
PROTOCOL = (
    *("title", "data", "roles", "methods", "classifiers", "division", "evaluation"),
    *("seeds", "vary", "paper"),
)


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
    record = read_json(path, "protocol", "versions")
    missing = [name for name in TOP if name not in record]
    missing += [f"protocol.{n}" for n in PROTOCOL if n not in record["protocol"]]
    if missing:
        raise ValueError(f"{path} is damaged: it has no {', '.join(missing)}")
    return record


def _commit() -> str | None:
    """The commit of the checkout the package runs from, if it runs from one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    folder = Path(__file__).parent
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError:
        return None
    return answer.stdout.strip() or None
