"""The monitor: what it counts, that it merges, and how often it cries wolf."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from coolhead.calibrators.base import PredictionDetails
from coolhead.calibrators.clustered.calibrators import NearestClusterTemperature
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.metrics import expected_calibration_error
from coolhead.monitor import TEMPERATURE_EDGES, DriftMonitor, left_out_shares

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(900, 5)) + np.repeat([0.0, 0.5, 1.0], 300)[:, None]
DOMAINS = np.repeat(["a", "b", "c"], 300)
LOGITS = RNG.normal(size=(900, 4)) * 3
LABELS = np.where(RNG.random(900) < 0.7, LOGITS.argmax(axis=1), RNG.integers(0, 4, 900))
CALIBRATOR = NearestClusterTemperature(4).fit(LOGITS, LABELS, features=FEATURES)


def flags(covered):
    """Details of rows of which only the coverage matters."""
    n = len(covered)
    return PredictionDetails(
        np.full((n, 2), 0.5), np.ones(n), np.zeros(n, int), np.asarray(covered)
    )


def test_counts_equal_those_of_all_rows_at_once():
    monitor = DriftMonitor.for_calibrator(CALIBRATOR, FEATURES, DOMAINS)
    for rows in np.array_split(np.arange(900), 7):
        details = CALIBRATOR.details(LOGITS[rows], FEATURES[rows])
        monitor.update(details, LABELS[rows])
    whole = CALIBRATOR.details(LOGITS, FEATURES)
    confidence = whole.probabilities.max(axis=1)
    assert monitor.mean_confidence == pytest.approx(confidence.mean(), rel=1e-12)
    assert monitor.check().share_outside == np.mean(~whole.covered)
    ece = expected_calibration_error(LABELS, whole.probabilities)
    assert monitor.expected_calibration_error == pytest.approx(ece, abs=1e-12)
    histogram = np.histogram(whole.temperature, TEMPERATURE_EDGES)[0]
    assert np.array_equal(monitor.counts["temperature_counts"][1:-1], histogram)


def test_merging_equals_one_monitor_and_survives_json():
    parts = [DriftMonitor(0.05) for _ in range(3)]
    together = DriftMonitor(0.05)
    for number, monitor in enumerate(parts):
        details = CALIBRATOR.details(LOGITS[number::3], FEATURES[number::3])
        labels = None if number == 0 else LABELS[number::3]
        monitor.update(details, labels)
        together.update(details, labels)
    travelled = [
        DriftMonitor.from_dict(json.loads(json.dumps(part.to_dict()))) for part in parts
    ]
    merged = travelled[0].merge(travelled[1]).merge(travelled[2])
    for name, value in together.counts.items():
        assert np.allclose(merged.counts[name], value, rtol=1e-13)
    assert merged.check() == together.check()


def test_state_does_not_grow():
    monitor = DriftMonitor()
    monitor.update(flags([True] * 10))
    size = len(json.dumps(monitor.to_dict()))
    for _ in range(200):
        monitor.update(flags([True, False] * 500))
    assert len(json.dumps(monitor.to_dict())) < size + 100


def test_the_p_value_is_the_exact_binomial_tail():
    monitor = DriftMonitor(0.03)
    monitor.update(flags([False] * 11 + [True] * 189))
    assert monitor.check().p_value == pytest.approx(binom.sf(10, 200, 0.03), rel=1e-12)


def test_false_alarms_come_no_more_often_than_asked_for():
    rng = np.random.default_rng(1)
    rate, alarms = 0.05, 0
    for _ in range(2000):
        monitor = DriftMonitor(0.1, rate)
        monitor.update(flags(rng.random(300) >= 0.1))
        alarms += monitor.check().alarm
    # The exact test is conservative; 0.065 is three standard errors above the rate.
    assert 0.02 < alarms / 2000 < 0.065


def test_other_data_raises_the_alarm_and_known_domains_do_not():
    monitor = DriftMonitor.for_calibrator(CALIBRATOR, FEATURES, DOMAINS)
    monitor.update(CALIBRATOR.details(LOGITS, FEATURES))
    assert not monitor.check().alarm
    assert str(monitor.check()).startswith("no sign")
    other = DriftMonitor.for_calibrator(CALIBRATOR, FEATURES, DOMAINS)
    other.update(CALIBRATOR.details(LOGITS[:200], FEATURES[:200] + 4))
    assert other.check().alarm
    assert str(other.check()).startswith("this is not the data you calibrated for")


def test_left_out_shares_are_those_of_a_partition_without_the_domain():
    shares = left_out_shares(FEATURES, DOMAINS, n_clusters=4)
    assert set(shares) == {"a", "b", "c"}
    # The middle domain lies between the others; the outer ones stick out.
    assert shares["b"] < min(shares["a"], shares["c"])
    assert left_out_shares(FEATURES, np.full(900, "a")) == {}


def test_nothing_seen_is_no_alarm():
    monitor = DriftMonitor()
    assert not monitor.check().alarm
    assert monitor.mean_confidence is None
    assert monitor.expected_calibration_error is None
    scaling = TemperatureScaling().fit(LOGITS, LABELS)
    monitor.update(scaling.details(LOGITS), np.full(900, -1))
    assert not monitor.check().alarm
    assert monitor.expected_calibration_error is None


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"expected_outside is 1\.5"):
        DriftMonitor(1.5)
    with pytest.raises(ValueError, match="has no clusters"):
        scaling = TemperatureScaling().fit(LOGITS, LABELS)
        DriftMonitor.for_calibrator(scaling, FEATURES, DOMAINS)
    with pytest.raises(ValueError, match="wanted the same"):
        DriftMonitor(0.1).merge(DriftMonitor(0.2))
    with pytest.raises(ValueError, match="no state of a DriftMonitor"):
        DriftMonitor.from_dict({"format_version": 1})
    with pytest.raises(ValueError, match="labels has shape"):
        DriftMonitor().update(flags([True, True]), [1])


def test_details_give_the_nearest_cluster_and_its_radius():
    details = CALIBRATOR.details(LOGITS, FEATURES)
    centers, radii = CALIBRATOR.cluster_centers_, CALIBRATOR.clusters_.radii
    distance = np.linalg.norm(FEATURES[:, None] - centers, axis=2)
    assert np.array_equal(details.cluster, distance.argmin(axis=1))
    assert np.array_equal(
        details.covered, distance.min(axis=1) <= radii[details.cluster]
    )
    assert np.array_equal(details.temperature, CALIBRATOR.temperature(LOGITS, FEATURES))
    assert 0.97 < details.covered.mean() < 1
    plain = TemperatureScaling().fit(LOGITS, LABELS).details(LOGITS)
    assert plain.cluster is None
    assert plain.covered is None
