"""Random problems against an independent solver that never sees a masked class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

import coolhead as ch
from coolhead.numerics import solver
from numerics.random_problems import (
    LOPSIDED,
    MASKS,
    disagreement,
    lopsided_problem,
    oracle,
    random_problem,
)

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n": st.integers(1, 60),
        "k": st.integers(2, 9),
        "ties": st.booleans(),
        "mask": st.sampled_from(list(MASKS.values())),
        "log_scale": st.floats(-6, 6),
        "weighted": st.booleans(),
    }
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(problems)
def test_float64_fits_agree_with_the_oracle(settings_of):
    z, y, masked, weights = random_problem(**settings_of)
    if z.min() >= 0 and z.max() <= 1:
        return  # might be probabilities
    fit = ch.fit_temperature(z, y, sample_weight=weights)
    status, best, spread = oracle(z, y, masked, weights)
    assert disagreement(fit, status, best, spread) is None
    if fit.status == "converged":
        assert fit.temperature == pytest.approx(best, rel=1e-6)
        hidden = np.where(masked, -np.inf, z) / best
        losses = -log_softmax(hidden, axis=1)[np.arange(len(y)), y]
        wanted = np.average(losses, weights=weights)
        assert fit.nll == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from(LOPSIDED))
def test_single_precision_of_lopsided_problems(seed, kind):
    z, y = lopsided_problem(seed, kind)
    single, double = (ch.fit_temperature(part, y) for part in (z, z.astype(float)))
    assert single.status == double.status
    if double.status == "converged":
        assert single.temperature == pytest.approx(double.temperature, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e30, 1e200])
@pytest.mark.parametrize("kind", ["ordinary", "masked", "one easy group", *LOPSIDED])
def test_of_many_logits_single_precision_finds_eight_digits(
    monkeypatch, kind, scale, dtype
):
    n_rows, n_classes, rng = 600, 250, np.random.default_rng(3)
    if kind in LOPSIDED:
        z, y = lopsided_problem(3, kind, n_rows, n_classes)
    else:
        z = 3 * rng.normal(size=(n_rows, n_classes))
        y = (z / 1.7 + rng.gumbel(size=z.shape)).argmax(axis=1)
    if kind == "masked":
        z[:, rng.permutation(n_classes)[:60]] = -1e9
        z[np.arange(n_rows), y] = 5.0
    easy = np.zeros(n_rows, int)
    if kind == "one easy group":
        easy[:60] = 1
        y[:60] = z[:60].argmax(axis=1)
    z = (z.astype(float) * min(scale, 1e25 if dtype is np.float32 else 1e200)).astype(
        dtype
    )
    exact = ch.fit_temperature(z.astype(float), y, groups=easy)
    monkeypatch.setattr(solver, "MANY", 0)
    fit = ch.fit_temperature(z, y, groups=easy)
    assert list(fit.status) == list(exact.status)
    assert fit.temperature == pytest.approx(exact.temperature, rel=1e-8)
    assert fit.nll == pytest.approx(exact.nll, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_positive_temperature_at_the_ends_of_the_number_range(dtype):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 4)).astype(dtype)
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    wanted = ch.fit_temperature(z, y)
    for weight in (1e-320, 1e-200, 1e300):
        fit = ch.fit_temperature(z, y, sample_weight=np.full(200, weight))
        assert fit.temperature == pytest.approx(wanted.temperature, rel=1e-6)
    tiny = np.finfo(dtype).tiny
    for factor in (tiny / 1e5, tiny, 1e3 * tiny, 1e6 * tiny, 1e-3 / tiny):
        fit = ch.fit_temperature((z * dtype(factor)).astype(dtype), y)
        assert np.isfinite(fit.temperature) and fit.temperature > 0
        if fit.status == "converged":
            scaled = fit.temperature / factor
            assert scaled == pytest.approx(wanted.temperature, rel=1e-4)
        else:
            assert (fit.status, fit.temperature) == ("constant_logits", 1.0)
