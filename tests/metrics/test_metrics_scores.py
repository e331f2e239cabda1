"""Proper scores and the gain, against scikit-learn and the definitions."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from coolhead.metrics import (
    brier_score,
    calibration_gain,
    negative_log_likelihood,
    top_label_brier_score,
)


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    logits = 2 * generator.standard_normal((800, 6))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    return labels, 2 * logits


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_nll_agrees_with_scikit_learn(data):
    labels, logits = data
    ours = negative_log_likelihood(labels, softmax(logits))
    assert ours == pytest.approx(log_loss(labels, softmax(logits)), abs=1e-12)


def test_brier_agrees_with_scikit_learn(data):
    labels, logits = data
    theirs = brier_score_loss(labels, softmax(logits), scale_by_half=False)
    assert brier_score(labels, softmax(logits)) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("score", [negative_log_likelihood, brier_score])
def test_logits_give_the_same_as_probabilities(data, score):
    labels, logits = data
    temperature = np.linspace(0.5, 3, len(logits))
    from_logits = score(labels, logits=logits, temperature=temperature)
    probabilities = softmax(logits / temperature[:, None])
    assert from_logits == pytest.approx(score(labels, probabilities), abs=1e-12)


@pytest.mark.parametrize("score", [negative_log_likelihood, brier_score])
def test_exactly_one_kind_of_input(data, score):
    labels, logits = data
    with pytest.raises(ValueError, match="neither of probabilities and logits"):
        score(labels)
    with pytest.raises(ValueError, match="both of probabilities and logits"):
        score(labels, softmax(logits), logits=logits)


def test_rows_of_probability_zero_are_left_out_of_the_log_loss_and_counted():
    with pytest.warns(UserWarning, match="1 of 1 rows has probability zero"):
        assert negative_log_likelihood([1], [[1.0, 0.0]]) == np.inf
    rows, labels = [[0.5, 0.5], [1.0, 0.0]], [0, 1]
    with pytest.warns(UserWarning, match="1 of 2 rows has probability zero"):
        assert negative_log_likelihood(labels, rows) == pytest.approx(np.log(2))
    logits = [[0.0, 0.0], [0.0, -np.inf]]
    with pytest.warns(UserWarning, match="1 of 2 rows has probability zero"):
        found = negative_log_likelihood(labels, logits=logits)
    assert found == pytest.approx(np.log(2))
    assert brier_score(labels, rows) == brier_score(labels, logits=logits) == 1.25
    assert negative_log_likelihood([1], logits=[[2000.0, 0.0]]) == 2000


def test_brier_ranges_from_zero_to_two():
    assert brier_score([0], [[1.0, 0.0]]) == 0
    assert brier_score([1], [[1.0, 0.0]]) == 2


def test_float32_is_summed_in_float64(data):
    labels, logits = data
    probabilities = softmax(logits)
    single = brier_score(labels, probabilities.astype(np.float32))
    assert single == pytest.approx(brier_score(labels, probabilities), abs=1e-6)


def test_top_label_brier_by_hand():
    assert top_label_brier_score([1, 0], [0.8, 0.6]) == pytest.approx(0.2)
    value = top_label_brier_score([0, 0], [[0.8, 0.2], [0.4, 0.6]])
    assert value == pytest.approx(0.2)


def test_gain_is_the_difference_of_scores(data):
    labels, logits = data
    before, after = softmax(logits), softmax(logits / 2)
    gain = calibration_gain(labels, before, after)
    assert gain == pytest.approx(
        brier_score(labels, before) - brier_score(labels, after)
    )
    assert gain > 0, "the labels follow softmax(logits / 2)"
    assert calibration_gain(labels, after, before) == pytest.approx(-gain)


def test_top_label_gain_takes_both_kinds_of_input(data):
    labels, logits = data
    before, after = softmax(logits), softmax(logits / 2)
    gain = calibration_gain(labels, before, after, top_label=True)
    correct = before.argmax(axis=1) == labels
    vectors = calibration_gain(correct, before.max(axis=1), after.max(axis=1))
    assert gain == pytest.approx(vectors, abs=1e-15)


def test_gain_refuses_mixed_kinds(data):
    labels, logits = data
    with pytest.raises(ValueError, match="calibrated has 1 dimensions; wanted 2"):
        calibration_gain(labels, softmax(logits), softmax(logits).max(axis=1))
