"""On two worker processes, one of which may die."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from spread_rows import distributed, make_rows

import coolhead.dask
from coolhead.calibrators.ensemble import TemperatureEnsemble

# One cluster, even where the tests themselves are spread over processes.
pytestmark = pytest.mark.xdist_group("dask")


def test_fit_and_evaluate(client):
    rows = make_rows(20, 6000)
    spread = {name: array.persist() for name, array in distributed(rows).items()}
    found = coolhead.dask.fit(TemperatureEnsemble(n_clusters=3), **spread)
    wanted = TemperatureEnsemble(n_clusters=3).fit(**rows)
    inputs = rows["logits"], rows["features"]
    np.testing.assert_allclose(
        found.temperature(*inputs), wanted.temperature(*inputs), rtol=1e-7
    )
    score = coolhead.dask.evaluate(
        found, spread["logits"], spread["labels"], features=spread["features"]
    )
    sure, predicted = found.confidence(*inputs)
    error = coolhead.expected_calibration_error(predicted == rows["labels"], sure)
    assert score.expected_calibration_error == pytest.approx(error, abs=1e-6)


def test_a_killed_worker_changes_nothing(tmp_path):
    # A process of its own: were the cluster never to answer, the suite would not end.
    script = Path(__file__).with_name("one_worker_dies.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "visits")],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "the same temperature" in done.stdout, done.stderr[-2000:]
