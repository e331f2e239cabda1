"""From a fit to a service in few lines: a table, a network, and files alone."""

import csv
import os
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import coolhead as ch
from coolhead.numerics.softmax import softmax

FOLDER = Path(__file__).parents[2] / "examples" / "whole-way"
RUN = [sys.executable, "-W", "error::DeprecationWarning"]


def lines_of(name):
    text = (FOLDER / name).read_text().split('"""')[-1]
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table.py", "torch_network.py"])
def test_a_script_shows_the_whole_way(name, tmp_path):
    assert len(lines_of(name)) <= 15
    found = subprocess.run(
        [*RUN, FOLDER / name],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert found.returncode == 0, found.stderr
    verdict, drift, *_ = found.stdout.splitlines()
    assert "expected accuracy" in verdict and "and 20 labels" in verdict
    assert "rows lie outside the calibration data" in drift
    assert any(tmp_path.iterdir())


def test_files_alone(tmp_path):
    data = ch.datasets.simulate_domains([1.2, 1.5, 1.8, 1.6])
    classes = "lives", "dies", "unknown"
    known, new = data.rows(data.domains != "site-3"), data.select("site-3")
    write(tmp_path / "known.csv", known, classes, labels=True)
    write(tmp_path / "new.csv", new, classes, labels=False)
    commands = [shlex.split(line) for line in lines_of("files.sh")]
    assert len(commands) <= 8
    printed = {}
    for program, command, *words in commands:
        assert program == "coolhead"
        if command == "update":
            fill(tmp_path / "todo.csv", [classes[label] for label in new.labels])
        found = subprocess.run(
            [sys.executable, "-m", "coolhead", command, *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        # Confidence alone cannot tell that there is no drift.
        assert found.returncode == (3 if command == "drift" else 0), found.stderr
        printed[command] = found.stdout
    assert "no features: one temperature for all rows" in printed["fit"]
    assert "needed 75 %" in printed["expect"]
    assert "20 labels" in printed["update"]
    served = pl.read_csv(tmp_path / "served.csv")
    assert set(served["predicted"]) <= set(classes) and len(served) == len(new)


def write(path, rows, classes, *, labels):
    scores = softmax(rows.logits, 1.0)
    table = {f"prob_{name}": scores[:, k] for k, name in enumerate(classes)}
    if labels:
        table["label"] = [classes[label] for label in rows.labels]
        table["domain"] = rows.domains
    pl.DataFrame(table).write_csv(path)


def fill(path, labels):
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows({**line, "label": labels[int(line["row"])]} for line in lines)
