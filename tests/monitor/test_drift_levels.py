"""How often the monitor cries wolf, and how soon it sees a real one. Simulated."""

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact

from coolhead.calibrators import Identity, TemperatureScaling
from coolhead.calibrators.base import PredictionDetails
from coolhead.monitor import DriftMonitor, Expected
from coolhead.monitor.expected import count_bins
from coolhead.monitor.verdict import combined_tail, join_bins, judge, tail

RATE = 0.05


def at_most(rate, draws):
    """The rate plus three standard errors of its simulation."""
    return rate + 3 * np.sqrt(rate * (1 - rate) / draws)


def binary(confidence):
    """Details of rows that predict class 0 with this confidence."""
    probabilities = np.column_stack([confidence, 1 - confidence])
    return PredictionDetails(probabilities, None, None, None)


def labels_at(rng, chance):
    """Class 0, the predicted one, with this chance."""
    return (rng.random(len(chance)) >= chance).astype(int)


def test_tails_are_the_binomial_and_fishers_exact_test():
    assert tail(11, 200, 0.03) == pytest.approx(binom.sf(10, 200, 0.03), rel=1e-12)
    for found, rows, before, size in ((9, 40, 3, 60), (0, 5, 2, 9), (30, 30, 8, 80)):
        table = [[found, rows - found], [before, size - before]]
        peer = fisher_exact(table, "greater").pvalue
        assert tail(found, rows, (before, size)) == pytest.approx(peer, rel=1e-9)


def test_the_share_outside_keeps_its_level_though_the_reference_is_a_sample():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(3000):
        # Of 100 reference rows, many more new ones: a known share would be trusted.
        seen = {name: (rng.binomial(100, 0.1), 100.0) for name in "ab"}
        counts = {"n_rows": 2000, "n_checked": 2000, "n_near": 0}
        counts |= {"n_outside": rng.binomial(2000, 0.1), "n_unsure": 0}
        counts |= {"confidence_sum": 0.0, **count_nothing()}
        alarms += judge(counts, Expected(outside=seen), RATE).alarm is True
    assert alarms / 3000 < at_most(RATE, 3000)


def count_nothing():
    return {f"bin_{name}": np.zeros(15) for name in ("counts", "confidence", "correct")}


def test_distances_keep_the_level_though_the_reference_chose_the_reach():
    rng = np.random.default_rng(2)
    scaling = Identity().fit(np.eye(3)[[0, 1, 2]] * 2, [0, 1, 2])
    alarms = 0
    for _ in range(150):
        known = rng.normal(size=(160, 3)) + np.repeat([0, 3], 80)[:, None]
        domains = np.repeat(["a", "b"], 80)
        monitor = DriftMonitor.for_calibrator(
            scaling, known, domains, false_alarm_rate=RATE
        )
        new = rng.normal(size=(400, 3)) + rng.choice([0, 3])
        monitor.update(scaling.details(np.zeros((400, 3))), features=new)
        alarms += monitor.check().alarm
    assert alarms / 150 < at_most(RATE, 150)


def test_a_served_domain_keeps_its_level_and_others_are_seen():
    """Rows of one domain are expected; those of another, known one are not."""
    rng = np.random.default_rng(8)
    alarms = {0: 0, 3: 0}
    for _ in range(100):
        known = rng.normal(size=(200, 3)) + np.repeat([0, 3], 100)[:, None]
        domains = np.repeat(["a", "b"], 100)
        # In b it is less sure.
        logits = 2 * rng.normal(size=(200, 3)) / np.repeat([1, 2], 100)[:, None]
        scaling = Identity().fit(logits, logits.argmax(axis=1))
        monitor = DriftMonitor.for_calibrator(
            scaling,
            known,
            domains,
            logits=logits,
            served="a",
            false_alarm_rate=RATE,
        )
        assert set(monitor.expected.outside) == set(monitor.expected.unsure) == {"a"}
        for middle in alarms:
            watch = DriftMonitor.from_dict(monitor.to_dict())
            new = rng.normal(size=(300, 3)) + middle
            scores = 2 * rng.normal(size=(300, 3)) / (1 if middle == 0 else 2)
            watch.update(scaling.details(scores), features=new)
            alarms[middle] += watch.check().alarm
    assert alarms[0] / 100 < at_most(RATE, 100)
    assert alarms[3] == 100


@pytest.mark.parametrize("shape", [(8, 1), (2, 2), (0.5, 0.5)])
def test_confidence_keeps_its_level_whatever_its_distribution(shape):
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(700):
        # Two domains, skewed; the new rows are of the one or the other.
        known = [0.5 + rng.beta(*shape, 60) / 2, 0.5 + rng.beta(1, 1, 90) / 2]
        middle = float(np.median(np.concatenate(known)))
        unsure = {
            str(i): (float(np.sum(c < middle - 1e-6)), float(len(c)))
            for i, c in enumerate(known)
        }
        monitor = DriftMonitor(Expected(middle=middle, unsure=unsure), RATE)
        pick = shape if rng.random() < 0.5 else (1, 1)
        monitor.update(binary(0.5 + rng.beta(*pick, 300) / 2))
        alarms += monitor.check().alarm is True
    assert alarms / 700 < at_most(RATE, 700)


@pytest.mark.parametrize("n_rows", [40, 400])
def test_calibrated_labels_keep_the_level_and_others_do_not(n_rows):
    rng = np.random.default_rng(4)
    alarms = {1.0: 0, 0.85: 0, 1.1: 0}
    for _ in range(400):
        confidence = 0.5 + rng.beta(3, 1, n_rows) / 2
        for factor in alarms:
            monitor = DriftMonitor(false_alarm_rate=RATE)
            chance = np.minimum(confidence * factor, 1)
            monitor.update(binary(confidence), labels_at(rng, chance))
            alarms[factor] += monitor.check().alarm is True
    # Discrete tests are on the safe side, but not asleep.
    assert RATE / 20 < alarms[1.0] / 400 < at_most(RATE, 400)
    assert alarms[0.85] / 400 > (0.3 if n_rows == 40 else 0.99)
    assert alarms[1.1] / 400 > (0.05 if n_rows == 40 else 0.9)


def test_errors_that_cancel_are_seen():
    """Too sure above, not sure enough below: right on average, wrong everywhere."""
    rng = np.random.default_rng(5)
    confidence = rng.choice([0.6, 0.9], 2000)
    monitor = DriftMonitor()
    monitor.update(binary(confidence), labels_at(rng, np.full(2000, 0.75)))
    signal = monitor.check()
    assert signal.of("labels").found == pytest.approx(0.15, abs=0.02)
    assert signal.alarm is True
    assert "labelled rows are right 7" in str(signal)


def test_labels_like_those_of_a_calibration_domain_are_no_news():
    """A domain may be off; only what is worse than every domain raises an alarm."""
    rng = np.random.default_rng(6)
    alarms = {0.9: 0, 0.95: 0, 0.75: 0}
    for _ in range(200):
        known = {}
        for name, factor in (("a", 1.0), ("b", 0.9)):
            confidence = 0.5 + rng.beta(3, 1, 300) / 2
            right = rng.random(300) < confidence * factor
            bins = count_bins(confidence, right)
            known[name] = (bins["bin_correct"].tolist(), bins["bin_counts"].tolist())
        for factor in alarms:
            confidence = 0.5 + rng.beta(3, 1, 600) / 2
            monitor = DriftMonitor(Expected(right=known), RATE)
            labels = labels_at(rng, confidence * factor)
            monitor.update(binary(confidence), labels)
            alarms[factor] += monitor.check().alarm is True
    assert alarms[0.9] / 200 < at_most(RATE, 200)
    assert alarms[0.95] / 200 < at_most(RATE, 200)
    assert alarms[0.75] / 200 > 0.9


def test_all_kinds_together_keep_the_level():
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(60):
        logits = 2 * rng.normal(size=(300, 3))
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        features = rng.normal(size=(300, 2))
        half = slice(0, 150), slice(150, 300)
        scaling = TemperatureScaling().fit(logits[half[0]], labels[half[0]])
        monitor = DriftMonitor.for_calibrator(
            scaling,
            features[half[0]],
            logits=logits[half[0]],
            labels=labels[half[0]],
            false_alarm_rate=RATE,
        )
        monitor.update(
            scaling.details(logits[half[1]]),
            labels[half[1]],
            features=features[half[1]],
        )
        assert all(found.alarm is not None for found in monitor.check().findings)
        alarms += monitor.check().alarm
    assert alarms / 60 < at_most(RATE, 60)


def test_fishers_sum_is_uniform_where_p_values_are():
    """Against the closed form for one bin, where nothing is combined."""
    p = tail(7, 20, 0.2)
    found = combined_tail(np.array([7.0]), np.array([20.0]), np.array([0.2]))
    assert found == pytest.approx(p, rel=1e-12)
    # Two bins: P(U₁ U₂ <= q) = q (1 - log q).
    q = p * tail(3, 9, 0.5)
    found = combined_tail(
        np.array([7.0, 3.0]), np.array([20.0, 9.0]), np.array([0.2, 0.5])
    )
    assert found == pytest.approx(q * (1 - np.log(q)), rel=1e-10)


def test_bins_are_joined_until_they_hold_enough():
    assert join_bins(np.array([0, 30, 0, 10, 40.0])).tolist() == [0, 0, 1, 1, 1]
    assert join_bins(np.array([30, 30, 30.0])).tolist() == [0, 1, 2]
    assert join_bins(np.array([30, 0, 24.0])).tolist() == [0, 0, 0]
    assert join_bins(np.array([3, 0, 4.0])).tolist() == [0, 0, 0]
