"""The example package: installed, its method is one like any other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import distributed
import numpy as np
import polars as pl
import pytest

PACKAGE = Path(__file__).parents[2] / "examples" / "own-method"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the protocol, and the package installed beside it."""
    folder = tmp_path_factory.mktemp("own")
    source = shutil.copytree(PACKAGE, folder / "source")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--target")
    command = [sys.executable, "-m", "pip", "install", *options, folder / "installed"]
    subprocess.run([*command, source], check=True, capture_output=True)
    shutil.copy(source / "five-sites.toml", folder)
    return folder


def coolhead(place, *words):
    seen = os.pathsep.join([str(place / "installed"), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", "from coolhead.cli import main; main()", *words],
        cwd=place,
        env=os.environ | {"PYTHONPATH": seen, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_a_sweep_on_two_processes_and_on_dask(place, monkeypatch):
    done = coolhead(place, "sweep", "five-sites.toml", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    home = place / "runs" / "five-sites"
    assert "Lukewarm" in pl.read_csv(home / "tables" / "summary.csv")["row"].to_list()
    assert "Lukewarm" in (home / "report.html").read_text()
    seen = os.pathsep.join([str(place / "installed"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", seen)  # of the worker, a process of its own
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        words = ("--scheduler", cluster.scheduler_address, "--folder", "dask")
        done = coolhead(place, "sweep", "five-sites.toml", *words)
    assert done.returncode == 0, done.stderr
    there = place / "dask" / "five-sites" / "results.parquet"
    assert there.read_bytes() == (home / "results.parquet").read_bytes()


def test_on_the_command_line(place):
    rng = np.random.default_rng(0)
    honest = rng.normal(scale=2, size=(300, 4))
    labels = (honest + rng.gumbel(size=honest.shape)).argmax(axis=1)
    domains = np.repeat(["a", "b", "c"], 100)
    np.savez(place / "p.npz", logits=3 * honest, labels=labels, domains=domains)
    done = coolhead(place, "compare", "p.npz", "--methods", "lukewarm,set-level")
    assert done.returncode == 0 and "lukewarm" in done.stdout, done.stderr
    wrong = coolhead(place, "compare", "p.npz", "--methods", "lukewarmm")
    assert "did you mean 'lukewarm'?" in wrong.stderr


def test_it_takes_few_lines():
    own = ("five_sites.py", "five-sites.toml")
    lines = [line for name in own for line in (PACKAGE / name).read_text().splitlines()]
    code = [line for line in lines if line.strip() and not line.startswith('"""')]
    assert len(code) <= 20
