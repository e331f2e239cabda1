"""On two worker processes, one of which may die."""

import os
import signal

import dask.array as da
import numpy as np
import pytest

import coolhead.dask
from conftest import distributed, make_rows
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


def one_death(block: np.ndarray, marker: str, block_info=None) -> np.ndarray:
    """Kill the worker the third time that the middle block is asked for."""
    if block_info[0]["chunk-location"][0] == 4:
        with open(marker, "ab+") as file:
            file.write(b".")
            visits = file.tell()
        if visits == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_killed_worker_changes_nothing(client, tmp_path):
    rows = make_rows(7, 8000)
    labels = da.from_array(rows["labels"], chunks=1000)
    plain = da.from_array(rows["logits"], chunks=(1000, 8))
    wanted = coolhead.dask.fit_temperature(plain, labels)
    marker = tmp_path / "visits"
    risky = plain.map_blocks(
        one_death, str(marker), dtype=plain.dtype, meta=plain._meta
    )
    found = coolhead.dask.fit_temperature(risky, labels)
    assert marker.stat().st_size > 3  # the killer struck, the block was read again
    assert found == wanted
    client.wait_for_workers(2)
