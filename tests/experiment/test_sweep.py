"""Sweeps: same numbers in any order, after any kill, and no failure hidden."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_world import DOMAINS, make_archive, protocol_content, write_toml

from coolhead.lab import sweep
from coolhead.lab.plan import make_plan
from coolhead.lab.protocol import Protocol
from coolhead.lab.record import read_run_record
from coolhead.lab.results import read_table, table_path
from coolhead.lab.sweep import run_sweep
from coolhead.report.results import TABLES

REPEATABLE = [name for name in TABLES if name != "runtimes"]


def contents(run: Path) -> dict[str, bytes]:
    return {name: table_path(run, name).read_bytes() for name in REPEATABLE}


@pytest.fixture
def finished(small_protocol, tmp_path):
    return run_sweep(small_protocol, tmp_path / "serial", jobs=1)


def test_every_cell_and_method_has_its_rows(finished, small_protocol):
    assert (finished.n_cells, finished.n_failed) == (12, 0)
    results = read_table(finished.run, "results")
    counted = results.group_by("split", "method").len()
    assert len(counted) == 12 * len(small_protocol.methods.names)
    assert results["value"].is_finite().all()
    assert read_run_record(finished.run)["protocol"]["name"] == "small"


def test_parallel_gives_the_bytes_of_serial(finished, small_protocol, tmp_path):
    other = run_sweep(small_protocol, tmp_path / "parallel", jobs=2)
    assert contents(other.run) == contents(finished.run)


def test_a_second_run_computes_nothing(finished, small_protocol, tmp_path):
    cells = sorted((finished.run / "cells").iterdir())
    before = [path.stat().st_mtime_ns for path in cells]
    again = run_sweep(small_protocol, tmp_path / "serial", jobs=1)
    assert again.n_found == 12
    assert [path.stat().st_mtime_ns for path in cells] == before


def test_a_changed_setting_is_computed_anew(finished, small_protocol, tmp_path):
    methods = small_protocol.methods.model_copy(update={"clusters": 2})
    changed = small_protocol.model_copy(update={"methods": methods})
    again = run_sweep(changed, tmp_path / "serial", jobs=1)
    assert again.n_found == 0
    assert len(read_table(again.run, "shift")["split"].unique()) == 12


def test_seeds_multiply_cells_and_change_numbers(small_protocol, tmp_path):
    seeds = small_protocol.model_copy(update={"seeds": (0, 1)})
    outcome = run_sweep(seeds, tmp_path, jobs=1)
    assert outcome.n_cells == 24
    ece = read_table(outcome.run, "results").filter(
        pl.col("metric") == "ece_mean", pl.col("method") == "set-level"
    )
    first, second = (ece.filter(pl.col("seed") == seed)["value"] for seed in (0, 1))
    assert (first != second).all()


def test_changed_data_is_noticed(finished, small_protocol, tmp_path, world):
    make_archive(random_state=99).save(world / f"source={DOMAINS[0]}.safetensors")
    again = run_sweep(small_protocol, tmp_path / "serial", jobs=1)
    assert again.n_found == 9


@pytest.mark.parametrize("column", ["logits", "features"])
@pytest.mark.parametrize("rows", [[500], range(480, 640)], ids=["one", "a domain"])
def test_a_value_that_went_bad_after_the_plan_names_the_file(
    small_protocol, tmp_path, world, monkeypatch, column, rows
):
    path = world / "source=north.safetensors"
    good = make_archive(random_state=0)
    values = np.array(getattr(good, column))
    values[rows] = 12345.0
    good.replace(**{column: values}).save(tmp_path / "bad.safetensors")
    found = (tmp_path / "bad.safetensors").read_bytes()
    marked, missing = np.float32([12345.0, np.nan])
    damaged = found.replace(marked.tobytes(), missing.tobytes())

    def plan_and_damage(*arguments):
        plan = make_plan(*arguments)
        path.write_bytes(damaged)
        return plan

    monkeypatch.setattr(sweep, "make_plan", plan_and_damage)
    outcome = run_sweep(small_protocol, tmp_path / "runs", jobs=1)
    assert outcome.n_failed == (1 if len(rows) == 1 else 3)
    for line in outcome.errors:
        assert f"{path}: {column} contains NaN in row {rows[0]}" in line


def test_a_failing_method_is_recorded_and_the_others_go_on(world, tmp_path):
    for name in DOMAINS:
        path = world / f"source={name}.safetensors"
        make_archive(features=None).save(path)
    protocol = Protocol.model_validate(protocol_content(world))
    outcome = run_sweep(protocol, tmp_path, jobs=1)
    assert outcome.n_failed == 12
    failures = read_table(outcome.run, "failures")
    assert set(failures["method"]) == {"nearest-cluster", "regression", "ensemble"}
    assert failures["error"].str.contains("features").all()
    assert "set-level" in set(read_table(outcome.run, "results")["method"])


def test_a_failed_cell_is_tried_again(world, tmp_path, monkeypatch):
    protocol = Protocol.model_validate(protocol_content(world))
    import coolhead.lab.sweep as sweep_module

    whole = sweep_module.evaluate_cell

    def broken(archive, small, split, *args, **kwargs):
        if split.target == ("west",):
            raise RuntimeError("lost the west")
        return whole(archive, small, split, *args, **kwargs)

    monkeypatch.setattr(sweep_module, "evaluate_cell", broken)
    outcome = run_sweep(protocol, tmp_path, jobs=1)
    assert outcome.n_failed == 3
    assert set(read_table(outcome.run, "failures")["error"]) == {
        "RuntimeError: lost the west"
    }
    monkeypatch.undo()
    again = run_sweep(protocol, tmp_path, jobs=1)
    assert (again.n_found, again.n_failed) == (9, 0)


def coolhead(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from coolhead.cli import main; main()", *arguments]


def test_killed_and_resumed_gives_the_same_bytes(world, tmp_path, finished):
    toml = write_toml(tmp_path / "small.toml", protocol_content(world))
    command = coolhead(
        "sweep", str(toml), "--jobs", "1", "--folder", str(tmp_path / "killed")
    )
    run = tmp_path / "killed" / "small"
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not cells_of(run):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    left = cells_of(run)
    assert 0 < len(left) < 12
    subprocess.run(command, check=True, capture_output=True)
    assert contents(run) == contents(finished.run)
    assert all(path.stat().st_mtime_ns == left[path] for path in left)


def cells_of(run: Path) -> dict[Path, int]:
    found = run.glob("cells/[!.]*.json")
    return {
        path: path.stat().st_mtime_ns
        for path in found
        if not path.name.endswith(".runtimes.json")
    }


def test_failures_make_the_command_fail(world, tmp_path):
    (world / f"source={DOMAINS[1]}.safetensors").write_bytes(b"broken")
    toml = write_toml(tmp_path / "small.toml", protocol_content(world))
    answer = subprocess.run(
        coolhead("sweep", str(toml), "--folder", str(tmp_path)),
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 1
    assert "source=east" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_help_is_light():
    code = (
        "import sys; from coolhead.cli.commands import application; application();"
        "heavy = {'numpy', 'sklearn', 'polars', 'torch', 'pydantic', 'matplotlib'};"
        "print(heavy & set(sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert answer.stdout.strip() == "set()"
