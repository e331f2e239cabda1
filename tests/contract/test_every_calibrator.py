"""One contract for every calibrator: the same answers on every path.

The list is generated from the package. torch and ONNX Runtime are compared in
tests/torch_module/test_torch_agreement.py, over the same list and the same problems.
"""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import coolhead as ch
from contract.problems import EVERY, PROBLEMS, calibrators, fitted_parts
from coolhead.calibrators.data import KINDS
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.evaluate import evaluate_domains
from coolhead.io.archive import DomainArchive

ROOT = Path(__file__).parents[2]
PLAIN = calibrators()


def query(problem):
    rows = PROBLEMS[problem]
    return rows["logits"], rows["features"]


each = pytest.mark.parametrize("name", EVERY)
everywhere = pytest.mark.parametrize("problem", PROBLEMS)


@each
def test_it_says_what_it_takes(name):
    calibrator = EVERY[name]
    assert set(calibrator.takes) <= set(KINDS)
    assert isinstance(calibrator.uses_features, bool)
    if calibrator.uses_features:
        assert "features" in calibrator.takes


@each
@everywhere
def test_every_answer_is_finite_and_agrees(fits, name, problem):
    calibrator = fits(name, problem)
    logits, features = query(problem)
    probabilities = calibrator.predict_proba(logits, features)
    confidence, predicted = calibrator.confidence(logits, features)
    details = calibrator.details(logits, features)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(confidence, probabilities.max(axis=1), atol=1e-6)
    rows = np.arange(len(predicted))
    np.testing.assert_allclose(
        probabilities[rows, predicted], probabilities.max(axis=1), atol=1e-6
    )
    np.testing.assert_allclose(details.probabilities, probabilities, atol=1e-6)
    if hasattr(calibrator, "temperature"):
        temperature = calibrator.temperature(logits, features)
        assert (temperature > 0).all() and np.isfinite(temperature).all()
        np.testing.assert_array_equal(details.temperature, temperature)
    else:
        assert details.temperature is None
    assert np.size(calibrator.status_) and np.all(np.asarray(calibrator.status_) != "")


@each
@everywhere
def test_dask_gives_the_same(fits, name, problem):
    da = pytest.importorskip("dask.array")
    calibrator = fits(name, problem)
    logits, features = query(problem)
    blocks = [da.from_array(rows, chunks=(100, -1)) for rows in (logits, features)]
    found = ch.dask.predict_proba(calibrator, *blocks).compute()
    wanted = calibrator.predict_proba(logits, features)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    if hasattr(calibrator, "temperature"):
        found = ch.dask.temperature(calibrator, *blocks).compute()
        wanted = calibrator.temperature(logits, features)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    else:
        with pytest.raises(TypeError, match=type(calibrator).__name__):
            ch.dask.temperature(calibrator, *blocks)


@each
def test_scores_are_the_same_in_memory_and_on_dask(fits, name):
    da = pytest.importorskip("dask.array")
    calibrator = fits(name)
    logits, features = query("ordinary")
    labels = PROBLEMS["ordinary"]["labels"]
    rows = DomainArchive(logits, features, labels)
    (alone,) = evaluate_domains(calibrator, rows, n_draws=10)
    blocks = [da.from_array(part).rechunk({0: 100}) for part in (logits, labels)]
    columns = {"features": da.from_array(features, chunks=(100, -1))}
    found = ch.dask.evaluate(calibrator, *blocks, **columns)
    assert found.accuracy == pytest.approx(alone.accuracy)
    assert found.mean_confidence == pytest.approx(alone.confidence, abs=1e-6)
    error = found.expected_calibration_error
    assert error == pytest.approx(alone.ece_after.estimate, abs=1e-6)
    loss = found.negative_log_likelihood
    assert loss == pytest.approx(alone.nll_after, rel=1e-5)


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
@each
def test_dask_fits_it_or_refuses_by_name(name):
    da = pytest.importorskip("dask.array")
    rows = PROBLEMS["ordinary"]
    calibrator = clone(EVERY[name])
    given = rows["logits"], rows["labels"]
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(rows["labels"]))
    per_row = {
        "features": rows["features"],
        "sample_domain": rows["domains"],
        "sample_weight": weights,
    }
    beside = {"reference_features": rows["reference"], "source_domain": rows["source"]}

    def on_dask(calibrator, **beside):
        blocks = [da.from_array(part).rechunk({0: 100}) for part in given]
        columns = {k: da.from_array(v).rechunk({0: 100}) for k, v in per_row.items()}
        return ch.dask.fit(calibrator, *blocks, **columns, **beside)

    if "source" not in calibrator.takes:
        source = {"source_domain": beside.pop("source_domain")}
        with pytest.raises(ValueError, match="treats all domains alike"):
            on_dask(calibrator, **beside, **source)
    refused = (TypeError, "is not fitted: it moves a fitted calibrator")
    if "target" in calibrator.takes:
        refused = (ValueError, "target_features is missing")
    elif not isinstance(calibrator, OffsetTemperature):
        refused = None
    if refused is not None:
        with pytest.raises(refused[0], match=refused[1]):
            on_dask(calibrator, **beside)
        return
    found = on_dask(calibrator, **beside)
    alone = clone(EVERY[name]).fit(*given, **per_row, **beside)
    np.testing.assert_allclose(
        found.predict_proba(rows["logits"], rows["features"]),
        alone.predict_proba(rows["logits"], rows["features"]),
        atol=1e-5,
    )


@each
def test_coverage_is_reported_or_refused_by_name(fits, name):
    calibrator = fits(name)
    logits, features = query("ordinary")
    details = calibrator.details(logits, features)
    if not calibrator.uses_features:
        assert details.covered is None
        with pytest.raises(ValueError, match=type(calibrator).__name__):
            calibrator.coverage(features)
        return
    inside, outside = calibrator.coverage(features), calibrator.coverage(100 * features)
    assert inside.share_outside < 0.1
    # For a calibrator that looks at directions alone, length is no shift.
    assert outside.share_outside > 0.9 or "l2" in name
    assert np.array_equal(~inside.outside, details.covered)


@each
def test_the_drift_monitor_watches_it(fits, name):
    calibrator = fits(name)
    rows = PROBLEMS["ordinary"]
    monitor = ch.DriftMonitor.for_calibrator(
        calibrator, rows["features"], rows["domains"]
    )
    assert str(monitor.check()).startswith("cannot tell")
    far = 100 * rows["features"]
    monitor.update(calibrator.details(rows["logits"], far), features=far)
    assert monitor.check().alarm or "l2" in name


@each
def test_falling_confidence_and_wrong_answers_alarm(fits, name):
    calibrator = fits(name)
    rows = PROBLEMS["ordinary"]
    logits, features, labels = rows["logits"], rows["features"], rows["labels"]
    monitor = ch.DriftMonitor.for_calibrator(
        calibrator, features, rows["domains"], logits=logits, labels=labels
    )

    def alarms(logits, labels):
        watch = ch.DriftMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
        watch.update(calibrator.details(logits, features), labels, features=features)
        return {found.kind for found in watch.check().findings if found.alarm}

    assert alarms(logits, labels) == set()
    assert "confidence" in alarms(logits / 100, None)
    assert "labels" in alarms(logits, (logits.argmax(axis=1) + 1) % logits.shape[1])


@each
def test_saved_pickled_and_cloned(fits, name, tmp_path):
    calibrator = fits(name)
    logits, features = query("ordinary")
    wanted = calibrator.predict_proba(logits, features)
    again = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(again.predict_proba(logits, features), wanted)
    ch.save_calibrator(calibrator, tmp_path / "cal.skops")
    loaded = ch.load_calibrator(tmp_path / "cal.skops")
    np.testing.assert_array_equal(loaded.predict_proba(logits, features), wanted)
    for part, found in zip(fitted_parts(calibrator), fitted_parts(loaded), strict=True):
        np.testing.assert_equal(found, part)
    with pytest.raises(NotFittedError):
        clone(calibrator).predict_proba(logits, features)


@each
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_arrays(fits, name, frame):
    calibrator = fits(name)
    logits, features = query("ordinary")
    found = calibrator.predict_proba(frame(logits), frame(features))
    wanted = calibrator.predict_proba(logits, features)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@each
def test_no_rows_give_no_rows(fits, name):
    calibrator = fits(name)
    logits, features = query("ordinary")
    assert calibrator.predict_proba(logits[:0], features[:0]).shape == (0, 6)
    assert calibrator.confidence(logits[:0], features[:0])[0].shape == (0,)


@each
def test_the_command_line_applies_and_inspects_it(fits, run, name, tmp_path):
    calibrator = fits(name)
    logits, features = query("ordinary")
    ch.save_calibrator(calibrator, tmp_path / "cal.skops")
    np.savez(tmp_path / "new.npz", logits=logits, features=features)
    saved, new, out = (tmp_path / name for name in ("cal.skops", "new.npz", "p.npy"))
    code, printed, complaint = run("apply", saved, new, "--out", out, "--json")
    assert code == 0, complaint
    np.testing.assert_allclose(
        np.load(tmp_path / "p.npy"),
        calibrator.predict_proba(logits, features),
        atol=1e-6,
    )
    shown = json.loads(printed)
    # Rows like those of the calibration; without evidence there is no all-clear.
    assert not shown["alarm"]
    assert hasattr(calibrator, "evidence_") or shown["alarm"] is None
    assert shown["drift"].startswith("cannot tell") == (shown["alarm"] is None)
    code, printed, complaint = run("inspect", saved, "--json")
    assert code == 0, complaint
    found = json.loads(printed)["calibrator"]
    assert found["class"] == type(calibrator).__name__
    assert found["status"]


def test_the_page_of_who_can_do_what_is_true():
    sys.path.insert(0, str(ROOT / "scripts"))
    import write_capabilities

    assert {row.name for row in write_capabilities.capabilities()} == set(PLAIN)
    assert write_capabilities.PAGE.read_text() == write_capabilities.page()
