"""Bins: exact edges, every row counted once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coolhead.metrics import expected_calibration_error, reliability_curve
from coolhead.metrics.bins import bin_edges, bin_index, equal_width_index, gap_sums

confidences = st.lists(st.floats(0, 1), min_size=1, max_size=60).map(np.array)
bin_counts = st.integers(1, 40)


def searched(confidence, n_bins):
    """The definition: right-closed bins, float64 edges m / n_bins, 0 in the first."""
    return np.searchsorted(np.arange(1, n_bins + 1) / n_bins, confidence, side="left")


@pytest.mark.parametrize(
    "n_bins", [1, 2, 3, 6, 7, 10, 15, 20, 49, 50, 100, 1000, 10_007]
)
def test_values_at_and_beside_every_edge(n_bins):
    edges = np.arange(n_bins + 1) / n_bins
    beside = [edges]
    for direction in (2, -1):
        step = edges
        for _ in range(5):
            step = np.nextafter(step, direction)
            beside.append(step)
    values = np.clip(np.concatenate(beside), 0, 1)
    assert np.array_equal(bin_index(values, n_bins, "width"), searched(values, n_bins))


@given(confidences, bin_counts)
@settings(deadline=None)
def test_any_values(confidence, n_bins):
    index = bin_index(confidence, n_bins, "width")
    assert np.array_equal(index, searched(confidence, n_bins))


def test_zero_edge_and_one_fall_into_the_stated_bins():
    index = bin_index(np.array([0, 1 / 15, 1]), 15, "width")
    assert index.tolist() == [0, 0, 14]


@given(confidences, bin_counts, st.sampled_from(["width", "mass"]))
@settings(deadline=None)
def test_counts_sum_to_the_number_of_rows(confidence, n_bins, binning):
    correct = confidence > 0.5
    curve = reliability_curve(correct, confidence, n_bins=n_bins, binning=binning)
    assert curve.count.sum() == len(confidence)
    assert len(curve.edges) == n_bins + 1


def test_equal_mass_bins_are_equally_full_without_ties():
    confidence = np.random.default_rng(0).random(1003)
    count = np.bincount(bin_index(confidence, 10, "mass"))
    assert set(count.tolist()) <= {100, 101}


def test_equal_mass_keeps_ties_together():
    confidence = np.repeat([0.2, 0.9], [7, 3])
    index = bin_index(confidence, 4, "mass")
    assert len(set(index[:7])) == 1 and len(set(index[7:])) == 1
    assert index[0] < index[9]


def test_blocks_do_not_change_the_sums():
    generator = np.random.default_rng(1)
    confidence = generator.random(300_001)
    correct = generator.random(300_001) < confidence
    whole = np.bincount(searched(confidence, 15), correct - confidence)
    assert np.allclose(gap_sums(correct, confidence, 15, "width"), whole, atol=1e-9)


@given(confidences, bin_counts)
@settings(deadline=None)
def test_rows_are_summed_two_at_a_time(confidence, n_bins):
    correct = np.sin(1e4 * confidence) > 0
    whole = np.bincount(searched(confidence, n_bins), correct - confidence, n_bins)
    for dtype in (bool, int, float):
        sums = gap_sums(correct.astype(dtype), confidence, n_bins, "width")
        assert np.allclose(sums, whole, atol=1e-12)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, "15"])
def test_a_bad_number_of_bins_is_refused(n_bins):
    with pytest.raises(ValueError, match="n_bins is"):
        expected_calibration_error([1, 0], [0.5, 0.5], n_bins=n_bins)


def test_an_unknown_binning_is_refused():
    with pytest.raises(ValueError, match="binning is 'kmeans'"):
        bin_edges(np.array([0.5]), 15, "kmeans")


def test_many_bins_take_no_more_steps_over_the_rows():
    class Counted(np.ndarray):
        steps = 0

        def __array_ufunc__(self, *given, **settings):
            Counted.steps += 1
            return getattr(given[0], given[1])(
                *(np.asarray(array) for array in given[2:]), **settings
            )

    confidence = np.random.default_rng(0).random(100)
    index = equal_width_index(confidence.view(Counted), 10_000)
    assert np.array_equal(index, searched(confidence, 10_000))
    assert Counted.steps < 50
