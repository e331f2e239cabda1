"""Calibration errors: identities, oracles, known faults of the oracles."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coolhead.metrics import (
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    expected_calibration_error_null,
    maximum_calibration_error,
    signed_calibration_gap,
)
from coolhead.metrics.bins import folded_normal_mean

rows = st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=50).map(
    lambda pairs: tuple(map(np.array, zip(*pairs, strict=True)))
)
binnings = st.sampled_from(["width", "mass"])


def simulated(n_rows=2000, n_classes=65, seed=0):
    generator = np.random.default_rng(seed)
    logits = 2 * generator.standard_normal((n_rows, n_classes))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    powers = np.exp(1.5 * logits)
    return labels, powers / powers.sum(axis=1, keepdims=True)


@given(rows, binnings)
@settings(deadline=None)
def test_one_bin_gives_the_absolute_signed_gap(data, binning):
    one_bin = expected_calibration_error(*data, n_bins=1, binning=binning)
    assert one_bin == pytest.approx(abs(signed_calibration_gap(*data)), abs=1e-12)


@given(rows, binnings, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_of_rows_does_not_matter(data, binning, random):
    order = random.sample(range(len(data[0])), len(data[0]))
    for metric in (expected_calibration_error, maximum_calibration_error):
        shuffled = metric(data[0][order], data[1][order], binning=binning)
        assert shuffled == pytest.approx(metric(*data, binning=binning), abs=1e-12)


@given(rows, st.integers(1, 30), binnings)
@settings(deadline=None)
def test_errors_are_ordered(data, n_bins, binning):
    options = {"n_bins": n_bins, "binning": binning}
    ece = expected_calibration_error(*data, **options)
    assert abs(signed_calibration_gap(*data)) <= ece + 1e-12
    assert ece <= maximum_calibration_error(*data, **options) + 1e-12
    assert 0 <= ece <= 1


@given(rows)
@settings(deadline=None)
def test_duplicating_the_rows_changes_nothing(data):
    doubled = expected_calibration_error(*(np.tile(part, 2) for part in data))
    assert doubled == pytest.approx(expected_calibration_error(*data), abs=1e-12)


def test_probabilities_and_confidences_agree():
    labels, probabilities = simulated()
    pair = probabilities.argmax(axis=1) == labels, probabilities.max(axis=1)
    for metric in (
        expected_calibration_error,
        maximum_calibration_error,
        signed_calibration_gap,
        debiased_calibration_error,
    ):
        assert metric(labels, probabilities) == pytest.approx(metric(*pair), abs=1e-15)


@pytest.mark.parametrize("n_bins", [10, 15, 20])
def test_ece_agrees_with_relplot(n_bins):
    from relplot.metrics import binnedECE

    labels, probabilities = simulated()
    correct = probabilities.argmax(axis=1) == labels
    theirs = binnedECE(probabilities.max(axis=1), correct.astype(float), n_bins)
    ours = expected_calibration_error(labels, probabilities, n_bins=n_bins)
    assert ours == pytest.approx(theirs, abs=1e-8)


@pytest.fixture(scope="module")
def torchmetrics_ece():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from torchmetrics.functional.classification import (
            binary_calibration_error,
            multiclass_calibration_error,
        )
    return torch.as_tensor, binary_calibration_error, multiclass_calibration_error


@pytest.mark.parametrize(
    ("norm", "ours"),
    [("l1", expected_calibration_error), ("max", maximum_calibration_error)],
)
def test_ece_and_mce_agree_with_torchmetrics(torchmetrics_ece, norm, ours):
    tensor, binary, multiclass = torchmetrics_ece
    labels, probabilities = simulated()
    correct = probabilities.argmax(axis=1) == labels
    confidence = tensor(probabilities.max(axis=1))
    value = binary(confidence, tensor(correct).int(), n_bins=15, norm=norm)
    assert ours(labels, probabilities) == pytest.approx(float(value), abs=1e-8)
    # Its multiclass function computes in float32 whatever it is given.
    value = multiclass(
        tensor(probabilities), tensor(labels), num_classes=65, n_bins=15, norm=norm
    )
    assert ours(labels, probabilities) == pytest.approx(float(value), abs=1e-6)


def test_torchmetrics_puts_confidence_one_into_a_bin_of_its_own(torchmetrics_ece):
    tensor, theirs, _ = torchmetrics_ece
    confidence, correct = np.array([1.0, 0.95]), np.array([0, 1])
    value = theirs(tensor(confidence), tensor(correct), n_bins=10, norm="l1")
    assert float(value) == pytest.approx(0.525)
    ours = expected_calibration_error(correct, confidence, n_bins=10)
    assert ours == pytest.approx(0.475)


def test_ece_agrees_with_netcal():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from netcal.metrics import ECE

        labels, probabilities = simulated()
        theirs = ECE(bins=15).measure(probabilities, labels)
    ours = expected_calibration_error(labels, probabilities)
    assert ours == pytest.approx(theirs, abs=1e-8)


def test_classwise_is_the_mean_over_classes():
    labels, probabilities = simulated(n_classes=7)
    each = [
        expected_calibration_error(labels == k, probabilities[:, k]) for k in range(7)
    ]
    ours = classwise_calibration_error(labels, probabilities)
    assert ours == pytest.approx(np.mean(each), abs=1e-12)


def test_folded_normal_mean_is_that_of_draws():
    draws = np.random.default_rng(0).standard_normal(1_000_000)
    for mean, deviation in [(0.0, 1.0), (0.7, 0.5), (-2.0, 1.0), (0.3, 0.0)]:
        exact = folded_normal_mean(np.array([mean]), np.array([deviation]))[0]
        assert exact == pytest.approx(np.abs(mean + deviation * draws).mean(), abs=3e-3)


def test_debiased_error_is_twice_the_plain_one_minus_the_redrawn():
    generator = np.random.default_rng(0)
    confidence = np.repeat(np.arange(0.55, 1, 0.1), 40)
    correct = generator.random(200) < confidence - 0.1
    accuracy = correct.reshape(5, 40).mean(axis=1)
    deviation = np.sqrt(accuracy * (1 - accuracy) / 40)
    redrawn = generator.normal(accuracy, deviation, (200_000, 5))
    redrawn = np.abs(redrawn - np.unique(confidence)).mean()
    plain = expected_calibration_error(correct, confidence, n_bins=10)
    ours = debiased_calibration_error(correct, confidence, n_bins=10)
    assert ours == pytest.approx(2 * plain - redrawn, abs=3e-4)


def test_debiased_errors_on_average():
    generator = np.random.default_rng(0)
    confidence = np.repeat(np.arange(0.55, 1, 0.1), 40)
    plain, first, squares = [], [], []
    for _ in range(300):
        correct = generator.random(200) < confidence
        plain.append(expected_calibration_error(correct, confidence, n_bins=10))
        first.append(debiased_calibration_error(correct, confidence, n_bins=10))
        correct = generator.random(200) < confidence - 0.2
        second = debiased_calibration_error(correct, confidence, n_bins=10, norm=2)
        squares.append(second**2)
    # The truth is zero for the calibrated rows and 0.2 for the others.
    assert abs(np.mean(first)) < 0.65 * np.mean(plain)
    assert np.sqrt(np.mean(squares)) == pytest.approx(0.2, abs=0.005)


def test_debiased_squared_error_by_hand():
    correct, confidence = [0, 1, 0, 1], [0.9, 0.9, 0.9, 0.2]
    # The single row in the lower bin has no estimate of its noise and is left out.
    expected = 3 / 4 * ((1 / 3 - 0.9) ** 2 - (2 / 9) / 2)
    value = debiased_calibration_error(correct, confidence, n_bins=2, norm=2)
    assert value == pytest.approx(np.sqrt(expected))
    # Gaps that are smaller than their noise: cut off at zero.
    assert debiased_calibration_error([1, 0, 1], [0.7] * 3, norm=2) == 0


def test_debiased_refuses_other_norms():
    with pytest.raises(ValueError, match="norm is 3"):
        debiased_calibration_error([1, 0], [0.5, 0.5], norm=3)


@pytest.mark.parametrize("size", [None, 500])
def test_null_level_is_the_mean_ece_of_calibrated_draws(size):
    generator = np.random.default_rng(0)
    confidence = generator.beta(3, 2, 3000)
    seen = []
    for _ in range(400):
        part = generator.permutation(3000)[:size]
        correct = generator.random(len(part)) < confidence[part]
        seen.append(expected_calibration_error(correct, confidence[part]))
    normal = expected_calibration_error_null(confidence, size=size)
    assert normal == pytest.approx(np.mean(seen), rel=0.03)


def test_null_level_takes_probabilities():
    _, probabilities = simulated()
    value = expected_calibration_error_null(probabilities)
    assert value == expected_calibration_error_null(probabilities.max(axis=1))


def test_null_level_refuses_bad_arguments():
    with pytest.raises(ValueError, match="size is 3"):
        expected_calibration_error_null([0.5, 0.6], size=3)
