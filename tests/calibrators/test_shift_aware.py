"""ShiftAwareTemperature: descriptors and fit against outside oracles, and limits."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from coolhead.calibrators import descriptors as d
from coolhead.calibrators.descriptors import describe_reference
from coolhead.calibrators.shift_aware import (
    LogLinearProblem,
    ShiftAwareTemperature,
    fit_log_linear,
    fit_path,
    prefer,
    standardise,
    thin_domains,
)
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.io.calibrators import load_calibrator, save_calibrator
from coolhead.numerics.moments import summarise_rows
from coolhead.numerics.softmax import log_loss_rows

RNG = np.random.default_rng(0)


def drifting_world(places, n=400, k=6, width=12, seed=0):
    """Domains ever further from home; the best log T of a row is its own offset."""
    rng = np.random.default_rng(seed)
    truth = 2.0 * rng.normal(size=(n * len(places), k))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    domains = np.repeat([f"place {place:g}" for place in places], n)
    away = np.repeat(places, n) + 0.3 * rng.normal(size=len(domains))
    features = rng.normal(size=(len(domains), width)) * 0.3
    features[:, 0] += 3.0
    features[:, 1] += 2.0 * away
    log_temperature = 0.8 * away
    return truth * np.exp(log_temperature)[:, None], labels, features, domains, away


def fitted(places=(0.0, 0.7, 1.4), **settings):
    logits, labels, features, domains, _ = drifting_world(places)
    home = drifting_world([0.0], seed=5)[2]
    return ShiftAwareTemperature(**settings).fit(
        logits,
        labels,
        features=features,
        sample_domain=domains,
        source_domain="place 0",
        reference_features=home,
    )


@pytest.mark.parametrize("noise", [1.0, 0.01])
def test_neighbour_distance_is_scikit_learns(noise):
    reference = np.repeat(RNG.normal(size=(30, 20)), 10, axis=0)
    reference += noise * RNG.normal(size=reference.shape)
    query = reference[::6] + noise * RNG.normal(size=(50, 20))
    home = describe_reference(reference, n_neighbours=7)
    peer = NearestNeighbors(n_neighbors=7, metric="cosine").fit(reference)
    expected = np.log(peer.kneighbors(query)[0][:, -1])
    found = d.neighbour_distance(np.zeros((50, 2)), query, home)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_row_of_zeros_is_at_right_angles_to_everything():
    reference = np.concatenate([RNG.normal(size=(9, 4)), np.zeros((9, 4))])
    home = describe_reference(reference, n_neighbours=1)
    found = d.neighbour_distance(np.zeros((2, 2)), np.eye(2, 4) * [[0], [1]], home)
    assert found[0] == pytest.approx(0, abs=1e-6) and found[1] <= 1e-6


@pytest.mark.parametrize("shape", [(300, 20), (30, 200)])
def test_components_are_scikit_learns(shape):
    reference = RNG.normal(size=shape) * np.linspace(5, 1, shape[1])
    home = describe_reference(reference, n_components=3)
    found = d.principal_components(np.zeros((shape[0], 2)), reference, home)
    expected = PCA(3, svd_solver="full").fit_transform(reference) / home.scale
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-5)


def test_logit_descriptors_by_hand():
    logits = np.array([[5.0, 1.0, 3.0], [0.0, 0.0, 0.0]])
    home = describe_reference(RNG.normal(size=(9, 2)))
    peak = d.logit_peak(logits, np.zeros((2, 2)), home)
    margin = d.logit_margin(logits, np.zeros((2, 2)), home)
    assert peak[0] == pytest.approx(np.log(2.0))
    assert margin.tolist() == [1.0, 0.0]
    assert np.isfinite(peak).all()


def log_linear_problem():
    logits, labels, features, _, away = drifting_world([0.0, 1.0], n=150)
    rows = summarise_rows(logits, labels, scores=False)
    row_weights = np.full(len(labels), 1 / len(labels))
    design = standardise(np.column_stack([away, features[:, :3]]), row_weights).design(
        np.column_stack([away, features[:, :3]])
    )
    penalty, prior = np.full(5, 0.02), np.zeros(5)
    problem = LogLinearProblem(rows, design, row_weights, penalty, prior, (-9.0, 9.0))
    return problem, logits, labels


def test_newton_finds_the_minimum_that_scipy_finds():
    problem, logits, labels = log_linear_problem()
    design, penalty, prior = problem.design, problem.penalty, problem.prior

    def objective(weights):
        loss = log_loss_rows(logits, labels, np.exp(design @ weights)).mean()
        return loss + 0.5 * penalty @ weights**2

    expected = minimize(objective, prior, method="BFGS", options={"gtol": 1e-7})
    found = fit_log_linear(problem, prior)
    assert objective(found) <= expected.fun + 1e-8
    np.testing.assert_allclose(found, expected.x, atol=2e-3)


def test_a_path_of_penalties_ends_where_each_search_alone_does():
    problem, *_ = log_linear_problem()
    penalties = [np.full(5, strength) for strength in (0.001, 0.02, 0.1, 1.0)]
    path = fit_path(problem, penalties)
    for penalty, weights in zip(penalties, path, strict=True):
        alone = fit_log_linear(problem._replace(penalty=penalty), problem.prior)
        np.testing.assert_allclose(weights, alone, atol=2e-4)


def test_follows_the_drift_to_an_unseen_domain():
    logits, labels, features, _, away = drifting_world([1.1], seed=9)
    calibrator = fitted()
    found = calibrator.temperature(logits, features)
    assert np.corrcoef(np.log(found), away)[0, 1] > 0.7
    assert np.abs(np.log(found) - 0.8 * away).mean() < 0.25
    # One temperature for all is far off where the drift is in between or beyond.
    seen = drifting_world((0.0, 0.7, 1.4))
    plain = TemperatureScaling().fit(seen[0], seen[1])
    losses = [
        log_loss_rows(logits, labels, t).mean()
        for t in (found, plain.temperature(logits), np.exp(0.8 * away))
    ]
    assert losses[0] < losses[1]
    assert losses[0] < losses[2] + 0.02


def test_far_away_temperatures_stay_in_the_supported_range():
    calibrator = fitted()
    logits, _, features, _, _ = drifting_world([50.0])
    found = np.log(calibrator.temperature(logits, features * 1e3))
    lowest, highest = calibrator.bounds_
    assert (found >= lowest).all()
    assert (found <= highest).all()
    assert highest < 0.8 * 1.4 + 1.5


def test_scarce_data_stays_at_the_set_level():
    logits, labels, features, domains, _ = drifting_world([0.0, 1.0], n=6)
    calibrator = ShiftAwareTemperature(penalty=32.0).fit(
        logits, labels, features=features, sample_domain=domains
    )
    apart = np.log(calibrator.temperature(logits, features) / calibrator.temperature_)
    assert np.abs(apart).max() < 0.5
    penalised = ShiftAwareTemperature(penalty=1e9).fit(
        logits, labels, features=features, sample_domain=domains
    )
    np.testing.assert_allclose(
        penalised.temperature(logits, features), penalised.temperature_, rtol=1e-4
    )


@pytest.mark.parametrize("factor", [1e-3, 40.0])
def test_scaling_logits_scales_temperatures(factor):
    logits, labels, features, domains, _ = drifting_world((0.0, 0.7, 1.4), n=150)
    common = {"features": features, "sample_domain": domains}
    one = ShiftAwareTemperature().fit(logits, labels, **common)
    other = ShiftAwareTemperature().fit(factor * logits, labels, **common)
    np.testing.assert_allclose(
        other.temperature(factor * logits, features),
        factor * one.temperature(logits, features),
        rtol=1e-3,
    )


def test_weight_zero_is_absence():
    logits, labels, features, domains, _ = drifting_world((0.0, 0.7, 1.4), n=100)
    weights = (RNG.random(len(labels)) > 0.3).astype(float)
    weights[domains == "place 1.4"] = 0
    kept = weights > 0
    weighted = ShiftAwareTemperature().fit(
        logits, labels, features=features, sample_domain=domains, sample_weight=weights
    )
    without = ShiftAwareTemperature().fit(
        logits[kept], labels[kept], features=features[kept], sample_domain=domains[kept]
    )
    np.testing.assert_allclose(
        weighted.temperature(logits, features), without.temperature(logits, features)
    )


def test_status_says_what_is_missing():
    logits, labels, features, domains, _ = drifting_world((0.0, 1.0), n=100)
    bare = ShiftAwareTemperature().fit(logits, labels, features=features)
    assert "no source_domain" in bare.status_
    assert "no reference_features" in bare.status_
    assert fitted().status_ == "converged"
    with pytest.raises(ValueError, match="source_domain names elsewhere"):
        ShiftAwareTemperature().fit(
            logits,
            labels,
            features=features,
            sample_domain=domains,
            source_domain="elsewhere",
        )


def test_own_descriptor_counts_and_wrong_ones_are_named():
    def second_feature(logits, features, home):
        return features[:, 1]

    calibrator = fitted(descriptors=["logit_peak", second_feature])
    assert calibrator.coef_.shape == (2,)
    assert calibrator.coef_[1] > 0.1
    with pytest.raises(ValueError, match="wanted a function or one of"):
        fitted(descriptors=["distance"])
    with pytest.raises(ValueError, match="shape"):
        fitted(descriptors=[lambda logits, features, home: features.T])
    with pytest.raises(ValueError, match="penalty is -1"):
        fitted(penalty=-1)


def test_a_source_unlike_all_else_does_not_pull_the_others():
    """Same features and logits everywhere, but the source's labels fit T = 1."""
    rng = np.random.default_rng(0)
    n, k = 3000, 5
    truth = 2.0 * rng.normal(size=(3 * n, k))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    features = rng.normal(size=(3 * n, 8))
    domains = np.repeat(["home", "one", "two"], n)
    # Elsewhere the labels follow logits a third as large: T = 3 is right there.
    away = (truth / 3 + rng.gumbel(size=truth.shape)).argmax(axis=1)
    labels = np.where(domains == "home", labels, away)
    method = ShiftAwareTemperature().fit(
        truth,
        labels,
        features=features,
        sample_domain=domains,
        source_domain="home",
        reference_features=rng.normal(size=(300, 8)),
    )
    elsewhere = domains != "home"
    alone = TemperatureScaling().fit(truth[elsewhere], labels[elsewhere])
    found = method.temperature(truth[elsewhere], features[elsewhere])
    assert method.temperature_ < 0.8 * alone.temperature_
    assert np.exp(np.log(found).mean()) > 0.85 * alone.temperature_
    assert method.source_offset_ < -0.7


@pytest.mark.parametrize("penalty", [0.0, 8.0])
def test_all_rows_of_the_source_have_no_offset(penalty):
    logits, labels, features, domains, _ = drifting_world([0.0], n=60)
    given = {"features": features, "sample_domain": domains}
    method = ShiftAwareTemperature(penalty=penalty)
    method.fit(logits, labels, **given, source_domain="place 0")
    assert method.source_offset_ == 0
    assert method.intercept_ != 0


def test_ridge_moves_only_on_consistent_evidence():
    losses = np.array([[1.0, 1.0, 1.0], [0.9, 0.9, 0.91], [0.5, 1.3, 0.7]])
    assert prefer(0, losses[:2]) == 1
    assert prefer(0, losses[[0, 2]]) == 0
    assert prefer(0, losses[:, :1]) == 0
    # Two domains that agree by chance are not enough; a clear gain in both is.
    assert prefer(0, np.array([[1.0, 1.0], [0.9, 0.95]])) == 0
    assert prefer(0, np.array([[1.0, 1.0], [0.9, 0.91]])) == 1


def test_thinning_keeps_small_domains_whole():
    codes = np.repeat([0, 1], [30, 5000])
    kept = thin_domains(np.arange(len(codes))[:, None], codes)
    assert kept[:30].all()
    assert 400 <= kept[30:].sum() <= 500


def test_round_trip_through_a_file(tmp_path):
    calibrator = fitted()
    save_calibrator(calibrator, tmp_path / "c.skops")
    logits, _, features, _, _ = drifting_world([1.0], n=20)
    np.testing.assert_array_equal(
        load_calibrator(tmp_path / "c.skops").temperature(logits, features),
        calibrator.temperature(logits, features),
    )
