"""Methods that use unlabelled target data, against plain code from the formulas."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import coolhead as ch
from coolhead.baselines.transfer import (
    CPCS,
    ChosenDomainsTemperature,
    KnownErrors,
    TransCal,
    WeightedClusterTemperature,
    WeightedTemperature,
)
from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.calibrators.data import CalibrationData, Target, fit_with
from coolhead.numerics.solver import Status
from coolhead.numerics.temperature import fit_temperature
from coolhead.shift import density_ratio

CHOOSING = ChosenDomainsTemperature
TRANSFER = [
    WeightedTemperature,
    WeightedClusterTemperature,
    ChosenDomainsTemperature,
    CPCS,
    TransCal,
]


def world(n=900, k=4, step=0.8, seed=0, scale=3.0):
    """Source and target rows; far rows along the first feature are overconfident."""
    rng = np.random.default_rng(seed)
    sets = []
    for shift in (0.0, step):
        features = rng.normal(size=(n, 3))
        features[:, 0] += shift
        true = 2 * rng.normal(size=(n, k))
        labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
        logits = scale * true * np.exp(0.4 * features[:, :1])
        sets.append((logits, labels, features))
    return sets


def fitted(method, source, target, **options):
    return method.fit(
        source[0],
        source[1],
        features=source[2],
        target_features=target[2],
        target_logits=target[0],
        **options,
    )


def chances(logits, temperature):
    powers = np.exp((logits - logits.max(axis=1, keepdims=True)) / temperature)
    return powers / powers.sum(axis=1, keepdims=True)


def test_weighted_temperature_is_the_weighted_fit():
    source, target = world()
    method = fitted(WeightedTemperature(), source, target)
    weights = method.density_ratio_.weights

    def loss(position):
        own = chances(source[0], np.exp(position[0]))[np.arange(900), source[1]]
        return -np.average(np.log(own), weights=weights)

    plain = minimize(loss, [0.0], method="Nelder-Mead", options={"xatol": 1e-8})
    assert method.temperature_ == pytest.approx(np.exp(plain.x[0]), rel=1e-4)
    # Further along the first feature the classifier is more overconfident.
    assert method.temperature_ > fit_temperature(source[0], source[1]).temperature


def test_weighted_moves_towards_the_target_oracle():
    source, target = world(n=4000)
    oracle = fit_temperature(target[0], target[1]).temperature
    plain = fit_temperature(source[0], source[1]).temperature
    weighted = fitted(WeightedTemperature(), source, target).temperature_
    assert abs(weighted - oracle) < 0.5 * abs(plain - oracle)


def test_cpcs_agrees_with_a_plain_search():
    source, target = world()
    method = fitted(CPCS(), source, target)
    weights, hot = method.density_ratio_.weights, np.eye(4)[source[1]]

    def brier(temperature):
        rows = np.sum((chances(source[0], temperature) - hot) ** 2, axis=1)
        return np.average(rows, weights=weights)

    fine = np.geomspace(1, 20, 1000)
    best = fine[np.argmin([brier(t) for t in fine])]
    assert method.temperature_ == pytest.approx(best, rel=3e-3)
    assert method.brier_ == pytest.approx(brier(method.temperature_), rel=1e-9)
    assert method.brier_ <= brier(best) + 1e-12


def plain_transcal(source, target, weights):
    """The published procedure, with numerical gradients, as its formulas say."""
    wrong = (source[0].argmax(axis=1) != source[1]).astype(float)
    own = fit_temperature(source[0], source[1]).temperature
    mean = chances(source[0], own).max(axis=1).mean()

    def estimate(power):
        v = weights**power
        a = v * wrong
        # At power 0 nothing varies, and the published code divides zero by zero.
        first = -np.cov(a, v)[0, 1] / np.var(v, ddof=1) if power > 0 else 0.0
        right = 1 - wrong
        second = -np.cov(a + first * (v - 1), right)[0, 1] / np.var(right, ddof=1)
        return a.mean() + first * (v.mean() - 1) + second * (right.mean() - mean)

    def objective(x):
        reached = chances(target[0], x[0]).max(axis=1).mean()
        return abs(reached - (1 - estimate(x[1])))

    bounds = [(1, None), (0, 1)]
    return minimize(objective, (2.0, 0.5), method="SLSQP", bounds=bounds), estimate


def test_transcal_agrees_with_the_published_procedure():
    source, target = world()
    method = fitted(TransCal(), source, target)
    plain, estimate = plain_transcal(source, target, method.density_ratio_.weights)
    assert method.temperature_ == pytest.approx(plain.x[0], rel=0.02)
    assert method.weight_power_ == pytest.approx(plain.x[1], abs=0.03)
    assert method.target_accuracy_ == pytest.approx(1 - estimate(method.weight_power_))
    assert method.mismatch_ < 1e-3


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_root_solver_matches_confidence_exactly(power):
    source, target = world()
    method = fitted(TransCal(solver="root", weight_power=power), source, target)
    reached = chances(target[0], method.temperature_).max(axis=1).mean()
    assert reached == pytest.approx(method.target_accuracy_, abs=1e-7)
    assert method.weight_power_ == power
    again = fitted(TransCal(solver="root", weight_power=power), source, target)
    assert again.temperature_ == method.temperature_


def test_root_solver_can_sharpen_and_published_cannot():
    source, target = world(scale=0.3)
    assert fitted(TransCal(), source, target).temperature_ == 1
    assert fitted(TransCal(solver="root"), source, target).temperature_ < 1


def test_error_estimate_survives_its_pitfalls():
    weights = np.random.default_rng(0).exponential(size=50)
    for errors in (np.zeros(50), np.ones(50), np.eye(50)[0]):
        known = KnownErrors(weights, errors, 0.7)
        for power in (0.0, 0.5, 1.0):
            assert np.isfinite(known.target_error(power))
            assert 0 <= known.target_accuracy(power) <= 1
    alone = KnownErrors(weights[:1], np.ones(1), 0.5)
    assert np.isfinite(alone.target_error(1))


@pytest.mark.parametrize("solver", ["published", "root"])
def test_transcal_on_perfect_and_hopeless_sources(solver):
    source, target = world(n=300)
    right, top = source[0].argmax(axis=1), source[0].argmin(axis=1)
    for labels in (right, top):
        odd = (source[0], labels, source[2])
        method = fitted(TransCal(solver=solver), odd, target)
        assert 0 < method.temperature_ < np.inf
        assert method.status_
    flat = (source[0], source[1], source[2])
    constant = (np.zeros_like(target[0]), target[1], target[2])
    assert fitted(TransCal(solver=solver), flat, constant).temperature_ > 0


def test_equal_sizes_and_published_start_are_fine():
    source, target = world(n=200)
    assert len(source[0]) == len(target[0])
    assert fitted(TransCal(), source, target).temperature_ >= 1


def test_weighted_cluster_with_even_weights_is_the_nearest_cluster():
    source, _ = world(n=600)
    twin = (source[0], source[1], source[2].copy())
    method = WeightedClusterTemperature(3, max_weight=1e-6)
    fitted(method, source, twin)
    plain = NearestClusterTemperature(3, n_init=1).fit(
        source[0], source[1], features=source[2]
    )
    np.testing.assert_allclose(
        method.cluster_temperatures_, plain.cluster_temperatures_, rtol=1e-6
    )


def test_few_effective_samples_warn_with_the_number():
    source, target = world(n=200, step=0.0)
    far = target[2] + 9
    with pytest.warns(UserWarning, match=r"\d+\.\d effective samples of 200"):
        source[2][:5] = far[:5]
        WeightedTemperature().fit(
            source[0], source[1], features=source[2], target_features=far
        )


@pytest.mark.parametrize("method", TRANSFER)
def test_missing_or_unlike_target_is_refused(method):
    source, target = world(n=60)
    with pytest.raises(ValueError, match="target_features is missing"):
        method().fit(source[0], source[1], features=source[2])
    with pytest.raises(ValueError, match="features is missing"):
        method().fit(source[0], source[1], target_features=target[2])
    with pytest.raises(ValueError, match="has 2 columns, features has 3"):
        fitted(method(), source, (target[0], target[1], target[2][:, :2]))
    with pytest.raises(ValueError, match="has 7 columns, features has 3"):
        fitted(method(), source, target, reference_features=np.zeros((9, 7)))


def test_transcal_needs_target_logits():
    source, target = world(n=60)
    with pytest.raises(ValueError, match="target_logits is missing"):
        fitted(TransCal(), source, (None, None, target[2]))
    with pytest.raises(ValueError, match="columns"):
        fitted(TransCal(), source, (target[0][:, :2], None, target[2]))
    with pytest.raises(ValueError, match="solver"):
        fitted(TransCal(solver="guess"), source, target)
    with pytest.raises(ValueError, match="weight_power"):
        fitted(TransCal(weight_power=2), source, target)


def test_nll_above_uncalibrated_is_said():
    source, target = world(n=400, scale=0.3)
    # A target that looks all wrong asks for heat that the source does not need.
    wrong = (source[0], source[0].argmin(axis=1), source[2])
    method = fitted(TransCal(), wrong, target)
    assert method.nll_ <= method.nll_uncalibrated_ + 1e-9 or (
        method.status_ == "nll_above_uncalibrated"
    )


@pytest.mark.parametrize("method", [WeightedTemperature, CPCS, TransCal])
def test_published_weights_reach_the_fit(method):
    source, target = world()
    rows = source[2] + np.random.default_rng(9).normal(scale=0.1, size=(900, 3))
    published = fitted(
        method(estimator="published"), source, target, reference_features=rows
    )
    direct = density_ratio(
        source[2], target[2], reference_features=rows, estimator="published"
    )
    np.testing.assert_array_equal(published.density_ratio_.weights, direct.weights)
    # Unscaled: on shifted rows their mean is one only in expectation.
    assert direct.weights.mean() != 1.0
    assert published.temperature_ > 0


@pytest.mark.parametrize("method", [m for m in TRANSFER if m is not CHOOSING])
def test_one_labelled_row_has_a_temperature_and_a_warning(method):
    source, target = world(n=50)
    one = [part[:1] for part in source]
    settings = {"n_clusters": 1} if method is WeightedClusterTemperature else {}
    with pytest.warns(UserWarning, match=r"1\.0 effective samples of 1"):
        found = fitted(method(**settings), one, target)
    assert found.temperature_ > 0
    assert found.status_ in set(Status)


class TestTransCalEdges:
    def test_rows_of_features_and_logits_must_match(self):
        source, target = world(n=200, step=0.1)
        short = (target[0][:10], target[1], target[2])
        with pytest.raises(ValueError, match="10 rows, target_features 200"):
            fitted(TransCal(), source, short)

    @pytest.mark.parametrize("solver", ["published", "root"])
    def test_constant_target_logits_are_said(self, solver):
        source, target = world(n=100)
        flat = (np.zeros_like(target[0]), target[1], target[2])
        found = fitted(TransCal(solver=solver), source, flat)
        assert (found.temperature_, found.status_) == (1.0, Status.CONSTANT_LOGITS)

    @pytest.mark.parametrize("solver", ["published", "root"])
    def test_an_accuracy_below_chance_is_at_the_bound(self, solver):
        source, target = world(n=300)
        wrong = (source[0], source[0].argmin(axis=1), source[2])
        assert fitted(TransCal(solver=solver), wrong, target).status_ == Status.AT_BOUND

    def test_the_largest_float32_logits(self):
        source, target = world(n=100)
        huge = [
            ((1e37 * logits / np.abs(logits).max()).astype(np.float32), labels, rows)
            for logits, labels, rows in (source, target)
        ]
        found = fitted(TransCal(solver="root"), *huge)
        assert np.isfinite(found.temperature_)


@pytest.mark.parametrize("method", TRANSFER)
def test_methods_on_one_record_share_one_density_ratio(method, monkeypatch):
    source, target = world(n=300)
    alone = fitted(method(), source, target)
    data = CalibrationData.of(
        source[0],
        source[1],
        features=source[2],
        target_features=target[2],
        target_logits=target[0],
    )
    first = fit_with(WeightedTemperature(), data)
    other = fit_with(method(), data)
    np.testing.assert_array_equal(
        alone.predict_proba(target[0], target[2]),
        other.predict_proba(target[0], target[2]),
    )
    assert other.density_ratio_ is first.density_ratio_
    # Another target is another ratio, also in a record that shares the memo.
    moved = replace(data, target=Target(target[2] + 0.1, target[0]))
    assert fit_with(method(), moved).density_ratio_ is not first.density_ratio_


def test_domains_unlike_the_target_are_left_out():
    data = ch.datasets.simulate_domains([1.0, 2.0, 2.0], n_rows=200)
    target = data.rows(data.domains == "site-2")
    seen = data.rows(data.domains != "site-2")
    given = {
        "features": seen.features,
        "sample_domain": seen.domains,
        "target_features": target.features,
    }
    nearest = seen.rows(seen.domains == "site-1")
    plain = ch.TemperatureScaling().fit(nearest.logits, nearest.labels)
    chosen = ChosenDomainsTemperature().fit(seen.logits, seen.labels, **given)
    assert chosen.kept_domains_ == ["site-1"]
    assert chosen.domain_weights_["site-0"] < chosen.domain_weights_["site-1"]
    assert chosen.temperature_ == pytest.approx(plain.temperature_)
    both = ChosenDomainsTemperature(keep=0).fit(seen.logits, seen.labels, **given)
    pooled = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    assert both.temperature_ == pytest.approx(pooled.temperature_)
    with pytest.raises(ValueError, match="keep is 2; wanted a number in"):
        ChosenDomainsTemperature(keep=2).fit(seen.logits, seen.labels, **given)
