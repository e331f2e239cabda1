"""Improvement ratio, pooled sigma, sigma counts, significance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coolhead.metrics import (
    Interval,
    holm,
    improvement_ratio,
    is_significant,
    paired_bootstrap,
    paired_bootstrap_mean,
    pooled_sigma,
    sigma_counts,
)

value = st.floats(0, 0.5)
splits = st.lists(st.tuples(value, value), min_size=1, max_size=12)


@given(splits, st.floats(0, 1))
@settings(deadline=None)
def test_ratio_is_linear_between_source_and_target(pairs, share):
    source, target = np.array(pairs).T
    source = source + 0.6
    mixed = (1 - share) * source.mean() + share * target.mean()
    ratio = improvement_ratio(mixed, source, target)
    assert ratio == pytest.approx(share, abs=1e-9)
    assert improvement_ratio(source, source, target) == 0
    assert improvement_ratio(target, source, target) == 1


def test_ratio_of_averages_is_not_the_average_of_ratios():
    ratio = improvement_ratio([0.1, 0.3], [0.2, 0.31], [0.0, 0.3])
    assert ratio == pytest.approx((0.255 - 0.2) / (0.255 - 0.15))


@pytest.mark.parametrize(("source", "target"), [(0.1, 0.1), ([0.1, 0.2], [0.1, 0.3])])
def test_an_undefined_ratio_is_nan_with_a_reason(source, target):
    with pytest.warns(RuntimeWarning, match="is not above target_ece"):
        assert np.isnan(improvement_ratio(0.1, source, target))


def test_ratio_refuses_nan():
    with pytest.raises(ValueError, match="source_ece holds nan in row 0"):
        improvement_ratio(0.1, np.nan, 0.1)


def test_ratio_refuses_other_splits():
    found = "ece has 2, source_ece has 1, target_ece has 3 values"
    with pytest.raises(ValueError, match=found):
        improvement_ratio([0.1, 0.2], 0.3, [0.1, 0.1, 0.1])


def test_pooled_sigma_is_the_deviation_of_all_draws_together():
    draws = np.random.default_rng(0).normal([1, 4, 2], [1, 2, 3], (1000, 3))
    pooled = pooled_sigma(draws.mean(axis=0), draws.std(axis=0))
    assert pooled == pytest.approx(draws.std())
    with pytest.raises(ValueError, match="means has 2 entries, standard_deviations"):
        pooled_sigma([1, 2], [1])


def test_sigma_counts_at_the_limits():
    reductions = np.array([-3.5, -3, -2.5, -2, -1, 0, 1, 2, 2.5, 3, 4])
    result = sigma_counts(reductions + 5, np.full(11, 5.0), np.ones(11))
    assert result.counts == (1, 2, 2, 2, 2, 2)
    assert result.selection == "fixed method"
    assert result.reductions == pytest.approx(reductions)


def test_best_candidate_of_each_split_is_labelled():
    result = sigma_counts([5, 5], [[4, 1], [3, 9]], [[1, 2], [0.5, 1]])
    assert result.selection == "post-hoc best"
    assert result.reductions == pytest.approx([2, 4])


def test_sigma_counts_refuse_bad_input():
    with pytest.raises(ValueError, match=r"sigma holds 0\.0"):
        sigma_counts([1], [1], [0])
    with pytest.raises(ValueError, match="sigma has shape"):
        sigma_counts([1], [1], [1, 2])
    with pytest.raises(ValueError, match="baseline has 1 entries"):
        sigma_counts([1], [1, 2], [1, 2])


def test_holm_by_hand():
    p_values = {"a": 0.015, "b": 0.04, "c": 0.03, "d": 0.005}
    # 0.005 <= 0.05/4, 0.015 <= 0.05/3, but 0.03 > 0.05/2 ends it.
    assert holm(p_values) == {"a": True, "b": False, "c": False, "d": True}
    assert holm({}) == {}


@given(st.lists(st.floats(0, 1), max_size=8))
@settings(deadline=None)
def test_holm_lies_between_bonferroni_and_nothing(values):
    p_values = {str(k): value for k, value in enumerate(values)}
    rejected = holm(p_values)
    for name, p_value in p_values.items():
        if p_value <= 0.05 / len(p_values):
            assert rejected[name]
        if p_value > 0.05:
            assert not rejected[name]


@pytest.fixture(scope="module")
def paired():
    generator = np.random.default_rng(0)
    confidence = generator.beta(5, 2, 1500)
    correct = generator.random(1500) < confidence
    methods = {
        "source": confidence ** (1 / 2),
        "better": confidence,
        "same": confidence**0.5001,
        "worse": confidence ** (1 / 5),
    }
    return paired_bootstrap(correct, methods, baseline="source")


def test_paired_rule_knows_the_direction(paired):
    better = is_significant(paired)
    assert better == {"better": True, "same": False, "worse": False}
    worse = is_significant(paired, better="higher")
    assert worse == {"better": False, "same": False, "worse": True}


def test_paired_rule_keeps_its_error_rate():
    """Five methods without any difference: at most about 5 % of families fall."""
    generator = np.random.default_rng(0)
    false_alarms = 0
    for seed in range(200):
        scores = {str(k): generator.standard_normal(60) for k in range(6)}
        result = paired_bootstrap_mean(
            scores, baseline="0", n_draws=300, random_state=seed
        )
        falls = [is_significant(result, better=d) for d in ("lower", "higher")]
        false_alarms += any(any(fall.values()) for fall in falls)
    assert false_alarms <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)


def test_paired_rule_sees_what_non_overlap_misses():
    generator = np.random.default_rng(1)
    shared = generator.standard_normal(500)
    scores = {"base": shared, "ours": shared - 0.02 + 0.01 * generator.random(500)}
    result = paired_bootstrap_mean(scores, baseline="base")
    assert is_significant(result)["ours"]
    assert not is_significant(result, rule="non_overlap")["ours"]


def test_non_overlap_by_hand():
    scores = {
        "source": Interval(10, 9, 11),
        "published": Interval(8.5, 8.5, 8.5),
        "clear": Interval(7, 6, 8),
        "overlapping": Interval(7.9, 7, 8.8),
        "above": Interval(13, 12, 14),
    }
    one = is_significant(scores, rule="non_overlap", baseline="source")
    assert [one[n] for n in ("clear", "overlapping", "above")] == [True, True, False]
    both = is_significant(
        scores, rule="non_overlap", baseline=["source", "published"], better="lower"
    )
    assert both == {"clear": True, "overlapping": False, "above": False}
    up = is_significant(scores, rule="non_overlap", baseline="source", better="higher")
    assert up["above"] and not up["clear"]


def test_bad_arguments_are_refused(paired):
    with pytest.raises(ValueError, match="rule is 'z'"):
        is_significant(paired, rule="z")
    with pytest.raises(ValueError, match="better is 'smaller'"):
        is_significant(paired, better="smaller")
    with pytest.raises(ValueError, match="no paired differences"):
        is_significant({"a": Interval(1, 0, 2)})
    with pytest.raises(ValueError, match="baseline is None"):
        is_significant({"a": Interval(1, 0, 2)}, rule="non_overlap")
    few = paired_bootstrap_mean({"a": [1, 2], "b": [2, 1]}, baseline="a", n_draws=20)
    with pytest.raises(ValueError, match="wanted n_draws >= 40"):
        is_significant(few)
