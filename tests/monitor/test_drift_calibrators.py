"""The monitor works for every calibrator of the package that uses features."""

import json

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coolhead as ch
from contract.problems import calibrators, fitted
from coolhead.monitor import DriftMonitor

RNG = np.random.default_rng(0)
N = 240
FEATURES = RNG.normal(size=(3 * N, 4)) + np.repeat([0.0, 1.0, 2.0], N)[:, None]
DOMAINS = np.repeat(["a", "b", "c"], N)
LOGITS = 2 * RNG.normal(size=(3 * N, 3))
LABELS = (LOGITS / 1.5 + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1)
GIVEN = {"features": FEATURES, "sample_domain": DOMAINS}


PROBLEM = {
    "logits": LOGITS,
    "labels": LABELS,
    "features": FEATURES,
    "domains": DOMAINS,
    "source": None,
    "reference": None,
}
FITTED = {name: fitted(kind, PROBLEM) for name, kind in calibrators().items()}
DETAILED = {name: found for name, found in FITTED.items() if hasattr(found, "details")}
WITH_FEATURES = [name for name, found in DETAILED.items() if found.uses_features]


def test_the_lists_are_those_of_the_package():
    assert set(WITH_FEATURES) >= {
        "AutoCalibrator",
        "ShiftAwareTemperature",
        "NearestClusterTemperature",
        "RegressedTemperature",
        "TemperatureEnsemble",
        "MultiDomainTemperature",
        "DensityAwareTemperature",
        "WeightedClusterTemperature",
    }
    assert {"TemperatureScaling", "Identity"} <= set(DETAILED) - set(WITH_FEATURES)


@pytest.mark.parametrize("name", DETAILED)
def test_known_rows_are_clear_and_garbage_alarms(name):
    calibrator = DETAILED[name]
    monitor = DriftMonitor.for_calibrator(
        calibrator, FEATURES, DOMAINS, logits=LOGITS, labels=LABELS
    )
    assert (monitor.regions is None) == (name in WITH_FEATURES)
    for features, verdict in ((FEATURES, False), (FEATURES * 100, True)):
        watch = DriftMonitor.from_dict(json.loads(json.dumps(monitor.to_dict())))
        watch.update(calibrator.details(LOGITS, features), features=features)
        assert watch.check().alarm is verdict
        assert watch.check().of("features").alarm is verdict
        assert watch.counts["n_checked"] == 3 * N


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_coverage_and_details_agree(name):
    calibrator = DETAILED[name]
    details = calibrator.details(LOGITS, FEATURES)
    found = calibrator.coverage(FEATURES)
    assert np.array_equal(details.cluster, found.nearest)
    assert np.array_equal(details.covered, ~found.outside)
    assert np.array_equal(details.distance, found.relative_distance)


def test_selection_by_domain_is_watched_too():
    chosen = ch.SelectByDomain([ch.TemperatureScaling(), ch.ShiftAwareTemperature()])
    chosen.fit(LOGITS, LABELS, **GIVEN)
    monitor = DriftMonitor.for_calibrator(chosen, FEATURES, DOMAINS)
    monitor.update(chosen.details(LOGITS, FEATURES * 100))
    assert monitor.check().alarm is True


class TestWrapper:
    X = FEATURES * [1, 10, 100, 1000]
    y = np.array(["no", "perhaps", "yes"])[LABELS]

    def model(self, calibrator, **settings):
        pipeline = make_pipeline(StandardScaler(), LogisticRegression())
        model = ch.CalibratedClassifier(
            pipeline, calibrator, features="standardscaler", **settings
        )
        return model.fit(self.X, self.y, sample_domain=DOMAINS)

    @pytest.mark.parametrize("kind", [ch.AutoCalibrator, ch.TemperatureScaling])
    @pytest.mark.parametrize("source", [None, ["a"]])
    def test_features_pass_through_the_wrappers_own_step(self, kind, source):
        model = self.model(kind(), source=source)
        monitor = DriftMonitor.for_calibrator(model, self.X, DOMAINS, labels=self.y)
        # An estimator that learned from all rows is overconfident there.
        assert bool(monitor.expected.unsure) == (source is not None)
        assert "a" not in monitor.expected.unsure
        rows = DOMAINS != "a"
        for X, verdict in ((self.X[rows], False), (self.X[rows] * 100, True)):
            watch = DriftMonitor.from_dict(monitor.to_dict())
            watch.update(model.details(X), features=model.features_of(X))
            assert watch.check().of("features").alarm is verdict

    def test_a_frozen_estimator_learned_from_none_of_the_rows(self):
        frozen = FrozenEstimator(LogisticRegression().fit(FEATURES[::2], self.y[::2]))
        model = ch.CalibratedClassifier(frozen, ch.NearestClusterTemperature(4))
        model.fit(FEATURES, self.y, sample_domain=DOMAINS)
        monitor = DriftMonitor.for_calibrator(model, FEATURES, DOMAINS, labels=self.y)
        assert set(monitor.expected.right) == {"a", "b", "c"}
        monitor.update(model.details(FEATURES), LABELS)
        assert monitor.check().alarm is False

    def test_without_rows_it_expects_what_the_evidence_shows(self):
        model = self.model(ch.AutoCalibrator(), source=["a"])
        monitor = DriftMonitor.for_calibrator(model)
        assert set(monitor.expected.right) == {"b", "c"}
        own = DriftMonitor.for_calibrator(model.calibrator_)
        assert monitor.expected == own.expected
        rows = DOMAINS != "a"
        monitor.update(model.details(self.X[rows]), self.y[rows])
        assert monitor.check().alarm is False

    def test_mistakes_are_named(self):
        model = self.model(ch.TemperatureScaling(), source=["a"])
        with pytest.raises(ValueError, match="features and logits are missing"):
            DriftMonitor.for_calibrator(self.model(ch.baselines.VectorScaling()))
        with pytest.raises(ValueError, match="sample_domain is missing"):
            DriftMonitor.for_calibrator(model, self.X)
        with pytest.raises(
            ValueError, match="labels holds 'never' in row 0, which is no class"
        ):
            DriftMonitor.for_calibrator(
                model, self.X, DOMAINS, labels=np.full(3 * N, "never")
            )


def test_real_shift_is_seen_and_rows_of_known_domains_are_not():
    """Digits: a head for printed sans, calibrated for mnist and uci; then serif."""
    data = ch.load_dataset("digits")
    some = data.rows(np.arange(0, len(data), 4))
    scored = ch.train_head(some, "sans", kind="logistic").apply(some)
    seen = scored.select("mnist", "uci")
    known, new = (
        seen.rows(np.arange(0, len(seen), 2)),
        seen.rows(np.arange(1, len(seen), 2)),
    )
    auto = ch.AutoCalibrator().fit(
        known.logits,
        known.labels,
        features=known.features,
        sample_domain=known.domains,
    )
    monitor = DriftMonitor.for_calibrator(
        auto, known.features, known.domains, logits=known.logits, labels=known.labels
    )
    alarms = {}
    for name, rows in {
        "mnist": new.select("mnist"),
        "uci": new.select("uci"),
        "serif": scored.select("serif"),
    }.items():
        watch = DriftMonitor.from_dict(monitor.to_dict())
        watch.update(auto.details(rows.logits, rows.features), rows.labels)
        alarms[name] = watch.check().alarm
    assert alarms == {"mnist": False, "uci": False, "serif": True}
