"""The paper's four methods: identities, fallbacks, options, bad input."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import coolhead as ch
from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.shift.clusters import partition_features
from simulate import logits_and_labels, shifted_domains

ALL = [
    ch.TemperatureScaling(),
    ch.NearestClusterTemperature(3),
    ch.RegressedTemperature(3),
    ch.TemperatureEnsemble(n_clusters=3),
]


@pytest.fixture(scope="module")
def domains():
    return shifted_domains()


def fitted(calibrator, data, **rest):
    logits, labels, features, names = data
    return clone(calibrator).fit(
        logits, labels, features=features, sample_domain=names, **rest
    )


@pytest.mark.parametrize("calibrator", ALL, ids=lambda c: type(c).__name__)
class TestEveryMethod:
    def test_prediction_is_one_thing_in_three_forms(self, calibrator, domains):
        logits, _, features, _ = domains
        cal = fitted(calibrator, domains)
        probabilities = cal.predict_proba(logits, features)
        conf, predicted = cal.confidence(logits, features)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_allclose(conf, probabilities.max(axis=1))
        np.testing.assert_array_equal(predicted, logits.argmax(axis=1))
        assert (cal.temperature(logits, features) > 0).all()

    def test_fit_is_repeatable(self, calibrator, domains):
        logits, _, features, _ = domains
        one, other = fitted(calibrator, domains), fitted(calibrator, domains)
        np.testing.assert_array_equal(
            one.temperature(logits, features), other.temperature(logits, features)
        )

    def test_the_temperature_of_a_nan_is_refused(self, calibrator, domains):
        logits, _, features, _ = domains
        broken = logits.copy()
        broken[4, 1] = np.nan
        with pytest.raises(ValueError, match="NaN in row 4"):
            fitted(calibrator, domains).temperature(broken, features)

    def test_not_fitted(self, calibrator, domains):
        with pytest.raises(NotFittedError):
            clone(calibrator).predict_proba(domains[0], domains[2])

    def test_scaling_the_logits_scales_the_temperature(self, calibrator, domains):
        logits, labels, features, names = domains
        one = fitted(calibrator, domains)
        other = fitted(calibrator, (50 * logits, labels, features, names))
        np.testing.assert_allclose(
            other.temperature(50 * logits, features),
            50 * one.temperature(logits, features),
            rtol=1e-6,
        )

    def test_other_numbers_of_columns_are_refused(self, calibrator, domains):
        logits, _, features, _ = domains
        cal = fitted(calibrator, domains)
        with pytest.raises(ValueError, match="expecting 5"):
            cal.predict_proba(logits[:, :4], features)
        if cal.uses_features:
            with pytest.raises(ValueError, match="features is missing"):
                cal.predict_proba(logits)
            with pytest.raises(ValueError, match="wanted 6, as in fit"):
                cal.predict_proba(logits, features[:, :5])
            with pytest.raises(ValueError, match="wanted the same"):
                cal.predict_proba(logits, features[:-1])

    def test_bad_features_are_refused(self, calibrator, domains):
        if not calibrator.uses_features:
            return
        logits, labels, features, _ = domains
        with pytest.raises(ValueError, match="features is missing"):
            clone(calibrator).fit(logits, labels)
        broken = features.copy()
        broken[11, 2] = np.nan
        with pytest.raises(ValueError, match="features contains NaN in row 11"):
            clone(calibrator).fit(logits, labels, features=broken)

    def test_one_row_of_logits_may_sum_to_one(self, calibrator, domains):
        cal = fitted(calibrator, domains)
        row = np.array([[0.0957, 0.9043, 0.0, 0.0, 0.0]], np.float16)
        assert cal.predict_proba(row, domains[2][:1]).shape == (1, 5)
        p = cal.predict_proba(domains[0], domains[2])
        with pytest.raises(ValueError, match="logits_from_probabilities"):
            clone(calibrator).fit(p, domains[1], features=domains[2])

    def test_half_precision_memory_maps_and_frames(self, calibrator, domains, tmp_path):
        import polars as pl

        logits, labels, features, _ = domains
        np.save(tmp_path / "z.npy", logits.astype(np.float16))
        mapped = np.load(tmp_path / "z.npy", mmap_mode="r")
        cal = clone(calibrator).fit(
            mapped, labels, features=features.astype(np.float16)
        )
        frame = cal.predict_proba(mapped, pl.DataFrame(features.astype(np.float32)))
        assert np.isfinite(frame).all()


def test_one_cluster_is_set_level(domains):
    whole = fitted(ch.TemperatureScaling(), domains)
    one = fitted(ch.NearestClusterTemperature(1), domains)
    assert one.cluster_temperatures_[0] == whole.temperature_
    assert one.n_fallbacks_ == 0


def test_nearest_cluster_finds_the_domains(domains):
    logits, _, features, _ = domains
    cal = fitted(ch.NearestClusterTemperature(3), domains)
    np.testing.assert_allclose(np.sort(cal.cluster_temperatures_), [1, 2, 4], rtol=0.1)
    at = cal.temperature(logits, features)
    assert at[:600].mean() < at[600:1200].mean() < at[1200:].mean()


def test_regression_is_the_least_norm_line(domains):
    cal = fitted(ch.RegressedTemperature(3), domains)
    line = LinearRegression().fit(cal.cluster_centers_, cal.cluster_temperatures_)
    features = domains[2]
    want = np.maximum(line.predict(features), 0.1 * cal.cluster_temperatures_.min())
    np.testing.assert_allclose(cal.temperature(domains[0], features), want, rtol=1e-8)


def test_regression_through_equal_temperatures_is_constant():
    from coolhead.calibrators.clustered import fit_line

    centers = np.random.default_rng(0).normal(size=(8, 50))
    slope, intercept = fit_line(centers, np.full(8, 1.7), 0.0)
    assert np.abs(slope).max() < 1e-12
    assert intercept == pytest.approx(1.7)


def test_ensemble_is_the_mean_of_scaled_logits(domains):
    logits, _, features, _ = domains
    cal = fitted(ch.TemperatureEnsemble(n_clusters=3), domains)
    singles = [
        fitted(method, domains)
        for method in (
            ch.TemperatureScaling(),
            ch.NearestClusterTemperature(3),
            ch.RegressedTemperature(3),
        )
    ]
    scaled = [logits / m.temperature(logits, features)[:, None] for m in singles]
    np.testing.assert_allclose(
        logits / cal.temperature(logits, features)[:, None], np.mean(scaled, axis=0)
    )
    named = fitted(ch.TemperatureEnsemble(singles), domains)
    np.testing.assert_allclose(
        named.temperature(logits, features), cal.temperature(logits, features)
    )


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.05, 50), min_size=2, max_size=6))
def test_harmonic_mean(temperatures):
    from coolhead.calibrators.ensemble import TemperatureEnsemble

    logits, labels = logits_and_labels(40, 3)
    members = [ch.TemperatureScaling().fit(logits, labels) for _ in temperatures]
    for member, temperature in zip(members, temperatures, strict=True):
        member.temperature_ = temperature
    ensemble = TemperatureEnsemble(members)
    ensemble.members_, ensemble.n_classes_, ensemble.n_features_ = members, 3, 1
    want = 1 / np.mean(1 / np.array(temperatures))
    got = ensemble._temperature(logits, None)
    np.testing.assert_allclose(got, want)


class TestDomainWeights:
    def test_equal_sizes_make_no_difference(self, domains):
        pooled = fitted(ch.TemperatureScaling(), domains)
        equal = fitted(ch.TemperatureScaling("equal"), domains)
        assert equal.temperature_ == pytest.approx(pooled.temperature_, rel=1e-9)

    def test_small_domains_gain_weight(self, domains):
        logits, labels, _, names = domains
        keep = (names != "domain-2") | (np.arange(len(names)) % 10 == 0)
        temperature = {
            kind: ch.TemperatureScaling(kind)
            .fit(logits[keep], labels[keep], sample_domain=names[keep])
            .temperature_
            for kind in ("pooled", "equal")
        }
        assert temperature["equal"] > temperature["pooled"]

    def test_integer_domains(self, domains):
        logits, labels, _, names = domains
        numbers = np.unique(names, return_inverse=True)[1]
        by_name = fitted(ch.TemperatureScaling("equal"), domains)
        by_number = ch.TemperatureScaling("equal").fit(
            logits, labels, sample_domain=numbers
        )
        assert by_name.temperature_ == by_number.temperature_

    def test_bad_options(self, domains):
        logits, labels, _, _ = domains
        with pytest.raises(ValueError, match="sample_domain is missing"):
            ch.TemperatureScaling("equal").fit(logits, labels)
        with pytest.raises(ValueError, match="wanted 'pooled' or 'equal'"):
            ch.TemperatureScaling("balanced").fit(logits, labels)


class TestFallbacks:
    def test_small_and_perfect_clusters_take_the_set_level(self):
        logits, labels = logits_and_labels(500, 4, scale=2.0)
        features = np.zeros((500, 2))
        features[:5] = 100.0  # too few
        features[5:100] = -100.0  # all right
        labels[5:100] = logits[5:100].argmax(axis=1)
        cal = ch.NearestClusterTemperature(3).fit(logits, labels, features=features)
        assert sorted(cal.status_) == [
            "converged",
            "perfectly_separated",
            "too_few_samples",
        ]
        assert cal.n_fallbacks_ == 2
        assert (cal.cluster_temperatures_ == cal.temperature_).sum() == 2

    def test_fewer_points_than_clusters(self):
        logits, labels = logits_and_labels(300, 4)
        features = np.repeat([[0.0], [1.0], [5.0]], 100, axis=0)
        with pytest.warns(UserWarning, match="only 3 distinct clusters"):
            cal = ch.NearestClusterTemperature(8).fit(logits, labels, features=features)
        assert cal.n_clusters_ == len(cal.cluster_temperatures_) == 3

    def test_one_row(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for calibrator in ALL:
                cal = clone(calibrator).fit([[0.0, 2.0]], [1], features=[[1.0]])
                assert cal.predict_proba([[0.0, 2.0]], [[3.0]]).shape == (1, 2)

    def test_shrinkage_pulls_to_the_set_level(self, domains):
        free = fitted(ch.NearestClusterTemperature(3), domains)
        penalised = fitted(ch.NearestClusterTemperature(3, penalty=100.0), domains)
        fixed = fitted(ch.NearestClusterTemperature(3, penalty=1e9), domains)

        def spread(c):
            return np.abs(np.log(c.cluster_temperatures_ / c.temperature_))

        assert (spread(penalised) < spread(free)).all()
        np.testing.assert_allclose(
            fixed.cluster_temperatures_, fixed.temperature_, rtol=1e-5
        )

    def test_shrinkage_minimises_its_objective(self, domains):
        from scipy.optimize import minimize_scalar
        from scipy.special import logsumexp

        logits, labels, features, _ = domains
        tau = 30.0
        cal = fitted(ch.NearestClusterTemperature(3, penalty=tau), domains)
        assigned, _ = cal.clusters_.assign(features)
        mine = assigned == 0
        z, y = logits[mine], labels[mine]

        def objective(u):
            z_scaled = np.exp(u) * z
            nll = logsumexp(z_scaled, axis=1) - z_scaled[np.arange(len(z)), y]
            penalty = tau / len(z) * (u + np.log(cal.temperature_)) ** 2 / 2
            return nll.mean() + penalty

        best = minimize_scalar(
            objective, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10}
        )
        assert np.log(cal.cluster_temperatures_[0]) == pytest.approx(-best.x, abs=1e-6)


class TestRegressionGuard:
    @pytest.mark.parametrize("clip", ["floor", "range"])
    @pytest.mark.parametrize("target", ["temperature", "log"])
    @pytest.mark.parametrize("line_penalty", [0.0, 1.0])
    def test_far_features_stay_positive(self, domains, clip, target, line_penalty):
        logits, _, features, _ = domains
        cal = fitted(
            ch.RegressedTemperature(
                3, clip=clip, target=target, line_penalty=line_penalty
            ),
            domains,
        )
        far = cal.temperature(logits, -30 * features)
        assert (far > 0).all()
        if clip == "range":
            t = cal.cluster_temperatures_
            assert t.min() - 1e-12 <= far.min() and far.max() <= t.max() + 1e-12
        assert 0 <= cal.clipped_share_ <= 1

    def test_options_are_checked(self, domains):
        for wrong in ({"clip": "no"}, {"target": "x"}, {"line_penalty": -1.0}):
            with pytest.raises(ValueError, match="wanted"):
                fitted(ch.RegressedTemperature(3, **wrong), domains)

    @pytest.mark.parametrize("scaling", ["standardize", "l2"])
    def test_scaled_features(self, domains, scaling):
        logits, labels, features, names = domains
        one = fitted(ch.NearestClusterTemperature(3, scaling=scaling), domains)
        stretched = features * 7.0
        other = fitted(
            ch.NearestClusterTemperature(3, scaling=scaling),
            (logits, labels, stretched, names),
        )
        np.testing.assert_allclose(
            one.temperature(logits, features), other.temperature(logits, stretched)
        )
        with pytest.raises(ValueError, match="'standardize' or 'l2'"):
            fitted(ch.NearestClusterTemperature(3, scaling="whiten"), domains)


def test_methods_on_one_record_share_one_k_means(domains, monkeypatch):
    logits, labels, features, _ = domains
    data = CalibrationData.of(logits, labels, features=features)
    runs = []

    def counted(*arguments, **settings):
        runs.append(arguments[1])
        return partition_features(*arguments, **settings)

    methods = (
        ch.NearestClusterTemperature(3),
        ch.RegressedTemperature(3),
        ch.TemperatureEnsemble(n_clusters=3),
    )
    alone = [clone(m).fit(logits, labels, features=features) for m in methods]
    monkeypatch.setattr("coolhead.shift.clusters.partition_features", counted)
    for method, one in zip(methods, alone, strict=True):
        other = fit_with(method, data)
        np.testing.assert_array_equal(
            one.temperature(logits, features), other.temperature(logits, features)
        )
    assert runs == [3]
