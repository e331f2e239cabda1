"""The paired bootstrap, against plain loops and scipy."""

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from coolhead.metrics import (
    expected_calibration_error,
    paired_bootstrap,
    paired_bootstrap_mean,
)


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    confidence = generator.beta(5, 2, 1000)
    correct = generator.random(1000) < confidence
    methods = {
        "source": confidence ** (1 / 3),
        "set": confidence,
        "regression": confidence ** (1 / 2),
    }
    return correct, methods


def resampled_rows(n_rows, n_draws, seed):
    """25 draws of each generator, each seeded by the first draw's number."""
    rows = []
    for start in range(0, n_draws, 25):
        own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(start,)))
        rows += [own.integers(n_rows, size=n_rows) for _ in range(25)]
    return rows[:n_draws]


@pytest.mark.parametrize("n_bins", [1, 15])
def test_draws_are_the_eces_of_resampled_rows(data, n_bins):
    correct, methods = data
    result = paired_bootstrap(
        correct, methods, n_draws=60, n_bins=n_bins, random_state=5
    )
    rows = resampled_rows(1000, 60, seed=5)
    for name, confidence in methods.items():
        each = [
            expected_calibration_error(correct[r], confidence[r], n_bins=n_bins)
            for r in rows
        ]
        assert np.allclose(result.values[name], each, atol=1e-12, rtol=0)


def test_mean_draws_are_the_means_of_the_same_rows(data):
    _, methods = data
    result = paired_bootstrap_mean(methods, n_draws=30, random_state=5)
    rows = resampled_rows(1000, 30, seed=5)
    for name, scores in methods.items():
        assert result.values[name] == pytest.approx([scores[r].mean() for r in rows])


def test_plain_limits_are_those_of_the_basic_bootstrap(data):
    correct, methods = data
    result = paired_bootstrap(
        correct, methods, baseline="source", noise_allowance=False
    )
    change = result.differences["set"]
    draws = result.values["set"] - result.values["source"]
    limits = 2 * change.estimate - np.quantile(draws, [0.975, 0.025])
    assert (change.low, change.high) == pytest.approx(tuple(limits))
    difference = [
        expected_calibration_error(correct, methods[name]) for name in ("set", "source")
    ]
    assert change.estimate == pytest.approx(difference[0] - difference[1])


def test_mean_intervals_agree_with_scipy(data):
    _, methods = data
    result = paired_bootstrap_mean(methods, baseline="source", n_draws=4000)
    ours = result.differences["set"]
    theirs = stats.bootstrap(
        (methods["set"] - methods["source"],),
        np.mean,
        n_resamples=4000,
        method="basic",
        rng=1,
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.06 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.06 * width)


def test_allowance_only_widens_and_only_for_the_nearly_calibrated(data):
    correct, methods = data
    plain, wide = (
        paired_bootstrap(correct, methods, baseline="source", noise_allowance=on)
        for on in (False, True)
    )
    for name in methods:
        assert wide.estimates[name].low <= plain.estimates[name].low
        assert wide.estimates[name].high == plain.estimates[name].high
    extra = plain.differences["set"].low - wide.differences["set"].low
    assert extra > 0.003, "the calibrated method's ECE may be lower than it looks"
    # The baseline is clearly over-confident: nearly nothing to allow for.
    assert wide.differences["set"].high - plain.differences["set"].high < extra / 4


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("seed", range(6))
def test_p_values_agree_with_the_intervals(level, seed):
    generator = np.random.default_rng(seed)
    confidence = generator.beta(5, 2, 400)
    correct = generator.random(400) < confidence
    methods = {"a": confidence, "b": confidence**0.8, "c": confidence**1.1}
    result = paired_bootstrap(
        correct, methods, baseline="a", level=level, random_state=seed
    )
    for name, change in result.differences.items():
        apart = change.low > 0 or change.high < 0
        p_value = result.p_values[name]
        # Quantiles interpolate and p-values count: they may differ by one draw.
        if abs(p_value - (1 - level)) > 0.005:
            assert apart == (p_value < 1 - level)


@pytest.mark.parametrize("power", [0.55, 0.6, 1.4])
@pytest.mark.parametrize("baseline", ["calibrated", "off"])
def test_the_interval_at_the_p_value_s_level_ends_at_zero(power, baseline):
    """One method is nearly calibrated: the allowance differs on the two sides."""
    generator = np.random.default_rng(2)
    confidence = generator.beta(5, 2, 150)
    correct = generator.random(150) < confidence
    methods = {"calibrated": confidence, "off": confidence**power}
    options = {"baseline": baseline, "n_draws": 4000}
    result = paired_bootstrap(correct, methods, **options)
    ((name, p_value),) = result.p_values.items()
    assert 0.001 < p_value < 0.999
    change = paired_bootstrap(correct, methods, level=1 - p_value, **options)
    limits = change.differences[name]
    nearest = min(abs(limits.low), abs(limits.high))
    assert nearest < 0.02 * result.values[name].std()


def test_equal_methods_do_not_differ(data):
    correct, methods = data
    twice = {"a": methods["set"], "b": methods["set"].copy()}
    result = paired_bootstrap(correct, twice, baseline="a")
    assert result.differences["b"].low <= 0 <= result.differences["b"].high
    assert result.p_values["b"] == 1


def test_a_method_may_bring_its_own_correctness(data):
    correct, methods = data
    labels = dict.fromkeys(methods, correct) | {"set": ~correct}
    result = paired_bootstrap(labels, methods, n_draws=10)
    expected = expected_calibration_error(~correct, methods["set"])
    assert result.estimates["set"].estimate == pytest.approx(expected)


def test_probabilities_give_the_same_as_confidences():
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet(np.ones(4), 200)
    labels = generator.integers(4, size=200)
    correct = probabilities.argmax(axis=1) == labels
    full = paired_bootstrap(labels, {"a": probabilities}, n_draws=20)
    short = paired_bootstrap(correct, {"a": probabilities.max(axis=1)}, n_draws=20)
    assert np.allclose(full.values["a"], short.values["a"], atol=1e-15)
    assert full.differences == {} and full.baseline is None


def test_one_row_works():
    result = paired_bootstrap([1], {"a": [0.7], "b": [0.9]}, baseline="a", n_draws=9)
    assert result.estimates["a"].estimate == pytest.approx(0.3)


def test_bad_arguments_are_refused(data):
    correct, methods = data
    with pytest.raises(ValueError, match="baseline is 'best'; wanted one of source"):
        paired_bootstrap(correct, methods, baseline="best")
    with pytest.raises(ValueError, match="methods is list"):
        paired_bootstrap(correct, [methods["set"]])
    with pytest.raises(ValueError, match=r"methods have \[2, 3\] rows"):
        paired_bootstrap_mean({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(ValueError, match="labels has no entry for 'source'"):
        paired_bootstrap({}, methods)
    with pytest.raises(ValueError, match="n_draws is 0"):
        paired_bootstrap(correct, methods, n_draws=0)


def test_resamples_do_not_depend_on_threads():
    generator = np.random.default_rng(1)
    sure = generator.random(20_000)
    right = generator.random(20_000) < sure
    shared = paired_bootstrap(right, {"a": sure}, n_draws=80).values["a"]
    with threadpool_limits(1):
        alone = paired_bootstrap(right, {"a": sure}, n_draws=80).values["a"]
    assert np.array_equal(shared, alone)


@pytest.mark.parametrize(
    "made",
    [np.random.default_rng, np.random.RandomState, np.random.SeedSequence],
)
def test_a_generator_may_stand_for_the_seed(made):
    def drawn(random_state):
        right, sure = np.arange(100) % 2, np.linspace(0, 1, 100)
        found = paired_bootstrap(
            right, {"a": sure}, n_draws=60, random_state=random_state
        )
        return found.values["a"]

    first = drawn(made(1))
    assert np.array_equal(first, drawn(made(1)))
    assert not np.array_equal(first, drawn(made(2)))
    if made is not np.random.SeedSequence:  # which is no generator: it stays the same
        generator = made(1)
        drawn(generator)
        assert not np.array_equal(first, drawn(generator))
