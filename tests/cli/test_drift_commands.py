"""What `apply` says about the data: an alarm, no sign, or that it cannot tell."""

import json

import numpy as np
import pytest

from coolhead.calibrators import AutoCalibrator
from coolhead.io.calibrators import save_calibrator


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


def test_a_calibrator_saved_without_its_domains_cannot_tell(run, tmp_path, predictions):
    given = {
        "features": predictions["features"],
        "sample_domain": predictions["domains"],
    }
    auto = AutoCalibrator().fit(predictions["logits"], predictions["labels"], **given)
    save_calibrator(auto, tmp_path / "c.skops")
    new = tmp_path / "new.npz"
    found = apply(
        run, tmp_path / "c.skops", new, predictions, garbage=True, labels=False
    )
    assert found["alarm"] is None
    assert "what the calibration domains show is not known" in found["drift"]
