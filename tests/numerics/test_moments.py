"""Rows with what is known of each: some of them, again and again, without a copy."""

import numpy as np
import pytest

from coolhead.numerics.moments import row_moments, summarise_rows


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40, 5)).astype(np.float32)
    return summarise_rows(logits, rng.integers(0, 5, 40), scores=False)


def test_some_of_some_rows_are_not_copied_and_have_the_same_moments(rows):
    mask = np.arange(40) % 3 > 0
    some = rows.take(mask).take(np.array([7, 2, 2, 19]))
    expected = np.flatnonzero(mask)[[7, 2, 2, 19]]
    assert some.whole is rows.whole
    assert len(some) == 4
    np.testing.assert_array_equal(some.logits, rows.logits[expected])
    inverse = np.linspace(0.5, 2, 40)
    every = row_moments(rows, inverse)
    here = row_moments(some, inverse[expected])
    for one, other in zip(every, here, strict=True):
        np.testing.assert_array_equal(one[expected], other)


def test_a_pass_over_some_of_the_rows_that_were_taken(rows):
    some, index = rows.take(np.arange(5, 35)), np.array([3, 0, 29])
    here = row_moments(some, np.ones(3), index)
    every = row_moments(rows, np.ones(40))
    np.testing.assert_array_equal(here.loss, every.loss[[8, 5, 34]])


def test_no_rows(rows):
    none = rows.take(np.zeros(40, bool))
    assert none.logits.shape == (0, 5)
    assert row_moments(none, np.zeros(0)).loss.shape == (0,)
