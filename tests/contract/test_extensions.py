"""A calibrator, a metric, a data set, a protocol and an option, all from outside.

Nothing of the package is edited; the names in the protocol are enough, also for worker
processes.
"""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import coolhead as ch

OWN = '''
import numpy as np
import coolhead as ch
from coolhead.calibrators import TemperatureCalibrator


class Lukewarm(TemperatureCalibrator):
    """Half way, in log T, from the classifier as it is to set-level scaling."""

    label = "Lukewarm"

    def _learn(self, data):
        fitted = ch.fit_temperature(data.logits, data.labels)
        self.temperature_ = float(np.sqrt(fitted.temperature))
        self.status_ = fitted.status


class Peeping(TemperatureCalibrator):
    takes = ("features", "target")

    def _learn(self, data):
        self.temperature_ = 1.0 + len(data.target.features)
        self.status_ = "converged"


def overconfidence(correct, confidence):
    return float(np.mean(confidence) - np.mean(correct))


def worst_class(labels, probabilities):
    share = np.eye(probabilities.shape[1])[labels].mean(axis=0)
    return float(np.abs(probabilities.mean(axis=0) - share).max())


def five_domains():
    rng = np.random.default_rng(0)
    domains = np.repeat([f"site{i}" for i in range(5)], 80)
    features = rng.normal(size=(400, 6)) + np.repeat(np.arange(5), 80)[:, None] / 4
    labels = (features[:, :3] + rng.gumbel(size=(400, 3))).argmax(axis=1)
    return ch.DomainArchive(features=features, labels=labels, domains=domains)
'''
PROTOCOL = """
name = "mine"
title = "Five sites"

[data]
kind = "python"
load = "python:own_things:five_domains"

[roles]
domains = ["site0", "site1", "site2", "site3", "site4"]
source = 1
calibration = 3
target = 1
arrangement = "cyclic"

[methods]
names = ["uncalibrated", "source-only", "target-only", "set-level",
         "python:own_things:Lukewarm", "python:own_things:Peeping"]
clusters = 2

[classifiers.linear]
kind = "logistic"

[evaluation]
size = 40
class_name = "1"
metrics = ["python:own_things:overconfidence", "python:own_things:worst_class"]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "own_things.py").write_text(OWN)
    (tmp_path / "mine.toml").write_text(PROTOCOL)
    return tmp_path


def coolhead(place, *words):
    code = "from coolhead.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=place,
        env=os.environ | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_everything_of_ones_own_in_one_sweep(place):
    options = ("--set", "evaluation.draws=20", "--set", "evaluation.bootstrap=30")
    done = coolhead(place, "sweep", "mine.toml", "--jobs", "2", *options)
    assert done.returncode == 0, done.stderr
    run = place / "runs" / "mine"
    summary = pl.read_csv(run / "tables" / "summary.csv")
    assert "Lukewarm" in summary["row"].to_list()
    own = pl.read_csv(run / "tables" / "own-metrics.csv")
    found = own.filter(pl.col("row") == "Uncalibrated")["value"][0]
    results = pl.read_parquet(run / "results.parquet")
    plain = results.filter(pl.col("method") == "uncalibrated")
    gap = plain.filter(pl.col("metric") == "signed_gap")["value"].mean()
    assert found == pytest.approx(gap)
    columns = pl.read_csv(run / "tables" / "estimators.csv")["column"].to_list()
    assert {"class-wise", "one class"} <= set(columns)
    for name in ("worst_class", "ece_classwise", "ece_class"):
        assert plain.filter(pl.col("metric") == name)["value"].is_between(0, 1).all()
    assert (run / "report.html").is_file()
    # What sees the target is never recommended.
    assert "Peeping" not in done.stdout.split("Summary")[0]


def test_a_calibrator_of_ones_own_on_the_command_line(place):
    rng = np.random.default_rng(0)
    honest = rng.normal(scale=2, size=(300, 4))
    labels = (honest + rng.gumbel(size=honest.shape)).argmax(axis=1)
    np.savez(place / "p.npz", logits=3 * honest, labels=labels)
    method = "python:own_things:Lukewarm"
    words = ("fit", "p.npz", "--method", method, "--out", "c.skops", "--json")
    done = coolhead(place, *words)
    assert done.returncode == 0, done.stderr
    # The file names a type; nothing is imported because a file says so.
    words = ("apply", "c.skops", "p.npz", "--out", "o.csv")
    done = coolhead(place, *words)
    assert done.returncode == 1 and "coolhead --trust python:MODULE" in done.stderr
    done = coolhead(place, "--trust", method, *words)
    assert done.returncode == 0, done.stderr
    found = pl.read_csv(place / "o.csv")["temperature"]
    expected = np.sqrt(ch.fit_temperature(3 * honest, labels).temperature)
    np.testing.assert_allclose(found, expected)


def test_a_class_of_another_make_is_told_what_to_do(place):
    (place / "other.py").write_text(
        "class Other:\n"
        "    def fit(self, X, y): return self\n"
        "    def predict_proba(self, X): return X\n"
    )
    np.savez(place / "p.npz", logits=np.eye(3) * 3, labels=np.arange(3))
    method = "python:other:Other"
    done = coolhead(place, "fit", "p.npz", "--method", method, "--out", "c.skops")
    assert done.returncode == 1
    assert "makes a Other; wanted a subclass of coolhead.calib" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_names_are_explained(place):
    for wrong, said in (
        ("python:own_things:Nothing", "own_things has no Nothing"),
        ("python:nowhere:Thing", "cannot import nowhere"),
        ("python:own_things", "wanted python:MODULE:NAME"),
    ):
        text = PROTOCOL.replace("python:own_things:overconfidence", wrong)
        (place / "wrong.toml").write_text(text)
        done = coolhead(place, "sweep", "wrong.toml")
        assert done.returncode == 1 and said in done.stderr, done.stderr
    done = coolhead(place, "sweep", "mine.toml", "--set", "evaluation.drawz=3")
    assert done.returncode == 1 and "did you mean" in done.stderr
    done = coolhead(place, "sweep", "mine.toml", "--set", "nothing")
    assert done.returncode == 1 and "KEY=VALUE" in done.stderr
