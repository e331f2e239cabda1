"""Blocked softmax and what is derived from it, against scipy."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.special import softmax as scipy_softmax

from coolhead.numerics.softmax import brier_rows, confidence, log_loss_rows, softmax
from simulate import logits_and_labels


@pytest.mark.parametrize(("n", "k"), [(1, 2), (7, 3), (5000, 345), (3, 200_000)])
def test_agrees_with_scipy(n, k):
    logits, labels = logits_and_labels(n, k, scale=3.0)
    temperature = np.linspace(0.2, 5.0, n)
    want = scipy_softmax(logits / temperature[:, None], axis=1)
    np.testing.assert_allclose(softmax(logits, temperature), want, rtol=1e-12)
    conf, predicted = confidence(logits, temperature)
    np.testing.assert_allclose(conf, want.max(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(predicted, logits.argmax(axis=1))
    rows = np.arange(n)
    losses = -log_softmax(logits / temperature[:, None], axis=1)[rows, labels]
    np.testing.assert_allclose(
        log_loss_rows(logits, labels, temperature), losses, rtol=1e-9, atol=1e-12
    )
    hot = np.eye(k)[labels] if k < 1000 else None
    if hot is not None:
        np.testing.assert_allclose(
            brier_rows(logits, labels, temperature),
            ((want - hot) ** 2).sum(1),
            atol=1e-12,
        )


def test_huge_logits_do_not_overflow():
    conf, predicted = confidence(np.array([[1e38, -1e38]], np.float32), 1.0)
    assert (conf[0], predicted[0]) == (1.0, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite_is_refused_with_its_row(value):
    logits = np.zeros((3000, 100), np.float32)
    logits[2345, 7] = value
    with pytest.raises(ValueError, match="row 2345"):
        softmax(logits, 1.0)
    with pytest.raises(ValueError, match="row 2345"):
        confidence(logits, 1.0)


def test_confidence_makes_no_second_array_of_the_size_of_the_logits():
    logits = np.zeros((40_000, 250), np.float32)  # 40 MB
    tracemalloc.start()
    confidence(logits, 2.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6
