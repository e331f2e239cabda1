"""How a run came about: everything needed to repeat it."""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coolhead.experiment.plan import Plan
from coolhead.experiment.protocol import Protocol
from coolhead.experiment.results import read_json
from coolhead.files import atomic_path

# What tables and report read of a record, and of the protocol in it.
TOLD = ("command", "commit", "data_checksum", "date", "machine", "n_cells")
ASKED = (
    *("title", "data", "roles", "methods", "classifiers", "division"),
    *("evaluation", "seeds", "vary", "paper"),
)
PACKAGES = ("coolhead", "numpy", "scipy", "scikit-learn", "polars", "joblib", "torch")


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
    with atomic_path(run / "run.json") as temporary:
        temporary.write_text(json.dumps(record, indent=2), encoding="utf-8")


def read_run_record(run: str | Path) -> dict[str, Any]:
    """Read ``run.json`` of a run folder."""
    path = Path(run) / "run.json"
    if not path.is_file():
        raise ValueError(f"{run} holds no run.json; is it the folder of a run?")
    record = read_json(path, "protocol", "versions")
    missing = [key for key in TOLD if key not in record]
    missing += [key for key in ASKED if key not in record["protocol"]]
    if missing:
        raise ValueError(f"{path} is damaged: it has no {', '.join(missing)}")
    return record


def describe_machine() -> str:
    """Cores, processor architecture and operating system."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide the numbers."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _commit() -> str | None:
    """The commit of the checkout the package runs from, if it runs from one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    folder = Path(__file__).parent
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError:
        return None
    return answer.stdout.strip() or None
