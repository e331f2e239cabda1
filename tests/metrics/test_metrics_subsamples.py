"""Subsampling without replacement, shared by all methods."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from coolhead.metrics import (
    draw_subsamples,
    expected_calibration_error,
    subsample_ece,
    subsample_mean,
)


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    confidence = generator.beta(5, 2, 2000)
    confidence[:50] = 1.0
    correct = generator.random(2000) < confidence**2
    correct[:50] = True
    return correct, confidence


@given(st.integers(1, 60), st.data())
@settings(deadline=None)
def test_subsets_hold_distinct_rows_in_range(n_rows, data):
    size = data.draw(st.integers(1, n_rows))
    draws = draw_subsamples(n_rows, size, n_draws=5, random_state=1)
    assert draws.indices.shape == (5, size) == (draws.n_draws, draws.size)
    for rows in draws.indices:
        assert len(set(rows.tolist())) == size
        assert rows.min() >= 0 and rows.max() < n_rows


def test_every_row_is_equally_likely():
    draws = draw_subsamples(50, 20, n_draws=5000)
    share = np.bincount(draws.indices.ravel(), minlength=50) / 5000
    assert np.abs(share - 0.4).max() < 5 * np.sqrt(0.24 / 5000)


def test_a_seed_repeats():
    first, again = (draw_subsamples(99, 9, 7, random_state=3) for _ in range(2))
    assert np.array_equal(first.indices, again.indices)
    other = draw_subsamples(99, 9, 7, random_state=4)
    assert not np.array_equal(first.indices, other.indices)


def test_too_few_rows_give_three_quarters_and_say_so():
    with pytest.warns(UserWarning, match="only 1001 rows; drawing 750"):
        draws = draw_subsamples(1001, 1500, n_draws=2)
    assert (draws.size, draws.requested_size) == (750, 1500)
    with pytest.warns(UserWarning, match="drawing 1 "):
        assert draw_subsamples(1, 5, n_draws=2).size == 1


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("n_bins", [1, 2, 15, 16, 17, 100])
def test_ece_of_every_draw_is_the_ece_of_those_rows(data, n_bins, binning):
    correct, confidence = data
    draws = draw_subsamples(2000, 300, n_draws=20)
    score = subsample_ece(*data, draws, n_bins=n_bins, binning=binning)
    whole = expected_calibration_error(*data, n_bins=n_bins, binning=binning)
    assert score.estimate == pytest.approx(whole, abs=1e-12)
    if binning == "width":
        each = [
            expected_calibration_error(correct[rows], confidence[rows], n_bins=n_bins)
            for rows in draws.indices
        ]
        assert np.allclose(score.values, each, atol=1e-12, rtol=0)


def test_summary_of_the_draws(data):
    score = subsample_ece(*data, draw_subsamples(2000, 300, n_draws=200))
    assert score.mean == pytest.approx(score.values.mean())
    assert score.standard_deviation == pytest.approx(score.values.std())
    limits = np.percentile(score.values, [2.5, 97.5])
    assert (score.low, score.high) == pytest.approx(tuple(limits))


def test_drawing_all_rows_leaves_no_spread(data):
    draws = draw_subsamples(2000, 2000, n_draws=10)
    assert subsample_ece(*data, draws).standard_deviation == 0
    assert subsample_mean(data[1], draws).standard_deviation == 0


def test_spread_follows_the_finite_population_factor():
    scores = np.random.default_rng(0).standard_normal(2000)
    draws = draw_subsamples(2000, 1500, n_draws=2000)
    seen = subsample_mean(scores, draws)
    expected = scores.std(ddof=1) / np.sqrt(1500) * np.sqrt(1 - 1500 / 2000)
    assert seen.standard_deviation == pytest.approx(expected, rel=0.06)
    assert seen.estimate == pytest.approx(scores.mean())


def test_means_of_every_draw():
    scores = np.arange(50.0)
    draws = draw_subsamples(50, 10, n_draws=4)
    means = [scores[rows].mean() for rows in draws.indices]
    assert subsample_mean(scores, draws).values == pytest.approx(means)


def test_bad_arguments_are_refused(data):
    with pytest.raises(ValueError, match="made from 10 rows, the data has 2000"):
        subsample_ece(*data, draw_subsamples(10, 5, n_draws=2))
    with pytest.raises(ValueError, match="size is 0"):
        draw_subsamples(10, 0)
    with pytest.raises(ValueError, match=r"n_draws is 2\.5"):
        draw_subsamples(10, 5, n_draws=2.5)
    with pytest.raises(ValueError, match="scores holds nan in row 1"):
        subsample_mean([0, np.nan], draw_subsamples(2, 1, n_draws=2))
    with pytest.raises(ValueError, match=r"level is 95"):
        subsample_ece(*data, draw_subsamples(2000, 5, n_draws=2), level=95)


def test_draws_do_not_depend_on_threads_nor_on_how_many_follow(data):
    wanted = {"n_rows": 40_000, "size": 9_000, "random_state": 3}
    shared = draw_subsamples(**wanted, n_draws=130)
    with threadpool_limits(1):
        alone = draw_subsamples(**wanted, n_draws=130)
    assert np.array_equal(shared.indices, alone.indices)
    first = draw_subsamples(**wanted, n_draws=30)
    assert np.array_equal(first.indices, shared.indices[:30])
    correct, confidence = (np.tile(column, 20) for column in data)
    score = subsample_ece(correct, confidence, shared)
    with threadpool_limits(1):
        assert np.array_equal(
            subsample_ece(correct, confidence, alone).values, score.values
        )


def test_blocks_of_draws_are_not_alike():
    draws = draw_subsamples(1000, 10, n_draws=60).indices
    assert len(np.unique(draws, axis=0)) == 60
