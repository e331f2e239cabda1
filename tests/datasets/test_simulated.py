"""Simulated sites have the temperatures that were asked for."""

import numpy as np
import pytest

import coolhead as ch


def test_the_best_temperature_is_the_one_asked_for():
    wanted = [0.5, 1.0, 2.0, 4.0]
    data = ch.datasets.simulate_domains(wanted, n_rows=20_000, n_classes=5)
    fit = ch.fit_temperature(data.logits, data.labels, groups=data.domains)
    # Four standard errors of each fit.
    np.testing.assert_array_less(
        np.abs(np.log(fit.temperature / wanted)), 4 * fit.log_temperature_se
    )
    assert data.domain_sizes() == {f"site-{number}": 20_000 for number in range(4)}


def test_one_seed_one_world():
    first, again = (ch.datasets.simulate_domains(random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.logits, again.logits)
    np.testing.assert_array_equal(first.features, again.features)


@pytest.mark.parametrize("temperatures", [[], [0.0, 1.0], [np.nan], [[1.0, 2.0]]])
def test_impossible_temperatures_are_refused(temperatures):
    with pytest.raises(ValueError, match="wanted one number above zero"):
        ch.datasets.simulate_domains(temperatures)
