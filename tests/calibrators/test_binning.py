"""Histogram, isotonic and Bayesian binning against plain code and scikit-learn."""

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.isotonic import IsotonicRegression

from coolhead.baselines.binning import (
    BayesianBinning,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    fit_averaged_steps,
    read_steps,
    replace_top,
)
from coolhead.metrics import expected_calibration_error
from coolhead.numerics.softmax import confidence, softmax
from simulate import logits_and_labels

METHODS = [
    HistogramBinning(),
    HistogramBinning(scheme="one_vs_all"),
    IsotonicCalibration(),
    IsotonicCalibration("pooled"),
    IsotonicCalibration("top_label"),
    BayesianBinning(),
    BayesianBinning("one_vs_all"),
]


@pytest.fixture(scope="module")
def data():
    return logits_and_labels(3000, 5, scale=3.0)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_lowers_loss_and_error_and_sums_to_one(method, data):
    logits, labels = data
    method.fit(logits, labels)
    found = method.predict_proba(logits)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found.min() >= 0
    assert method.nll_ < method.nll_uncalibrated_
    assert method.status_ == "converged"
    before = expected_calibration_error(labels, softmax(logits, 1.0))
    assert expected_calibration_error(labels, found) < before
    largest, predicted = method.confidence(logits)
    np.testing.assert_allclose(largest, found.max(axis=1))
    change = np.mean(predicted == labels) - np.mean(logits.argmax(axis=1) == labels)
    assert method.accuracy_change_ == pytest.approx(change)


def test_histogram_by_hand(data):
    logits, labels = data
    method = HistogramBinning().fit(logits, labels)
    largest, predicted = confidence(logits, 1.0)
    right = predicted == labels
    _, values = method.curves_[0]
    for bin_number in range(15):
        inside = (largest > bin_number / 15) & (largest <= (bin_number + 1) / 15)
        if inside.any():
            assert values[bin_number] == pytest.approx(right[inside].mean())
        else:
            assert values[bin_number] == pytest.approx((bin_number + 0.5) / 15)


def test_isotonic_curves_are_scikit_learns(data):
    logits, labels = data
    chances = softmax(logits, 1.0)
    method = IsotonicCalibration().fit(logits, labels)
    expected = np.column_stack(
        [
            IsotonicRegression(out_of_bounds="clip").fit_transform(
                chances[:, k], labels == k
            )
            for k in range(5)
        ]
    )
    expected += 1e-9 * chances
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(method.predict_proba(logits), expected, atol=1e-12)


def test_the_last_bit_of_a_score_decides_nothing(data):
    logits, labels = data
    method = IsotonicCalibration().fit(logits * (100 / np.abs(logits).max()), labels)
    for corners, values in method.curves_:
        rises = np.diff(values) > 0
        assert np.all(np.diff(corners)[rises] >= 1e-10 * corners[1:][rises])


def test_pooled_isotonic_keeps_the_order(data):
    logits, labels = data
    method = IsotonicCalibration("pooled").fit(logits, labels)
    new, _ = logits_and_labels(500, 5, scale=3.0, seed=9)
    found = method.predict_proba(new)
    order = np.argsort(new, axis=1)
    assert np.all(np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= 0)
    assert method.accuracy_change_ == 0


@pytest.mark.parametrize(
    "method",
    [m for m in METHODS if getattr(m, "scheme", "") == "one_vs_all"],
    ids=str,
)
def test_absent_class_keeps_its_probability(method, data):
    logits, labels = data
    keep = labels != 4
    with pytest.warns(UserWarning, match="never hold 1 of 5 classes: 4;"):
        method.fit(logits[keep], labels[keep])
    assert method.absent_classes_.tolist() == [4]
    before, after = softmax(logits, 1.0)[:, 4], method.predict_proba(logits)[:, 4]
    # It keeps its score; only the scaling to sum one moves it.
    assert after[before > 0.5].min() > 0.2


def test_unseen_certainty_stays_finite():
    logits = np.array([[9.0, 0, 0], [9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0]] * 5)
    labels = np.array([0, 0, 1, 2] * 5)
    for method in METHODS:
        found = method.fit(logits, labels).predict_proba(logits[:, ::-1].copy())
        assert np.isfinite(np.log(found.max(axis=1))).all()
        np.testing.assert_allclose(found.sum(axis=1), 1)


def plain_bbq(scores, hits, query):
    """Every binning one by one, with factorial functions."""
    order = np.argsort(scores)
    scores, hits = scores[order], hits[order].astype(float)
    n = len(scores)
    logs, values = [], []
    low, high = max(1, int(n ** (1 / 3) / 10)), int(np.ceil(10 * n ** (1 / 3)))
    for n_bins in range(low, high + 1):
        cuts = [-(-i * n // n_bins) for i in range(n_bins + 1)]
        edges = [0.0, *[(scores[c - 1] + scores[c]) / 2 for c in cuts[1:-1]], 1.0]
        total, means = 0.0, []
        for b in range(n_bins):
            m = cuts[b + 1] - cuts[b]
            k = hits[cuts[b] : cuts[b + 1]].sum()
            mid = (edges[b] + edges[b + 1]) / 2
            alpha, beta = 2 / n_bins * mid, 2 / n_bins * (1 - mid)
            total += gammaln(2 / n_bins) - gammaln(m + 2 / n_bins)
            total += gammaln(k + alpha) - gammaln(alpha)
            total += gammaln(m - k + beta) - gammaln(beta)
            means.append((alpha + k) / (m + 2 / n_bins))
        logs.append(total)
        values.append([means[np.searchsorted(edges[1:-1], q)] for q in query])
    share = np.exp(np.array(logs) - max(logs))
    return share / share.sum() @ np.array(values)


def test_bayesian_binning_agrees_with_plain_code():
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    hits = rng.random(300) < scores**2
    query = np.linspace(0.01, 0.99, 40)
    steps = fit_averaged_steps(scores, hits, np.ones(300))
    np.testing.assert_allclose(
        read_steps(steps, query), plain_bbq(scores, hits, query), atol=1e-4
    )


def test_weights_count_like_copies(data):
    logits, labels = (part[:400] for part in data)
    counts = np.random.default_rng(0).integers(1, 4, 400)
    for method in (HistogramBinning(), IsotonicCalibration()):
        weighted = method.fit(logits, labels, sample_weight=counts).predict_proba(
            logits
        )
        copied = method.fit(
            np.repeat(logits, counts, axis=0), np.repeat(labels, counts)
        ).predict_proba(logits)
        np.testing.assert_allclose(weighted, copied, atol=1e-9)


def test_replace_top_with_certain_rows():
    found = replace_top(
        np.array([[900.0, 0.0, 0.0], [np.log(2), 0.0, 0.0]]),
        np.array([0, 0]),
        np.array([0.4, 0.8]),
    )
    np.testing.assert_allclose(found, [[0.4, 0.3, 0.3], [0.8, 0.1, 0.1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_top_label_methods_keep_the_prediction(dtype):
    # Right by chance only: the wanted confidence is near 1/k, far below the old one.
    logits, _ = logits_and_labels(2000, 5, scale=9.0, dtype=dtype)
    labels = np.random.default_rng(5).integers(0, 5, 2000)
    for method in (
        HistogramBinning(),
        BayesianBinning(),
        IsotonicCalibration("top_label"),
    ):
        method.fit(logits, labels)
        assert method.accuracy_change_ == 0
        largest, predicted = method.confidence(logits)
        np.testing.assert_array_equal(predicted, logits.argmax(axis=1))
        np.testing.assert_array_equal(
            method.predict_proba(logits).argmax(axis=1), predicted
        )
        assert largest.mean() == pytest.approx(0.2, abs=0.02)


def test_wrong_options_are_refused(data):
    for method in (
        HistogramBinning(scheme="x"),
        HistogramBinning(0),
        IsotonicCalibration("x"),
        BayesianBinning("x"),
    ):
        with pytest.raises(ValueError, match="wanted"):
            method.fit(*data)


@pytest.mark.parametrize("method", [*METHODS, PlattScaling()], ids=repr)
def test_the_precision_of_the_logits_does_not_decide(method, data):
    """Near one, single precision has few confidences left to tell apart."""
    logits, labels = data
    method.fit((3 * logits).astype(np.float32), labels)
    sure = np.zeros((100, logits.shape[1]), np.float32)
    sure[:, 0] = np.linspace(5, 40, 100)
    np.testing.assert_allclose(
        method.predict_proba(sure),
        method.predict_proba(sure.astype(np.float64)),
        atol=1e-6,
    )
