"""What `apply` says about the data: an alarm, no sign, or that it cannot tell."""

import json

import numpy as np
import pytest

from coolhead.calibrators import AutoCalibrator, TemperatureEnsemble


def fit_and_apply(run, tmp_path, method, predictions, *, garbage=False, labels=True):
    cal, known, new = (tmp_path / name for name in ("c.skops", "known.npz", "new.npz"))
    np.savez(known, **predictions)
    code, _, err = run("fit", known, "--method", method, "--out", cal)
    assert code == 0, err
    return apply(run, cal, new, predictions, garbage=garbage, labels=labels)


def apply(run, cal, new, predictions, *, garbage=False, labels=True):
    arrays = {k: v for k, v in predictions.items() if labels or k != "labels"}
    scale = 100 if garbage else 1
    np.savez(new, **arrays | {"features": predictions["features"] * scale})
    words = ("apply", cal, new, "--out", new.with_suffix(".parquet"))
    code, shown, err = run(*words)
    assert code == 0, err
    drift = " ".join(shown.rsplit("\ndrift", 1)[1].split())
    found = json.loads(run(*words, "--json")[1])
    assert drift[:30] == found["drift"][:30]
    return found


@pytest.mark.parametrize("method", ["auto", "nearest-cluster", "ensemble"])
def test_drift_is_told_for_every_calibrator_with_features(
    run, tmp_path, predictions, method
):
    found = fit_and_apply(run, tmp_path, method, predictions)
    assert found["alarm"] is False
    assert found["drift"].startswith("no drift detected")
    found = fit_and_apply(
        run, tmp_path, method, predictions, garbage=True, labels=False
    )
    assert found["alarm"] is True
    assert found["share_outside"] == 1


def test_one_temperature_cannot_tell_without_labels(run, tmp_path, predictions):
    found = fit_and_apply(
        run, tmp_path, "set-level", predictions, garbage=True, labels=False
    )
    assert found["alarm"] is None
    assert found["share_outside"] is None
    assert found["drift"].startswith("cannot tell")
    assert "features not checked" in found["drift"]


def test_a_calibrator_saved_in_python_knows_what_to_expect(run, tmp_path, predictions):
    rows = predictions["logits"], predictions["labels"]
    given = {
        "features": predictions["features"],
        "sample_domain": predictions["domains"],
    }
    new = tmp_path / "new.npz"
    for cal, alarm in (AutoCalibrator(), True), (TemperatureEnsemble(), None):
        cal.fit(*rows, **given).save(tmp_path / "c.skops")
        found = apply(
            run, tmp_path / "c.skops", new, predictions, garbage=True, labels=False
        )
        assert found["alarm"] is alarm
    assert "what the calibration domains show is not known" in found["drift"]


@pytest.fixture
def days(run, tmp_path, predictions):
    """A calibrator, a usual day, and one from far away."""
    np.savez(tmp_path / "known.npz", **predictions)
    assert run("fit", tmp_path / "known.npz", "--out", tmp_path / "c.skops")[0] == 0
    arrays = {k: v for k, v in predictions.items() if k != "domains"}
    np.savez(tmp_path / "usual.npz", **arrays)
    del arrays["labels"]
    np.savez(tmp_path / "far.npz", **arrays | {"features": 100 * arrays["features"]})
    return tmp_path


def test_drift_ends_with_a_code_for_each_answer(run, days):
    cal = days / "c.skops"
    code, shown, _ = run("drift", cal, days / "usual.npz")
    assert code == 0 and shown.startswith("no drift detected")
    code, shown, _ = run("drift", cal, days / "far.npz", "--json")
    assert code == 4 and json.loads(shown)["alarm"] is True
    np.savez(days / "few.npz", **dict(np.load(days / "far.npz")))
    few = {k: v[:1] for k, v in np.load(days / "far.npz").items()}
    np.savez(days / "few.npz", **few)
    code, shown, _ = run("drift", cal, days / "few.npz")
    assert code == 3 and shown.startswith("cannot tell")
    code, _, complaint = run("drift", cal, days / "no.npz")
    assert code == 1 and "does not exist" in complaint


def test_apply_fails_on_drift_after_it_has_written(run, days):
    words = "apply", days / "c.skops"
    for day, wanted in ("usual", 0), ("far", 4):
        out = days / f"{day}.csv"
        found = run(*words, days / f"{day}.npz", "--out", out, "--fail-if", "drift")
        assert found[0] == wanted and out.exists()
    assert run(*words, days / "far.npz", "--out", out)[0] == 0


def test_a_day_in_two_parts_is_one_day(run, days):
    whole = dict(np.load(days / "usual.npz"))
    words, state = ("drift", days / "c.skops"), days / "state.json"
    for number, part in enumerate((slice(0, 100), slice(100, None))):
        np.savez(days / f"{number}.npz", **{k: v[part] for k, v in whole.items()})
        code, shown, _ = run(*words, days / f"{number}.npz", "--state", state, "--json")
        assert code == 0
    at_once = json.loads(run(*words, days / "usual.npz", "--json")[1])
    assert json.loads(shown) == pytest.approx(at_once)
    code, shown, _ = run(*words, days / "far.npz", "--state", state, "--json")
    assert code == 4 and json.loads(shown)["n_rows"] == 600


def test_a_refused_day_leaves_the_state_as_it_was(run, days):
    words, state = ("drift", days / "c.skops"), days / "state.json"
    run(*words, days / "usual.npz", "--state", state)
    before = state.read_bytes()
    none = {k: v[:0] for k, v in np.load(days / "usual.npz").items()}
    np.savez(days / "empty.npz", **none)
    code, _, complaint = run(*words, days / "empty.npz", "--state", state)
    assert code == 1 and "has no rows" in complaint
    broken = dict(np.load(days / "usual.npz"))
    broken["logits"][-1, 0] = np.nan
    np.savez(days / "broken.npz", **broken)
    code, _, complaint = run(*words, days / "broken.npz", "--state", state)
    assert code == 1 and "NaN" in complaint
    assert state.read_bytes() == before


def test_a_state_of_something_else_is_refused(run, days):
    state = days / "state.json"
    run("drift", days / "c.skops", days / "usual.npz", "--state", state)
    fit = "fit", days / "known.npz", "--method", "set-level", "--out"
    assert run(*fit, days / "other.skops")[0] == 0
    words = "drift", days / "other.skops", days / "usual.npz", "--state"
    code, _, complaint = run(*words, state)
    assert code == 1 and "is the state of another calibrator" in complaint
    state.write_text("[]")
    code, _, complaint = run(*words, state)
    assert code == 1 and "is no state of coolhead drift" in complaint
    code, _, complaint = run(*words, days / "usual.npz")
    assert code == 1 and "wanted .json" in complaint


def test_labels_below_every_domain_are_drift_although_confidence_fell(run, days):
    """Calibrated at every confidence, but right far less often than before."""
    cal, rng = AutoCalibrator(), np.random.default_rng(0)
    domains = np.repeat(["a", "b", "c"], 200)
    logits = np.column_stack([np.full(600, 3.0) + rng.normal(size=600), np.zeros(600)])
    labels = (rng.random(600) > 1 / (1 + np.exp(-logits[:, 0]))).astype(int)
    cal.fit(logits, labels, sample_domain=domains).save(days / "b.skops")
    logits = np.column_stack([rng.normal(size=600) / 3, np.zeros(600)])
    confidence, predicted = cal.confidence(logits)
    right = rng.random(600) < confidence
    labels = np.where(right, predicted, 1 - predicted)
    watch = cal.monitor()
    watch.update(cal.details(logits), labels)
    found = watch.check().of("labels")
    assert found.alarm and "in calibration domains" in found.text
    np.savez(days / "low.npz", logits=logits, labels=labels)
    code, shown, _ = run("drift", days / "b.skops", days / "low.npz", "--json")
    assert code == 4 and json.loads(shown)["alarm"] is True
