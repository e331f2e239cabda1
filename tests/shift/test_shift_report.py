"""Coverage of a batch, and the report a person reads."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.shift import coverage, find_regions, shift_report


def rows(n_rows, step=0.0, seed=0):
    return np.random.default_rng(seed).normal(step, size=(n_rows, 6))


def test_own_data_is_inside():
    calibration = rows(3000)
    assert coverage(calibration, calibration).share_outside == pytest.approx(
        0.01, abs=0.005
    )
    assert coverage(rows(3000, seed=1), calibration).share_outside < 0.03


def test_far_batch_is_outside():
    found = coverage(rows(200, step=30), rows(3000))
    assert found.share_outside == 1
    assert found.outside.all()
    assert "100.0%" in str(found)


def test_coverage_by_hand():
    regions = SimpleNamespace(
        radii=np.array([1.0, 2.0]),
        assign=lambda batch: (np.array([0, 1, 1]), np.array([2.0, 2.0, 1.0])),
    )
    found = coverage(np.zeros((3, 1)), regions)
    np.testing.assert_allclose(found.relative_distance, [2, 1, 0.5])
    assert found.share_outside == pytest.approx(1 / 3)


@pytest.mark.parametrize("size", [1e18, 1e38, 1e160, 1e300])
def test_regions_of_huge_features_do_not_overflow(size):
    calibration = rows(300) * size
    if size < 1e38:
        calibration = calibration.astype(np.float32)
    with np.errstate(over="ignore"):
        assert np.isfinite(find_regions(calibration).centers).all()
    # Squares beyond the largest number: infinitely far, without a warning.
    assert coverage(rows(9) * 1e200, rows(300)).share_outside == 1


def test_a_stray_row_is_no_region():
    calibration = np.concatenate([rows(300), np.full((1, rows(1).shape[1]), 1e3)])
    regions = find_regions(calibration)
    assert (regions.radii > 0.5).all()
    assert coverage(np.full((1, rows(1).shape[1]), 1e3), regions).share_outside == 1


def test_coverage_of_a_fitted_calibrator():
    calibration, rng = rows(600), np.random.default_rng(2)
    calibrator = NearestClusterTemperature(3, n_init=1)
    calibrator.fit(
        rng.normal(size=(600, 4)), rng.integers(0, 4, 600), features=calibration
    )
    assert coverage(calibration, calibrator).share_outside < 0.05
    assert coverage(rows(50, step=20), calibrator).share_outside == 1


def test_identical_rows():
    same = np.ones((40, 3))
    assert coverage(same, same).share_outside == 0
    assert coverage(same + 1, same).share_outside == 1
    assert len(find_regions(same).radii) == 1


def test_report_reads_well():
    calibration, target = rows(800), rows(500, step=0.5, seed=1)
    report = shift_report(
        calibration,
        target,
        sample_domain=np.repeat(["a", "b"], 400),
        losses=np.random.default_rng(3).exponential(size=800),
    )
    text = str(report)
    for part in ("AUROC", "Var(w)", "d₂", "effective sample", "domain a", "at most"):
        assert part in text
    assert report.n_target == 500
    assert set(report.domains) == {"a", "b"}


def test_report_flags_a_far_target():
    report = shift_report(rows(400), rows(300, step=8))
    assert report.unreliable
    assert any("outside" in flag for flag in report.flags)
    assert any("separates" in flag for flag in report.flags)
    assert "!" in str(report)


def test_report_of_archives_reads_losses_and_domains():
    rng = np.random.default_rng(0)
    seen = SimpleNamespace(
        features=rows(300),
        domains=np.repeat(["x", "y"], 150),
        logits=rng.normal(size=(300, 3)),
        labels=rng.integers(0, 3, 300),
    )
    # Of the target only the features may be read.
    unseen = SimpleNamespace(features=rows(200, seed=4))
    report = shift_report(seen, unseen)
    assert report.bounds is not None
    assert set(report.domains) == {"x", "y"}


def test_refuses_bad_batches():
    with pytest.raises(ValueError, match="batch must have shape"):
        coverage(np.zeros(3), rows(50))
    with pytest.raises(ValueError, match="row 1"):
        coverage(np.array([[0.0], [np.nan]]), np.zeros((5, 1)))
    with pytest.raises(ValueError, match="target has 3 columns, calibration has 6"):
        shift_report(rows(50), np.zeros((9, 3)))
    with pytest.raises(ValueError, match="target is missing"):
        shift_report(rows(50), None)
    with pytest.raises(ValueError, match="batch has 2 columns, calibration has 6"):
        coverage(rows(9)[:, :2], rows(50))
    with pytest.raises(ValueError, match="n_clusters is 0"):
        coverage(rows(9), rows(50), n_clusters=0)
    with pytest.raises(ValueError, match="one domain per row"):
        shift_report(rows(50), rows(50), sample_domain=["a"] * 4)
    with pytest.raises(ValueError, match="one loss per weight"):
        shift_report(rows(50), rows(50), losses=np.ones(4))


class TestCalibrators:
    def fitted(self, calibrator):
        rng = np.random.default_rng(2)
        logits, labels = rng.normal(size=(600, 4)), rng.integers(0, 4, 600)
        return calibrator.fit(logits, labels, features=rows(600))

    def test_an_ensemble_covers_what_its_clusters_cover(self):
        ensemble = self.fitted(TemperatureEnsemble(n_clusters=3))
        nearest = self.fitted(NearestClusterTemperature(3))
        batch = rows(50, step=1)
        found = coverage(batch, ensemble)
        assert found.share_outside == coverage(batch, nearest).share_outside
        assert found.share_outside == ensemble.coverage(batch).share_outside

    def test_errors_name_what_is_missing(self):
        with pytest.raises(NotFittedError):
            coverage(rows(5), NearestClusterTemperature(3))
        with pytest.raises(ValueError, match="TemperatureScaling was fitted without"):
            coverage(rows(5), self.fitted(TemperatureScaling()))
        nearest = self.fitted(NearestClusterTemperature(3))
        with pytest.raises(ValueError, match="batch has 2 columns, calibration has 6"):
            coverage(rows(5)[:, :2], nearest)

    def test_frames_are_features(self):
        frame = pd.DataFrame(rows(300))
        assert coverage(frame, frame).share_outside == pytest.approx(0.02, abs=0.02)
