"""Random problems against an independent solver that never sees a masked class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

import coolhead as ch

MASKS = {"none": None, "infinity": -np.inf, "huge": -1e9, "smallest": "smallest"}


def random_problem(seed, n, k, *, ties, mask, log_scale, weighted):
    """Logits with labels drawn at a random temperature; labels are never masked."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * rng.choice([0.3, 2.0, 10.0])
    if ties:
        z = np.round(2 * z) / 2
    z[:, 0] += rng.choice([0.0, 0.0, 5.0])
    sharpness = 10 ** rng.uniform(-1.5, 1)
    y = (sharpness * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    masked = np.zeros(z.shape, bool)
    if mask is not None:
        masked = rng.random(z.shape) < rng.choice([0.1, 0.5])
        masked[np.arange(n), y] = False
        if mask != -np.inf:
            # [3, -1e9] may as well be a sure row: two classes are left in every row.
            masked[np.arange(n), (y + 1) % k] = False
    scale = 10.0**log_scale
    z *= scale
    value = -np.finfo(np.float64).max if mask == "smallest" else mask
    if mask is not None:
        z[masked] = value * scale if value == -1e9 else value
    weights = rng.exponential(size=n) if weighted else None
    return z, y, masked, weights


def oracle(z, y, masked, weights):
    """(status, T or NaN, typical spread), over the classes that are there."""
    z = np.where(masked, -np.inf, z)
    drops = z.max(axis=1, keepdims=True) - z
    shifted = np.where(masked, 0.0, -drops)
    share = np.ones(len(y)) if weights is None else weights
    share = share / share.sum()
    gap = drops[np.arange(len(y)), y]
    mean = -shifted.sum(axis=1) / (~masked).sum(axis=1)
    if not mean.any():
        return "constant_logits", np.nan, 1.0
    some = mean > 0
    spread = np.exp(np.average(np.log(mean[some]), weights=share[some]))
    if not gap.any():
        return "perfectly_separated", np.nan, spread
    if share @ (gap - mean) >= 0:
        return "worse_than_uniform", np.nan, spread

    def slope(log_inverse):
        b = np.exp(log_inverse) / spread
        p = softmax(-b * drops, axis=1)
        return share @ ((p * shifted).sum(axis=1) + gap) / spread

    if slope(-20) >= 0 or slope(20) <= 0:
        return "beyond", np.nan, spread
    root = brentq(slope, -20, 20, xtol=1e-13)
    return "converged", spread / np.exp(root), spread


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
    assert fit.temperature > 0 and np.isfinite(fit.temperature)
    assert np.isfinite(fit.nll)
    if status == "converged" and 1 / 30 < best / spread < 30:
        assert fit.status == "converged"
    elif status in ("converged", "beyond"):
        assert fit.status in ("converged", "at_bound", "worse_than_uniform")
    else:
        assert fit.status == status
    if fit.status == "converged":
        assert fit.temperature == pytest.approx(best, rel=1e-6)
        hidden = np.where(masked, -np.inf, z) / best
        losses = -log_softmax(hidden, axis=1)[np.arange(len(y)), y]
        wanted = np.average(losses, weights=weights)
        assert fit.nll == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from(["ties", "one column", "steps"]))
def test_single_precision_of_lopsided_problems(seed, kind):
    rng = np.random.default_rng(seed)
    n, k = 120, 1000
    if kind == "ties":
        z = np.zeros((n, k))
        z[:, 0] = 10 ** rng.uniform(-1, 1)
    elif kind == "one column":
        z = np.round(rng.normal(size=(n, k)))
        z[:, 0] = z.max() + rng.uniform(0, 0.5)
    else:
        z = np.round(2 * rng.normal(size=(n, k)) * 10 ** rng.uniform(-1, 1)) / 2
    z = z.astype(np.float32)
    y = (z * 10 ** rng.uniform(-1.5, 0.3) + rng.gumbel(size=z.shape)).argmax(axis=1)
    single, double = (ch.fit_temperature(part, y) for part in (z, z.astype(float)))
    assert single.status == double.status
    if double.status == "converged":
        assert single.temperature == pytest.approx(double.temperature, rel=1e-5)


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
