"""The monitor: what it counts, that it merges, and what it says without evidence."""

import copy
import json
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from coolhead.calibrators import (
    AutoCalibrator,
    NearestClusterTemperature,
    TemperatureScaling,
)
from coolhead.calibrators.base import PredictionDetails
from coolhead.calibrators.data import find_domains
from coolhead.calibrators.left_out import left_out_distances
from coolhead.metrics import expected_calibration_error
from coolhead.monitor import DriftMonitor, Expected
from coolhead.monitor.expected import no_counts
from coolhead.shift.clusters import find_regions

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(900, 5)) + np.repeat([0.0, 0.5, 1.0], 300)[:, None]
DOMAINS = np.repeat(["a", "b", "c"], 300)
LOGITS = RNG.normal(size=(900, 4)) * 3
LABELS = (LOGITS / 2 + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1)
GIVEN = {"features": FEATURES, "sample_domain": DOMAINS}
CALIBRATOR = NearestClusterTemperature(4).fit(LOGITS, LABELS, **GIVEN)
SCALING = TemperatureScaling().fit(LOGITS, LABELS)


def watching(calibrator, **extra):
    return DriftMonitor.for_calibrator(calibrator, FEATURES, DOMAINS, **extra)


def flags(covered):
    """Details of rows of which only the coverage matters."""
    n = len(covered)
    return PredictionDetails(
        np.full((n, 2), 0.5), np.ones(n), np.zeros(n, int), np.asarray(covered)
    )


def test_counts_equal_those_of_all_rows_at_once():
    monitor = watching(CALIBRATOR)
    for rows in np.array_split(np.arange(900), 7):
        details = CALIBRATOR.details(LOGITS[rows], FEATURES[rows])
        monitor.update(details, LABELS[rows])
    whole = CALIBRATOR.details(LOGITS, FEATURES)
    confidence = whole.probabilities.max(axis=1)
    assert monitor.mean_confidence == pytest.approx(confidence.mean(), rel=1e-12)
    outside = np.mean(whole.distance > monitor.expected.reach)
    assert monitor.check().of("features").found == outside
    ece = expected_calibration_error(LABELS, whole.probabilities)
    assert monitor.expected_calibration_error == pytest.approx(ece, abs=1e-12)


@pytest.mark.parametrize("calibrator", [CALIBRATOR, SCALING])
def test_merging_equals_one_monitor_and_survives_json(calibrator):
    parts = [watching(calibrator, logits=LOGITS, labels=LABELS) for _ in range(3)]
    together = watching(calibrator, logits=LOGITS, labels=LABELS)
    assert (together.regions is None) == (calibrator is CALIBRATOR)
    for number, monitor in enumerate(parts):
        features = FEATURES[number::3]
        details = calibrator.details(LOGITS[number::3], features)
        labels = None if number == 0 else LABELS[number::3]
        monitor.update(details, labels, features=features)
        together.update(details, labels, features=features)
    travelled = [
        DriftMonitor.from_dict(json.loads(json.dumps(part.to_dict()))) for part in parts
    ]
    merged = travelled[0].merge(travelled[1]).merge(travelled[2])
    for name, value in together.counts.items():
        assert np.allclose(merged.counts[name], value, rtol=1e-13)
    assert merged.check() == together.check()
    assert merged.counts["n_checked"] == 900
    # What travelled still knows where the calibration data lies.
    merged.update(
        calibrator.details(LOGITS, FEATURES + 50), None, features=FEATURES + 50
    )
    assert merged.check().of("features").alarm


def test_copies_and_pickles_are_monitors():
    monitor = watching(SCALING)
    monitor.update(SCALING.details(LOGITS), features=FEATURES)
    for twin in (copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))):
        assert twin.check() == monitor.check()
        twin.update(SCALING.details(LOGITS), features=FEATURES)
        assert (twin.counts["n_rows"], monitor.counts["n_rows"]) == (1800, 900)


def test_state_does_not_grow():
    monitor = DriftMonitor()
    monitor.update(flags([True] * 10))
    size = len(json.dumps(monitor.to_dict()))
    for _ in range(200):
        monitor.update(flags([True, False] * 500))
    assert len(json.dumps(monitor.to_dict())) < size + 100


class Hesitant(dict):
    """Counts that let other threads in between reading and writing."""

    def __getitem__(self, name):
        value = super().__getitem__(name)
        time.sleep(1e-6)
        return value


def test_threads_that_share_a_monitor_lose_no_row():
    monitor = DriftMonitor(counts=Hesitant(no_counts()))
    details = flags([True, False, True])
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: monitor.update(details, [0, 1, 1]), range(200)))
    assert monitor.counts["n_rows"] == 600
    assert monitor.counts["n_outside"] == 200
    assert monitor.counts["bin_counts"].sum() == 600


def test_a_refused_batch_is_not_counted_at_all():
    monitor = watching(SCALING, logits=LOGITS)
    before = json.dumps(monitor.to_dict())
    details = SCALING.details(LOGITS)
    wrong = [
        (details, {"labels": np.full(900, 99)}, "labels holds 99 in row 0"),
        (details, {"labels": np.full(900, 0.5)}, "labels has type float64"),
        (details, {"labels": np.full(900, -2)}, "labels holds -2 in row 0"),
        (details, {"labels": [1]}, "labels has 1 entries"),
        (details, {"features": FEATURES[:5]}, "features has 5 rows"),
        (details, {"features": FEATURES[:, :2]}, "features has 2 columns; wanted 5"),
        (details, {"features": FEATURES * np.nan}, "features contains NaN"),
        (details._replace(probabilities=np.ones(900)), {}, r"wanted \(n, k\)"),
        (
            details._replace(probabilities=np.full((900, 4), np.nan)),
            {},
            "details.probabilities contains NaN",
        ),
    ]
    for given, extra, message in wrong:
        with pytest.raises(ValueError, match=message):
            monitor.update(given, **extra)
    assert json.dumps(monitor.to_dict()) == before


def test_nothing_to_check_is_no_all_clear():
    monitor = DriftMonitor()
    assert monitor.check().alarm is None
    assert monitor.mean_confidence is None
    assert monitor.expected_calibration_error is None
    # Rows without features, without labels: still nothing.
    monitor.update(SCALING.details(LOGITS), np.full(900, -1))
    signal = monitor.check()
    assert signal.alarm is None
    assert str(signal).startswith("cannot tell")
    assert "none of 900 rows could be compared" in str(signal)
    assert monitor.expected_calibration_error is None


def test_confidence_alone_never_says_that_all_is_well():
    monitor = watching(SCALING, logits=LOGITS)
    monitor.update(SCALING.details(LOGITS))
    signal = monitor.check()
    assert signal.of("confidence").alarm is False
    assert signal.alarm is None
    assert str(signal).startswith("cannot tell")
    monitor.update(SCALING.details(LOGITS * 0.1))
    assert monitor.check().alarm is True


def test_too_few_rows_to_raise_an_alarm_are_too_few_for_an_all_clear():
    for rows, verdict in ((1, None), (100, False)):
        monitor = watching(CALIBRATOR)
        monitor.update(CALIBRATOR.details(LOGITS[:rows], FEATURES[:rows]))
        assert monitor.check().alarm is verdict
    monitor = DriftMonitor(Expected(outside={"stated": 0.2}), 0.01)
    monitor.update(flags([False, False]))
    assert monitor.check().alarm is None  # two of two: 0.2² is above 0.01
    assert "too few rows" in str(monitor.check())
    monitor.update(flags([False]))
    assert monitor.check().alarm is True  # 0.2³ is below


def test_rows_that_were_not_checked_are_told():
    monitor = watching(SCALING)
    monitor.update(SCALING.details(LOGITS[:600]), features=FEATURES[:600])
    monitor.update(SCALING.details(LOGITS[:40]))
    signal = monitor.check()
    assert signal.alarm is False
    assert "of 600 rows" in str(signal)
    assert "40 rows not checked" in str(signal)


def test_garbage_alarms_for_the_recommended_calibrator():
    auto = AutoCalibrator().fit(LOGITS, LABELS, **GIVEN)
    noise = np.random.default_rng(3).normal(size=FEATURES.shape)
    for garbage in (FEATURES * 100, noise * 30, noise * 0.01, FEATURES * 1e200):
        monitor = watching(auto)
        monitor.update(auto.details(LOGITS, garbage))
        assert monitor.check().alarm is True
        assert str(monitor.check()).startswith("drift detected")
    monitor = watching(auto, logits=LOGITS, labels=LABELS)
    monitor.update(auto.details(LOGITS, FEATURES), LABELS)
    assert monitor.check().alarm is False
    assert str(monitor.check()).startswith("no drift detected")


def test_domains_far_apart_leave_room_for_an_alarm():
    """Every left-out domain lies wholly outside the others; garbage lies further."""
    apart = FEATURES + 30.0 * np.repeat([0, 1, 2], 300)[:, None]
    calibrator = NearestClusterTemperature(3).fit(
        LOGITS, LABELS, features=apart, sample_domain=DOMAINS
    )
    monitor = DriftMonitor.for_calibrator(calibrator, apart, DOMAINS)
    assert monitor.expected.reach > 3
    for features, verdict in ((apart, False), (apart * 100, True)):
        watch = DriftMonitor.from_dict(monitor.to_dict())
        watch.update(calibrator.details(LOGITS, features))
        assert watch.check().alarm is verdict
    # Who knows only "covered" cannot tell how far away rows are.
    watch = DriftMonitor.from_dict(monitor.to_dict())
    watch.update(flags([False] * 100))
    assert watch.check().alarm is None


def test_left_out_distances_are_those_of_clusters_without_the_domain():
    clusters = find_regions(FEATURES, n_clusters=4)
    found = left_out_distances(FEATURES, find_domains(DOMAINS, None), clusters)
    share = {name: np.mean(distance > 1) for name, distance in found.items()}
    assert set(share) == {"a", "b", "c"}
    # The middle domain lies between the others; the outer ones stick out.
    assert share["b"] < min(share["a"], share["c"])
    # One domain: rows that the clusters were not found in, each once.
    one = find_domains(np.full(900, "a"), None)
    (alone,) = left_out_distances(FEATURES, one, clusters).values()
    assert len(alone) == 900
    assert 0.005 < np.mean(alone > 1) < 0.08


def test_identical_rows_are_no_calibration_data_to_compare_with():
    same = np.repeat([[0.0], [1.0]], 50, axis=0)
    monitor = DriftMonitor.for_calibrator(SCALING, same, np.repeat(["a", "b"], 50))
    monitor.update(SCALING.details(LOGITS[:100]), features=same + 7)
    assert monitor.check().alarm is None


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"false_alarm_rate is 0; wanted"):
        DriftMonitor(false_alarm_rate=0)
    with pytest.raises(ValueError, match=r"outside of x is 1\.5; wanted a share"):
        Expected(outside={"x": 1.5})
    with pytest.raises(ValueError, match="features and logits are missing"):
        DriftMonitor.for_calibrator(SCALING)
    with pytest.raises(ValueError, match=r"features has 2 columns; wanted 5"):
        DriftMonitor.for_calibrator(CALIBRATOR, FEATURES[:, :2], DOMAINS)
    with pytest.raises(ValueError, match=r"expected is .*; wanted the same"):
        watching(CALIBRATOR).merge(watching(SCALING))
    with pytest.raises(ValueError, match=r"false_alarm_rate is 0\.01 in one"):
        DriftMonitor().merge(DriftMonitor(false_alarm_rate=0.02))
    for state in ({"format_version": 1}, {}, [], {"format_version": 2}):
        with pytest.raises(ValueError, match=r"no state of a DriftMonitor.*format 2"):
            DriftMonitor.from_dict(state)
    state = watching(SCALING).to_dict()
    state["regions"]["radii"] = [1.0]
    with pytest.raises(ValueError, match="regions of another shape"):
        DriftMonitor.from_dict(state)


def test_details_give_the_nearest_cluster_and_its_radius():
    details = CALIBRATOR.details(LOGITS, FEATURES)
    centers, radii = CALIBRATOR.cluster_centers_, CALIBRATOR.clusters_.radii
    distance = np.linalg.norm(FEATURES[:, None] - centers, axis=2)
    assert np.array_equal(details.cluster, distance.argmin(axis=1))
    assert np.array_equal(
        details.covered, distance.min(axis=1) <= radii[details.cluster]
    )
    assert np.array_equal(details.covered, details.distance <= 1)
    assert np.array_equal(details.temperature, CALIBRATOR.temperature(LOGITS, FEATURES))
    assert 0.97 < details.covered.mean() < 1
    plain = SCALING.details(LOGITS)
    assert plain.cluster is None
    assert plain.covered is None


def test_what_was_never_fitted_is_not_watched():
    with pytest.raises(NotFittedError):
        DriftMonitor.for_calibrator(AutoCalibrator(), np.zeros((9, 2)))
    with pytest.raises(TypeError, match="details is a ndarray; wanted what calibrator"):
        DriftMonitor().update(np.full((3, 2), 0.5))


def test_a_domain_that_is_served_has_to_be_known():
    with pytest.raises(ValueError, match=r"served names A, which .* some of a, b, c"):
        watching(CALIBRATOR, served="A")
    both = watching(CALIBRATOR, logits=LOGITS, labels=LABELS, served=["a", "c"])
    assert set(both.expected.right) == set(both.expected.inside) == {"a", "c"}
    assert DriftMonitor.from_dict(both.to_dict()).expected == both.expected
