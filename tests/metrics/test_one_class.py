"""One class at a time, for problems where one class is rare."""

import numpy as np
import pandas as pd
import pytest

import coolhead as ch

CLASSES = np.array(["lives", "dies"])


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(0)
    p = np.clip(rng.beta(1, 12, 4000), 1e-3, 1)
    y = CLASSES[(rng.random(4000) < p / 2).astype(int)]  # twice too likely
    return pd.DataFrame({"lives": 1 - p, "dies": p}), y


def test_the_curve_of_a_class_by_hand(rare):
    p, y = rare
    curve = ch.reliability_curve(y, p, of="dies", n_bins=10)
    index = np.ceil(p["dies"].to_numpy() * 10).astype(int) - 1
    for number in np.flatnonzero(curve.count):
        own = index == number
        assert curve.count[number] == own.sum()
        assert curve.accuracy[number] == pytest.approx(np.mean(y[own] == "dies"))
        assert curve.confidence[number] == pytest.approx(p["dies"][own].mean())
    # Most rows have a confidence near one, where the error of a rare class is lost.
    usual = ch.reliability_curve(y, p, n_bins=10)
    assert not np.array_equal(usual.count, curve.count)


def test_names_columns_and_numbers_mean_the_same_class(rare):
    p, y = rare
    wanted = ch.reliability_curve(y, p, of="dies")
    array = p.to_numpy()
    codes = (y == "dies").astype(int)
    for found in (
        ch.reliability_curve(y, p[["dies", "lives"]], of="dies"),
        ch.reliability_curve(y, array, classes=CLASSES, of="dies"),
        ch.reliability_curve(codes, array, of=1),
    ):
        np.testing.assert_array_equal(found.count, wanted.count)
        np.testing.assert_allclose(found.accuracy, wanted.accuracy)


def test_an_unknown_class_is_named(rare):
    p, y = rare
    with pytest.raises(ValueError, match=r"of is 'died'.*wanted one of lives, dies"):
        ch.reliability_curve(y, p, of="died")
