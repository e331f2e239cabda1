"""`coolhead fit` and `export` for every method that needs calibration rows alone."""

import json

import numpy as np
import pytest

from command_line import simulate_predictions
from coolhead.cli.fit import DEFAULT_METHOD, method_names
from coolhead.io.calibrators import load_calibrator
from coolhead.methods import find_method

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


@pytest.mark.parametrize("name", method_names())
def test_fit_then_export(run, npz, predictions, tmp_path, name):
    pytest.importorskip("onnxruntime")
    cal, graph = tmp_path / "cal.skops", tmp_path / "cal.onnx"
    code, printed, complaint = run("fit", npz, "--method", name, "--out", cal, "--json")
    assert code == 0, complaint
    answer = json.loads(printed)
    assert answer["method"] == name and answer["status"]
    fitted = load_calibrator(cal)
    assert type(fitted) is find_method(name).maker
    code, _, complaint = run("export", cal, "--onnx", graph)
    assert code == 0, complaint
    assert graph.stat().st_size > 0


@pytest.fixture
def training(tmp_path):
    path = tmp_path / "training.npz"
    np.savez(path, features=simulate_predictions(seed=3)["features"])
    return path


@pytest.mark.parametrize("calibrate_on", [None, "product,real"])
@pytest.mark.parametrize("with_reference", [False, True])
def test_source_and_reference_reach_the_default(
    run, npz, training, tmp_path, calibrate_on, with_reference
):
    cal = tmp_path / "cal.skops"
    words = ["fit", npz, "--source", "clipart", "--out", cal, "--json"]
    words += [] if calibrate_on is None else ["--calibrate-on", calibrate_on]
    words += ["--reference", training] if with_reference else []
    code, printed, complaint = run(*words)
    assert code == 0, complaint
    answer = json.loads(printed)
    assert answer["method"] == DEFAULT_METHOD == "auto"
    assert answer["source"] == ["clipart"]
    fitted = load_calibrator(cal)
    assert "source-only" in fitted.names_
    assert ("no reference_features" in fitted.status_) != with_reference
    assert sorted(fitted.domains_) == ["product", "real"]
    # What left-out domains tell is kept for `coolhead expect`.
    assert sorted(fitted.evidence_.domains) == ["product", "real"]


def test_a_source_is_refused_where_it_would_be_mistaken(run, npz, training, tmp_path):
    words = ["fit", npz, "--method", "set-level", "--out", tmp_path / "c.skops"]
    code, _, complaint = run(*words, "--source", "clipart")
    assert code == 2 and "TemperatureScaling treats all domains alike" in complaint
    code, _, complaint = run(*words, "--reference", training)
    assert code == 2 and "does not look at training rows" in complaint
    code, _, complaint = run("fit", npz, "--out", tmp_path / "c.skops", "--source", "x")
    assert code == 1 and "source_domain names x" in complaint
    code, _, complaint = run(
        "fit", npz, "--out", tmp_path / "c.skops", "--reference", tmp_path / "no.npz"
    )
    assert code == 1 and "does not exist" in complaint
