"""The density ratio against two Gaussians whose ratio is known."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from coolhead.shift import density_ratio, effective_sample_size, summarise_weights
from coolhead.shift.ratio import compress


def two_gaussians(n_rows, n_columns, step, seed=0):
    rng = np.random.default_rng(seed)
    calibration = rng.normal(size=(n_rows, n_columns))
    target = rng.normal(size=(n_rows // 2, n_columns))
    target[:, 0] += step
    return calibration, target, step * calibration[:, 0] - step**2 / 2


def test_sign_and_scale():
    calibration, target, log_ratio = two_gaussians(4000, 1, 1.0)
    ratio = density_ratio(calibration, target)
    assert np.corrcoef(ratio.weights, np.exp(log_ratio))[0, 1] > 0.95
    slope = np.polyfit(log_ratio, np.log(ratio.weights + 1e-9), 1)[0]
    assert 0.8 < slope < 1.4
    assert ratio.weights.mean() == pytest.approx(1)
    # Before it is scaled, a ratio of densities already has mean one.
    assert ratio.raw_mean == pytest.approx(1, abs=0.1)


def test_unequal_sizes_do_not_scale_the_ratio():
    calibration, target, log_ratio = two_gaussians(6000, 2, 0.7)
    few = density_ratio(calibration, target[:600])
    assert few.raw_mean == pytest.approx(1, abs=0.1)
    assert np.polyfit(log_ratio, np.log(few.weights), 1)[0] == pytest.approx(1, abs=0.2)


def test_divergence_of_gaussians():
    calibration, target, _ = two_gaussians(20000, 1, 0.7)
    ratio = density_ratio(calibration, target)
    # d2 of two unit Gaussians a step apart is exp(step²).
    assert ratio.divergence == pytest.approx(np.exp(0.49), rel=0.1)
    assert ratio.effective_sample_size == pytest.approx(
        len(calibration) / ratio.divergence
    )
    assert not ratio.unreliable


def test_no_shift_gives_even_weights():
    calibration, target, _ = two_gaussians(4000, 20, 0.0)
    ratio = density_ratio(calibration, target)
    assert ratio.auroc == pytest.approx(0.5, abs=0.05)
    assert ratio.divergence < 1.1


def test_reference_rows_replace_cross_fitting():
    calibration, target, log_ratio = two_gaussians(4000, 3, 1.0)
    ratio = density_ratio(
        calibration[:500], target, reference_features=calibration[500:]
    )
    assert np.corrcoef(np.log(ratio.weights), log_ratio[:500])[0, 1] > 0.97


def test_separation_is_flagged():
    calibration, target, _ = two_gaussians(300, 5, 30.0)
    ratio = density_ratio(calibration, target)
    assert ratio.auroc > 0.99
    assert ratio.unreliable
    assert "separates" in ratio.reasons[0]
    assert np.isfinite(ratio.weights).all()


def test_wide_features_do_not_separate_by_memory():
    calibration, target, _ = two_gaussians(400, 512, 0.0)
    assert density_ratio(calibration, target).auroc < 0.65


def test_clipping_is_counted_and_few_samples_are_flagged():
    raw = np.r_[np.full(90, 0.1), np.full(10, 80.0)]
    ratio = summarise_weights(raw, max_weight=50)
    assert ratio.share_clipped == pytest.approx(0.1)
    assert ratio.effective_sample_size == pytest.approx(
        effective_sample_size(np.minimum(raw, 50))
    )
    assert "effective samples" in ratio.reasons[0]


class TestPublished:
    def test_is_the_plain_classifier_on_filled_up_sets(self):
        calibration, target, log_ratio = two_gaussians(2000, 3, 1.0)
        found = density_ratio(
            calibration[:500],
            target,
            reference_features=calibration[500:],
            estimator="published",
        )
        # Written again from the description: fill up, fit with defaults, divide.
        known = calibration[500:]
        drawn = np.random.default_rng(0).integers(0, 1000, 500)
        filled = np.concatenate([target, target[drawn]])
        model = LogisticRegression().fit(
            np.concatenate([known, filled]), np.repeat([1, 0], 1500)
        )
        source, new = model.predict_proba(calibration[:500])[:, ::-1].T
        np.testing.assert_allclose(found.weights, new / source, rtol=1e-3)
        assert found.share_clipped == 0
        assert found.raw_mean == pytest.approx(found.weights.mean())
        assert np.corrcoef(np.log(found.weights), log_ratio[:500])[0, 1] > 0.95

    def test_equal_sizes_and_separated_sets(self):
        # The released routine stops on equal sizes with an undefined variable.
        calibration, target, _ = two_gaussians(600, 3, 40.0)
        found = density_ratio(calibration[:300], target, estimator="published")
        assert np.isfinite(found.weights).all()
        assert found.unreliable


def test_one_calibration_row_has_weight_one():
    found = density_ratio(np.ones((1, 2)), np.zeros((9, 2)))
    assert found.weights.tolist() == [1.0]
    assert "1.0 effective samples" in found.reasons[0]


def test_lists_and_archives_are_features_too():
    calibration, target, _ = two_gaussians(60, 2, 0.5)
    plain = density_ratio(calibration, target).weights
    listed = density_ratio(calibration.tolist(), target.tolist()).weights
    np.testing.assert_array_equal(plain, listed)


def test_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="target_features contains NaN in row 0"):
        density_ratio(np.zeros((5, 3)), np.full((5, 3), np.nan))
    with pytest.raises(ValueError, match="target_features is missing"):
        density_ratio(np.zeros((5, 3)), None)
    rows = np.zeros((5, 3))
    with pytest.raises(ValueError, match="number of columns"):
        density_ratio(rows, np.zeros((5, 2)))
    with pytest.raises(ValueError, match="estimator"):
        density_ratio(rows, rows, estimator="magic")
    with pytest.raises(ValueError, match="max_weight"):
        summarise_weights(np.ones(3), max_weight=0)
    with pytest.raises(ValueError, match="at least two"):
        density_ratio(rows, rows[:1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [256, 1500])
def test_what_rounding_leaves_is_no_direction(dtype, n_columns):
    rng = np.random.default_rng(0)
    known, new = (rng.normal(size=(900, 5)) for _ in range(2))
    mixed = rng.normal(size=(5, n_columns))
    found = compress([(x @ mixed).astype(dtype) for x in (known, new)], 50, 0)
    assert [part.shape for part in found] == [(900, 5)] * 2


def test_constant_features_have_one_direction():
    found = compress([np.ones((30, 80)), np.ones((20, 80))], 50, 0)
    assert [part.shape for part in found] == [(30, 1), (20, 1)]
