"""What a record of calibration data remembers is what it would find again."""

from unittest.mock import patch

import numpy as np
import pytest

from coolhead.calibrators import AutoCalibrator, data, descriptors
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.descriptors import DEFAULT, describe, describe_reference


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels, domain = rng.integers(0, 5, 900), np.arange(900) % 3
    logits = rng.normal(size=(900, 5)) * (1 + domain[:, None])
    logits[np.arange(900), labels] += 2
    features = rng.normal(size=(900, 8)) + domain[:, None]
    return logits, labels, features, domain


def record(problem, rows=slice(None)):
    logits, labels, features, domain = (array[rows] for array in problem)
    return CalibrationData.of(logits, labels, features=features, sample_domain=domain)


def test_temperatures_of_whole_domains_are_not_solved_again(problem):
    whole = record(problem)
    whole.domain_temperatures()
    kept = problem[3] != 1
    with patch.object(data, "solve_temperatures", side_effect=AssertionError):
        found = whole.take(kept).domain_temperatures()
    expected = record(problem, kept).domain_temperatures()
    np.testing.assert_allclose(found.temperature, expected.temperature, rtol=1e-9)
    np.testing.assert_array_equal(found.n_samples, [300, 300])


def test_temperatures_of_broken_domains_are_solved_again(problem):
    whole = record(problem)
    before = whole.domain_temperatures()
    kept = np.arange(900) < 800
    found = whole.take(kept).domain_temperatures()
    expected = record(problem, kept).domain_temperatures()
    np.testing.assert_array_equal(found.temperature, expected.temperature)
    assert not np.allclose(found.temperature, before.temperature)


def test_the_temperature_of_the_set_is_that_of_its_only_domain(problem):
    alone = record(problem, problem[3] == 2)
    assert alone.set_temperature() is alone.domain_temperatures()
    both = record(problem)
    assert both.set_temperature().n_samples == [900]


def test_known_columns_are_those_of_the_same_reference_only(problem):
    logits, _, features, domain = problem
    reference = describe_reference(features[domain == 0])
    known = {}
    describe(DEFAULT, logits, features, reference, known)
    rows = domain != 1
    taken = {key: found[rows] for key, found in known.items()}
    again, penalty = describe(DEFAULT, logits[rows], features[rows], reference, taken)
    expected, same = describe(DEFAULT, logits[rows], features[rows], reference)
    np.testing.assert_allclose(again, expected, rtol=1e-6)
    np.testing.assert_array_equal(penalty, same)
    other = describe_reference(features[domain == 2])
    found, _ = describe(DEFAULT, logits[rows], features[rows], other, taken)
    np.testing.assert_array_equal(
        found, describe(DEFAULT, logits[rows], features[rows], other)[0]
    )


def test_auto_describes_the_rows_of_its_folds_once(problem):
    logits, labels, features, domain = problem
    seen = []

    def counted(logits, features, reference):
        seen.append(len(logits))
        return original(logits, features, reference)

    original = descriptors.neighbour_distance
    with patch.dict(descriptors.DESCRIPTORS, neighbour_distance=counted):
        AutoCalibrator().fit(
            logits, labels, features=features, sample_domain=domain, source_domain=0
        )
    # All rows, then the left-out domain of either fold.
    assert seen == [900, 300, 300]
