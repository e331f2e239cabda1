"""Masked classes: -inf and what stands for it change nothing for the other classes."""

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.special import softmax as scipy_softmax

import coolhead as ch
from coolhead.numerics.search import affine_slopes, temperature_slopes
from coolhead.numerics.softmax import (
    brier_rows,
    confidence,
    log_loss_rows,
    score_rows,
    softmax,
)
from simulate import logits_and_labels

VALUES = [-1e4, -1e9, float(np.finfo(np.float32).min), -np.inf]
N_ROWS = 900


def with_masks(logits, value, count=1):
    return np.column_stack([logits, np.full((len(logits), count), value, logits.dtype)])


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "count"), [(2, 1), (5, 1), (5, 200), (120, 1)])
def test_the_temperature_is_that_of_the_other_classes(value, dtype, k, count):
    logits, labels = logits_and_labels(N_ROWS, k, scale=1.67, dtype=dtype)
    masked = with_masks(logits, value, count)
    rng = np.random.default_rng(1)
    for extra in (
        {},
        {"groups": np.arange(N_ROWS) % 3},
        {"groups": np.arange(N_ROWS) % 3, "sample_weight": rng.random(N_ROWS)},
    ):
        want, found = (ch.fit_temperature(z, labels, **extra) for z in (logits, masked))
        np.testing.assert_allclose(found.temperature, want.temperature, rtol=1e-6)
        np.testing.assert_allclose(found.nll, want.nll, rtol=1e-6)
        np.testing.assert_array_equal(found.status, want.status)


@pytest.mark.parametrize("value", VALUES[1:])
@pytest.mark.parametrize("rule", [np.argmax, np.argmin], ids=["all right", "all wrong"])
def test_without_a_minimum_the_bound_is_the_same(value, rule):
    logits, _ = logits_and_labels(N_ROWS, 6)
    labels = rule(logits, axis=1)
    want = ch.fit_temperature(logits, labels)
    found = ch.fit_temperature(with_masks(logits, value), labels)
    assert found.status == want.status
    assert found.temperature == pytest.approx(want.temperature, rel=1e-9)


def test_one_row_out_of_all_proportion_does_not_decide():
    logits, labels = logits_and_labels(N_ROWS, 5, scale=1.67)
    right = np.flatnonzero(logits.argmax(axis=1) == labels)[3]
    wild = logits.copy()
    wild[right] *= 1e6
    found, want = (ch.fit_temperature(z, labels) for z in (wild, logits))
    assert found.status == "converged"
    assert found.temperature == pytest.approx(want.temperature, rel=0.01)


def test_a_masked_label_is_left_out_and_a_row_without_classes_refused():
    logits, labels = logits_and_labels(40, 3)
    broken = logits.copy()
    broken[7, labels[7]] = -np.inf
    with pytest.warns(UserWarning, match="1 of 40 rows are left out"):
        found = ch.fit_temperature(broken, labels)
    without = ch.fit_temperature(np.delete(logits, 7, 0), np.delete(labels, 7))
    assert found == without
    assert log_loss_rows(broken, labels, 1.0)[7] == np.inf
    with pytest.raises(ValueError, match="a masked class in every row that counts"):
        ch.fit_temperature(broken[7:8], labels[7:8])
    broken[7] = -np.inf
    for function in (
        lambda: ch.fit_temperature(broken, labels),
        lambda: softmax(broken, 1.0),
    ):
        with pytest.raises(ValueError, match="-inf for every class in row 7"):
            function()
    broken[7] = [np.inf, -np.inf, 0.0]
    with pytest.raises(ValueError, match="infinity in row 7"):
        ch.fit_temperature(broken, labels)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_computed_from_a_row_ignores_its_masks(value, dtype):
    logits, labels = logits_and_labels(300, 5, scale=2.0, dtype=dtype)
    masked = with_masks(logits, value)
    temperature = np.linspace(0.3, 4.0, 300)
    close = (
        {"rtol": 1e-5, "atol": 1e-6}
        if dtype == np.float32
        else {"rtol": 1e-11, "atol": 1e-12}
    )
    p = softmax(masked, temperature)
    assert (p[:, 5] == 0).all()
    want = scipy_softmax(logits / temperature[:, None], axis=1)
    np.testing.assert_allclose(p[:, :5], want, **close)
    losses = -log_softmax(logits / temperature[:, None], axis=1)
    own = losses[np.arange(300), labels]
    briers = np.square(want - np.eye(5)[labels]).sum(axis=1)
    np.testing.assert_allclose(log_loss_rows(masked, labels, temperature), own, **close)
    np.testing.assert_allclose(brier_rows(masked, labels, temperature), briers, **close)
    np.testing.assert_allclose(confidence(masked, temperature)[0], p.max(axis=1))
    scores = score_rows(masked, labels, temperature)
    np.testing.assert_allclose(scores.log_loss, own, **close)
    np.testing.assert_allclose(scores.brier, briers, **close)
    for loss in ("nll", "brier"):
        for found, wanted in zip(
            temperature_slopes(masked, labels, temperature, loss),
            temperature_slopes(logits, labels, temperature, loss),
            strict=True,
        ):
            np.testing.assert_allclose(found, wanted, **close)


def test_affine_gradients_ignore_a_masked_class():
    logits, labels = logits_and_labels(200, 4)
    masked = with_masks(logits, -np.inf)
    rng = np.random.default_rng(0)
    slope, bias = rng.normal(size=(5, 5)), rng.normal(size=5)
    for part in (slope, np.diag(slope).copy()):
        inner = part[:4, :4] if part.ndim == 2 else part[:4]
        want = affine_slopes(logits, labels, np.ones(200), inner, bias[:4])
        found = affine_slopes(masked, labels, np.ones(200), part, bias)
        assert found[0] == pytest.approx(want[0], rel=1e-12)
        crop = found[1][:4, :4] if part.ndim == 2 else found[1][:4]
        np.testing.assert_allclose(crop, want[1], atol=1e-10)
        np.testing.assert_allclose(found[2][:4], want[2], atol=1e-10)
        assert np.isfinite(found[1]).all() and found[2][4] == 0
