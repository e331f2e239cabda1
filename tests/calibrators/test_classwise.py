"""Vector, matrix, BCTS and Platt, against logistic regression and by their limits."""

import time

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from coolhead.baselines.binning import PlattScaling, scores_of
from coolhead.baselines.classwise import (
    MOST_CLASSES,
    BiasCorrectedTemperature,
    MatrixScaling,
    VectorScaling,
)
from coolhead.calibrators.temperature import TemperatureScaling
from simulate import logits_and_labels

AFFINE = [
    VectorScaling(),
    BiasCorrectedTemperature(),
    MatrixScaling(),
]


def biased(n=2000, k=4, seed=0):
    """Logits whose classes need different biases."""
    rng = np.random.default_rng(seed)
    true = 2 * rng.normal(size=(n, k))
    labels = (true + np.linspace(-1, 1, k) + rng.gumbel(size=true.shape)).argmax(axis=1)
    return 2.5 * true, labels


def test_bcts_finds_bias_and_temperature():
    logits, labels = biased(20000)
    method = BiasCorrectedTemperature(penalty=0).fit(logits, labels)
    assert method.temperature_ == pytest.approx(2.5, rel=0.05)
    np.testing.assert_allclose(method.bias_, np.linspace(-1, 1, 4), atol=0.1)


def test_two_class_bcts_is_logistic_regression():
    logits, labels = biased(1500, 2)
    method = BiasCorrectedTemperature(penalty=0).fit(logits, labels)
    outside = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    difference = logits[:, [1]] - logits[:, [0]]
    outside.fit(difference, labels)
    np.testing.assert_allclose(
        method.predict_proba(logits)[:, 1],
        outside.predict_proba(difference)[:, 1],
        atol=2e-4,
    )


def test_two_class_vector_is_logistic_regression_on_both_logits():
    logits, labels = biased(1500, 2)
    method = VectorScaling(penalty=0).fit(logits, labels)
    outside = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    outside.fit(logits, labels)
    np.testing.assert_allclose(
        method.predict_proba(logits), outside.predict_proba(logits), atol=2e-4
    )


def test_vector_is_the_constrained_multinomial_optimum():
    logits, labels = biased(600, 3)
    method = VectorScaling(penalty=0).fit(logits, labels)

    def loss(parameters):
        scores = logits * parameters[:3] + parameters[3:]
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[np.arange(600), labels]
        return np.mean(np.log(np.exp(scores).sum(axis=1)) - own)

    best = minimize(loss, np.r_[np.full(3, 0.4), np.zeros(3)], tol=1e-10)
    assert method.nll_ == pytest.approx(best.fun, abs=1e-7)


def test_weak_penalty_matrix_is_multinomial_regression():
    logits, labels = biased(2000, 3)
    method = MatrixScaling(
        off_diagonal_penalty=1e-9, bias_penalty=1e-9, diagonal_penalty=0
    ).fit(logits, labels)
    outside = LogisticRegression(C=np.inf, tol=1e-9, max_iter=2000).fit(logits, labels)
    np.testing.assert_allclose(
        method.predict_proba(logits), outside.predict_proba(logits), atol=0.01
    )


def test_strong_penalties_give_temperature_scaling():
    logits, labels = biased(500)
    plain = TemperatureScaling().fit(logits, labels).predict_proba(logits)
    for method in (
        VectorScaling(penalty=1e6),
        BiasCorrectedTemperature(penalty=1e6),
        MatrixScaling(off_diagonal_penalty=1e6, bias_penalty=1e6, diagonal_penalty=1e6),
    ):
        found = method.fit(logits, labels).predict_proba(logits)
        np.testing.assert_allclose(found, plain, atol=1e-4)


@pytest.mark.parametrize("method", AFFINE, ids=str)
def test_never_less_likely_than_temperature_scaling(method):
    logits, labels = biased(300, 6)
    method.fit(logits, labels)
    plain = TemperatureScaling().fit(logits, labels)
    assert method.nll_ <= plain.nll_ + 1e-9
    assert method.status_ == "converged"
    before = np.mean(logits.argmax(axis=1) == labels)
    after = np.mean(method.predict_proba(logits).argmax(axis=1) == labels)
    assert method.accuracy_change_ == pytest.approx(after - before)


@pytest.mark.parametrize("method", AFFINE, ids=str)
def test_absent_classes_do_not_drift(method):
    logits, labels = biased(800, 5)
    keep = labels < 3
    with pytest.warns(UserWarning, match=r"never hold 2 of 5 classes: 3, 4;"):
        method.fit(logits[keep], labels[keep])
    assert method.absent_classes_.tolist() == [3, 4]
    plain = TemperatureScaling().fit(logits[keep], labels[keep])
    found = method.predict_proba(logits)[:, 3:].mean()
    expected = plain.predict_proba(logits)[:, 3:].mean()
    assert 0.3 * expected < found < 3 * expected


def test_absent_class_keeps_its_numbers():
    logits, labels = biased(800, 5)
    keep = labels != 2
    with pytest.warns(UserWarning, match="classes: 2; VectorScaling learns nothing"):
        method = VectorScaling(penalty=0.0).fit(logits[keep], labels[keep])
    assert method.bias_[2] == 0
    assert abs(method.bias_[keep[:5] | True].sum()) < 1e-9
    plain = TemperatureScaling().fit(logits[keep], labels[keep])
    assert method.scale_[2] == pytest.approx(1 / plain.temperature_)


@pytest.mark.parametrize("method", AFFINE, ids=str)
def test_unit_of_the_logits_does_not_matter(method):
    logits, labels = biased(300)
    small = method.fit(logits, labels).predict_proba(logits)
    large = method.fit(100 * logits, labels).predict_proba(100 * logits)
    np.testing.assert_allclose(small, large, atol=2e-3)


@pytest.mark.filterwarnings("ignore:labels never hold")
@pytest.mark.parametrize("n_classes", [MOST_CLASSES + 1, 20_000])
def test_a_matrix_of_too_many_classes_is_refused(n_classes):
    """Before anything is fitted: the solver would need 190 GB for 20,000 classes."""
    logits, labels = logits_and_labels(30, n_classes)
    wanted = f"logits has {n_classes} columns, .*; wanted at most {MOST_CLASSES} "
    start = time.monotonic()
    with pytest.raises(ValueError, match=f"{wanted}classes, or VectorScaling"):
        MatrixScaling().fit(logits, labels)
    assert time.monotonic() - start < 5


def test_matrix_is_never_unpenalised():
    with pytest.raises(ValueError, match="must be positive"):
        MatrixScaling(off_diagonal_penalty=0).fit(*logits_and_labels(50, 3))


def test_binary_platt_with_smoothed_targets():
    logits, labels = biased(400, 2)
    method = PlattScaling().fit(logits, labels)
    scores = logits[:, 1] - logits[:, 0]
    positive = labels.sum()
    targets = np.where(
        labels == 1, (positive + 1) / (positive + 2), 1 / (400 - positive + 2)
    )

    def loss(parameters):
        z = parameters[0] * scores + parameters[1]
        return np.sum(np.logaddexp(0, z) - targets * z)

    best = minimize(loss, [1.0, 0.0], tol=1e-10).x
    assert method.slope_ == pytest.approx(best[0], rel=1e-3)
    assert method.intercept_ == pytest.approx(best[1], abs=1e-3)


def test_platt_of_scores_equals_platt_of_two_columns():
    logits, labels = biased(300, 2)
    scores = logits[:, 1] - logits[:, 0]
    one, two = PlattScaling().fit(scores, labels), PlattScaling().fit(logits, labels)
    np.testing.assert_allclose(
        one.predict_proba(scores), two.predict_proba(logits), atol=1e-9
    )


def test_top_label_platt_moves_the_confidence_to_the_accuracy():
    logits, labels = logits_and_labels(4000, 6, scale=3.0)
    method = PlattScaling().fit(logits, labels)
    right = logits.argmax(axis=1) == labels
    confidence = method.predict_proba(logits)[np.arange(4000), logits.argmax(axis=1)]
    assert confidence.mean() == pytest.approx(right.mean(), abs=2e-3)
    assert method.nll_ < method.nll_uncalibrated_
    assert method.accuracy_change_ == 0
    # Where the top label stays far ahead, the others keep their proportions.
    row = int(confidence.argmax())
    after, before = method.predict_proba(logits)[row], np.exp(logits[row])
    rest = np.delete(np.arange(6), logits[row].argmax())
    np.testing.assert_allclose(
        after[rest] / after[rest].sum(), before[rest] / before[rest].sum(), rtol=1e-9
    )


def test_platt_survives_certainty_and_separation():
    logits = np.array([[800.0, 0, 0], [0, 800.0, 0], [1.0, 0, 0], [0, 0, 2.0]])
    method = PlattScaling().fit(logits, [0, 1, 0, 2])
    found = method.predict_proba(logits)
    assert np.isfinite(found).all()
    assert np.isfinite(scores_of(logits)[0]).all()


def test_bias_corrected_temperature_does_not_run_away():
    logits, _ = biased(200, 4)
    method = BiasCorrectedTemperature().fit(logits, logits.argmin(axis=1))
    assert method.status_ == "worse_than_uniform"
    assert method.temperature_ < 1e9
