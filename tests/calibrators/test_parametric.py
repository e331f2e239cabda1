"""MD-TS, PTS, DAC and ETS on the data they were made for."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import NotFittedError

from coolhead.baselines.classwise import EnsembleTemperatureScaling, VectorScaling
from coolhead.baselines.density_aware import DensityAwareTemperature, neighbor_distances
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.parametric import (
    ParameterizedTemperature,
    backward,
    forward,
    initial_layers,
    largest_logits,
    pack,
    unpack,
)
from coolhead.baselines.two_stage import TwoStageCalibration
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.numerics.search import affine_slopes, temperature_slopes
from coolhead.numerics.softmax import brier_rows, log_loss_rows
from simulate import logits_and_labels, shifted_domains


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_temperature_slopes(loss):
    logits, labels = logits_and_labels(7, 4, scale=2.0)
    temperature = np.linspace(0.5, 4, 7)
    rows = log_loss_rows if loss == "nll" else brier_rows
    losses, slopes = temperature_slopes(logits, labels, temperature, loss)
    np.testing.assert_allclose(losses, rows(logits, labels, temperature), rtol=1e-12)
    up = rows(logits, labels, temperature * np.exp(1e-6))
    down = rows(logits, labels, temperature * np.exp(-1e-6))
    np.testing.assert_allclose(slopes, (up - down) / 2e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(3,), (3, 3)])
def test_affine_slopes(shape):
    rng = np.random.default_rng(0)
    logits, labels = logits_and_labels(40, 3)
    weights, bias = rng.random(40), rng.normal(size=3)
    slope = rng.normal(size=shape)

    def loss(parameters):
        parts = parameters[:-3].reshape(shape), parameters[-3:]
        return affine_slopes(logits, labels, weights, *parts)[0]

    _, by_slope, by_bias = affine_slopes(logits, labels, weights, slope, bias)
    start = np.r_[slope.ravel(), bias]
    expected = approx_fprime(start, loss, 1e-7)
    np.testing.assert_allclose(np.r_[by_slope.ravel(), by_bias], expected, atol=1e-4)


def test_network_gradient():
    rng = np.random.default_rng(0)
    inputs, slopes = rng.normal(size=(30, 4)), rng.normal(size=30)
    layers = initial_layers((4, 5, 3), rng)
    layers[-1] = (rng.normal(size=(3, 1)), rng.normal(size=1))
    shapes = [weights.shape for weights, _ in layers]
    _, memory = forward(inputs, layers)
    found = pack(backward(slopes, layers, memory))
    expected = approx_fprime(
        pack(layers), lambda p: slopes @ forward(inputs, unpack(p, shapes))[0], 1e-7
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_multidomain_finds_the_domains_temperatures():
    logits, labels, features, domains = shifted_domains(n=800)
    method = MultiDomainTemperature().fit(
        logits, labels, features=features, sample_domain=domains
    )
    np.testing.assert_allclose(method.domain_temperatures_, [1, 2, 4], rtol=0.15)
    found = method.temperature(logits, features)
    for name, wanted in zip(method.domains_, method.domain_temperatures_, strict=True):
        assert found[domains == name].mean() == pytest.approx(wanted, rel=0.3)
    assert method.nll_ < TemperatureScaling().fit(logits, labels).nll_


def test_multidomain_is_ridge_regression_on_rows():
    logits, labels, features, domains = shifted_domains(n=200)
    method = MultiDomainTemperature(penalty=0.01).fit(
        logits, labels, features=features, sample_domain=domains
    )
    heights = method.domain_temperatures_[np.repeat([0, 1, 2], 200)]
    centred = features - features.mean(axis=0)
    penalty = 0.01 * np.trace(centred.T @ centred) / features.shape[1]
    gram = centred.T @ centred + penalty * np.eye(features.shape[1])
    slope = np.linalg.solve(gram, centred.T @ (heights - heights.mean()))
    np.testing.assert_allclose(method.coef_, slope, rtol=1e-8)


def test_multidomain_stays_positive_and_in_range():
    logits, labels, features, domains = shifted_domains(n=200)
    known = {"features": features, "sample_domain": domains}
    far = np.full((10, 6), -500.0)
    floor = MultiDomainTemperature().fit(logits, labels, **known)
    assert floor.temperature(logits[:10], far).min() > 0
    inside = MultiDomainTemperature(clip="range").fit(logits, labels, **known)
    assert inside.temperature(logits[:10], far).min() == pytest.approx(
        inside.domain_temperatures_.min()
    )
    with pytest.raises(ValueError, match="sample_domain is missing"):
        MultiDomainTemperature().fit(logits, labels, features=features)
    with pytest.raises(ValueError, match="clip"):
        MultiDomainTemperature(clip="no").fit(logits, labels, **known)


def confident_rows_are_wrong(n=1500, k=12, seed=0):
    """Rows with a large lead are the overconfident ones: T depends on the logits."""
    rng = np.random.default_rng(seed)
    true = 1.5 * rng.normal(size=(n, k))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    lead = true.max(axis=1, keepdims=True) - np.median(true)
    return true * np.where(lead > 2.7, 6.0, 1.0), labels


@pytest.mark.parametrize("loss", ["brier", "nll"])
def test_pts_beats_one_temperature_where_it_depends_on_the_logits(loss):
    logits, labels = confident_rows_are_wrong()
    new_logits, new_labels = confident_rows_are_wrong(seed=1)
    plain = TemperatureScaling().fit(logits, labels)
    method = ParameterizedTemperature(loss=loss, max_iter=100).fit(logits, labels)
    assert method.nll_ < plain.nll_ - 0.02
    new = log_loss_rows(new_logits, new_labels, method.temperature(new_logits)).mean()
    old = log_loss_rows(new_logits, new_labels, plain.temperature_).mean()
    assert new < old - 0.02


def test_pts_inputs_and_few_classes():
    logits, labels = logits_and_labels(200, 3, scale=2.0)
    top = largest_logits(logits, 10, np.inf)
    assert top.shape == (200, 3)
    assert np.all(np.diff(top, axis=1) <= 0)
    method = ParameterizedTemperature(max_iter=20).fit(logits, labels)
    shifted = method.temperature(logits + 50)
    np.testing.assert_allclose(method.temperature(logits), shifted, rtol=1e-9)
    assert np.array_equal(
        ParameterizedTemperature(max_iter=20).fit(logits, labels).temperature(logits),
        method.temperature(logits),
    )
    with pytest.raises(ValueError, match="loss"):
        ParameterizedTemperature(loss="hinge").fit(logits, labels)


def distance_makes_overconfident(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=(500, 8)) * 0.1 + np.eye(8)[0]
    spread = np.repeat([0.1, 1.5], n // 2)[:, None]
    features = rng.normal(size=(n, 8)) * spread + np.eye(8)[0]
    distance = neighbor_distances(features, reference, 10)
    true = 2 * rng.normal(size=(n, 6))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    return true * (1 + 4 * distance)[:, None], labels, features, reference


def test_dac_follows_the_distance():
    logits, labels, features, reference = distance_makes_overconfident()
    known = {"features": features, "reference_features": reference}
    method = DensityAwareTemperature(10).fit(logits, labels, **known)
    plain = TemperatureScaling().fit(logits, labels)
    assert method.nll_ < plain.nll_ - 0.01
    distance = neighbor_distances(features, reference, 10)
    found = method.temperature(logits, features)
    assert np.corrcoef(found, distance)[0, 1] > 0.999
    assert method.coef_[0] == pytest.approx(4, rel=0.25)
    assert method.intercept_ == pytest.approx(1, rel=0.25)


def test_dac_distances_by_hand():
    rng = np.random.default_rng(0)
    rows, reference = rng.normal(size=(6, 3)), rng.normal(size=(9, 3))
    rows_unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    unit = reference / np.linalg.norm(reference, axis=1, keepdims=True)
    squares = ((rows_unit[:, None] - unit) ** 2).sum(axis=2)
    expected = np.sort(squares, axis=1)
    for k in (1, 4):
        np.testing.assert_allclose(
            neighbor_distances(rows, reference, k), expected[:, k - 1], atol=1e-5
        )


def test_dac_layers_and_options():
    logits, labels, features, reference = distance_makes_overconfident(400)
    both = np.hstack([features, features[:, ::-1]])
    method = DensityAwareTemperature(5, layer_widths=(8, 8), neighbor="nearest")
    method.fit(
        logits,
        labels,
        features=both,
        reference_features=np.hstack([reference, reference[:, ::-1]]),
    )
    assert method.coef_.shape == (2,)
    assert method.nll_ <= TemperatureScaling().fit(logits, labels).nll_ + 1e-9
    # Without training data a row is not its own neighbour.
    own = DensityAwareTemperature(1).fit(logits, labels, features=features)
    assert own._distances(features, own=True).min() > 0
    with pytest.raises(ValueError, match="layer_widths"):
        DensityAwareTemperature(layer_widths=(3,)).fit(
            logits, labels, features=features
        )
    for wrong in ({"neighbor": "far"}, {"n_neighbors": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            DensityAwareTemperature(**wrong).fit(logits, labels, features=features)


def test_ets_finds_the_mixture():
    logits, labels = logits_and_labels(4000, 5, scale=3.0, seed=1)
    rng = np.random.default_rng(2)
    noise = rng.random(4000) < 0.3
    labels = np.where(noise, rng.integers(0, 5, 4000), labels)
    method = EnsembleTemperatureScaling().fit(logits, labels)
    plain = TemperatureScaling().fit(logits, labels)
    assert method.mixture_.sum() == pytest.approx(1)
    assert method.mixture_.min() >= 0
    assert method.accuracy_change_ == 0
    assert method.nll_ <= plain.nll_ + 1e-12
    # Noisy labels need a floor that no temperature can give.
    assert method.mixture_[2] > 0.02


def test_ets_agrees_with_a_grid():
    logits, labels = logits_and_labels(300, 3, scale=4.0, seed=3)
    method = EnsembleTemperatureScaling().fit(logits, labels)

    def score(mixture):
        twin = EnsembleTemperatureScaling().fit(logits, labels)
        twin.mixture_ = mixture
        found = twin.predict_proba(logits)
        return -np.log(found[np.arange(300), labels]).mean()

    steps = np.linspace(0, 1, 6)
    grid = [np.array([a, b, 1 - a - b]) for a in steps for b in steps if a + b <= 1]
    assert score(method.mixture_) <= min(map(score, grid)) + 1e-9


@pytest.mark.parametrize(
    "method",
    [DensityAwareTemperature(3), ParameterizedTemperature(loss="nll")],
    ids=str,
)
def test_data_without_a_minimum_are_not_called_converged(method):
    logits, _ = logits_and_labels(150, 4)
    features = np.random.default_rng(0).normal(size=(150, 3))
    method.fit(logits, logits.argmax(axis=1), features=features)
    assert method.status_ == "perfectly_separated"
    method.fit(logits, logits.argmin(axis=1), features=features)
    assert method.status_ == "worse_than_uniform"


class TestTwoStages:
    def test_second_stage_sees_scaled_logits(self):
        logits, labels, features, reference = distance_makes_overconfident(600)
        known = {"features": features, "reference_features": reference}
        both = TwoStageCalibration().fit(logits, labels, **known)
        first = DensityAwareTemperature().fit(logits, labels, **known)
        scaled = logits / first.temperature(logits, features)[:, None]
        second = EnsembleTemperatureScaling().fit(scaled, labels)
        found = both.predict_proba(logits, features)
        np.testing.assert_allclose(found, second.predict_proba(scaled), atol=1e-6)
        largest, predicted = both.confidence(logits, features)
        np.testing.assert_allclose(largest, found.max(axis=1))
        np.testing.assert_array_equal(predicted, logits.argmax(axis=1))
        assert both.accuracy_change_ == 0
        assert both.nll_ <= first.nll_ + 1e-9
        assert both.nll_uncalibrated_ == pytest.approx(first.nll_uncalibrated_)
        # There is no one temperature to export or to average any more.
        assert not hasattr(both, "temperature")

    def test_any_two_stages(self):
        logits, labels = logits_and_labels(200, 3, scale=3.0)
        both = TwoStageCalibration(TemperatureScaling(), VectorScaling())
        both.fit(logits, labels, sample_weight=np.linspace(0, 1, 200))
        assert not both.uses_features
        assert both.nll_ < both.nll_uncalibrated_
        assert both.status_ == "converged"
        with pytest.raises(NotFittedError):
            TwoStageCalibration().predict_proba(logits)


def test_one_row_or_constant_features_draw_a_level_line():
    logits, labels = logits_and_labels(100, 3, scale=2.0)
    same = np.ones((100, 2))
    method = MultiDomainTemperature()
    method.fit(logits, labels, features=same, sample_domain=[1, 2] * 50)
    assert np.ptp(method.temperature(logits, same)) == 0
