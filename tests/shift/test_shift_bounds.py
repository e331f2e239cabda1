"""Bounds on discrete distributions, where everything is exact."""

import numpy as np
import pytest

from coolhead.shift import (
    effective_sample_size,
    renyi_divergence,
    transfer_bounds,
    weight_variance,
)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_and_nest(seed):
    rng = np.random.default_rng(seed)
    calibration, target = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    losses = rng.exponential(size=12)
    bounds = transfer_bounds(target / calibration, losses, mass=calibration)
    gap = abs(calibration @ losses - target @ losses)
    assert bounds.gap == pytest.approx(gap)
    assert bounds.mean_weight == pytest.approx(1)
    assert gap <= bounds.centred + 1e-12
    assert bounds.centred <= bounds.cauchy_schwarz + 1e-12
    assert bounds.cauchy_schwarz <= bounds.arithmetic_mean + 1e-12


def test_shift_term_is_divergence_minus_one():
    calibration, target = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    divergence = np.sum(target**2 / calibration)
    bounds = transfer_bounds(target / calibration, np.ones(3), mass=calibration)
    assert bounds.cauchy_schwarz**2 == pytest.approx(divergence - 1)
    # A constant loss cannot move.
    assert bounds.gap == pytest.approx(0)
    assert bounds.centred == pytest.approx(0)


def test_uncovered_mass_is_shown():
    calibration, target = np.array([0.5, 0.5]), np.array([0.4, 0.4])
    bounds = transfer_bounds(target / calibration, np.ones(2), mass=calibration)
    assert bounds.mean_weight == pytest.approx(0.8)
    assert bounds.gap <= bounds.centred + 1e-12


def test_weight_numbers():
    weights = np.array([1.0, 1.0, 4.0, 0.0])
    assert effective_sample_size(weights) == pytest.approx(36 / 18)
    assert weight_variance(weights) == pytest.approx(np.var(weights / 1.5))
    assert renyi_divergence(weights) == pytest.approx(
        4 / effective_sample_size(weights)
    )


def test_refuses_what_is_no_weight():
    for weights in ([], [-1.0, 2.0], [0.0, 0.0], [np.nan]):
        with pytest.raises(ValueError, match="non-negative"):
            effective_sample_size(np.array(weights))
    with pytest.raises(ValueError, match="one loss per weight"):
        transfer_bounds(np.ones(3), np.ones(2))
