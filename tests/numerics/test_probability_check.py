"""Probabilities, also rounded ones, are distinguished from logits in several rows."""

import numpy as np
import pytest

import coolhead as ch
from simulate import logits_and_labels


def bfloat16(values):
    """Cut to eight bits, as some exporters do."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return (bits & 0xFFFF0000).view(np.float32)


ROUNDINGS = {
    "none": lambda p: p,
    "single": lambda p: p.astype(np.float32),
    "half": lambda p: p.astype(np.float16),
    "half, then single": lambda p: p.astype("f2").astype("f4"),
    "half, then double": lambda p: p.astype("f2").astype("f8"),
    "eight bits": bfloat16,
    "four decimals": lambda p: np.round(p, 4),
    "four decimals, single": lambda p: np.round(p, 4).astype(np.float32),
    "two decimals": lambda p: np.round(p, 2),
}


# Two decimals of 300 classes are hardly probabilities any more.
CASES = [(name, k) for name in ROUNDINGS for k in (2, 10, 300)]
CASES.remove(("two decimals", 300))


@pytest.mark.parametrize(("name", "k"), CASES)
def test_rounded_probabilities_are_no_logits_but_can_become_some(name, k):
    rounding = ROUNDINGS[name]
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 0.3), size=1500)
    labels = (np.cumsum(p, axis=1) < rng.random((1500, 1))).sum(axis=1).clip(0, k - 1)
    rounded = rounding(p)
    with pytest.raises(ValueError, match="logits_from_probabilities"):
        ch.fit_temperature(rounded, labels)
    broken = rounded.copy()
    broken[17] = 3 * broken[17] + 0.5
    with pytest.raises(ValueError, match="logits_from_probabilities"):
        ch.fit_temperature(broken, labels)
    with pytest.raises(ValueError, match="logits_from_probabilities"):
        ch.baselines.VectorScaling().fit(rounded, labels)
    logits = ch.logits_from_probabilities(rounded)
    assert np.isfinite(logits).all()
    assert ch.fit_temperature(logits, labels).temperature > 0.5
    with pytest.raises(ValueError, match="row 17"):
        ch.logits_from_probabilities(broken)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_genuine_logits_in_the_unit_interval_are_never_refused(dtype, k):
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = 1 if seed % 10 == 0 else int(rng.integers(8, 40))
        logits = rng.random((n, k)).astype(dtype)
        if seed % 3 == 0:
            logits = np.round(logits, int(rng.integers(1, 4)))
        if seed % 5 == 0:
            logits = (logits / (k / 2)).astype(dtype)  # the mean of the sums is one
        fit = ch.fit_temperature(logits, rng.integers(0, k, n))
        assert fit.temperature > 0


def test_rows_served_one_at_a_time_are_never_refused():
    logits, labels = logits_and_labels(400, 2)
    for calibrator in (ch.TemperatureScaling(), ch.baselines.VectorScaling()):
        calibrator.fit(logits, labels)
        for row in ([0.0957, 0.9043], [0.5, 0.5], [0.0, 1.0]):
            found = calibrator.predict_proba(np.array([row], np.float16))
            assert found.shape == (1, 2)


def test_hidden_values_of_masked_arrays_are_never_used():
    logits, labels = logits_and_labels(60, 3)
    features = np.random.default_rng(0).normal(size=(60, 2))
    names = np.array(["a", "b"])[np.arange(60) % 2]

    def hide(values):
        mask = np.zeros(values.shape, bool)
        mask[5] = True
        return np.ma.masked_array(values, mask=mask)

    good = {"labels": labels, "features": features, "sample_domain": names}
    good["sample_weight"] = np.ones(60)
    for name in good:
        given = {**good, name: hide(good[name])}
        with pytest.raises(ValueError, match=f"{name} has masked entries"):
            ch.NearestClusterTemperature(2).fit(logits, **given)
    with pytest.raises(ValueError, match="groups has masked entries"):
        ch.fit_temperature(logits, labels, groups=hide(names))
    fitted = ch.TemperatureScaling().fit(logits, labels)
    with pytest.raises(ValueError, match="logits has masked entries"):
        fitted.predict_proba(hide(logits))
    whole = np.ma.masked_array(logits, mask=False)
    assert ch.fit_temperature(whole, labels).status == "converged"


def test_masks_reach_no_metric_monitor_or_archive():
    logits, labels = logits_and_labels(60, 3)
    fitted = ch.TemperatureScaling().fit(logits, labels)
    details = fitted.details(logits)
    sure = details.probabilities.max(axis=1)
    right = details.probabilities.argmax(axis=1) == labels
    hidden = np.arange(60) == 5
    for given in (
        (np.ma.masked_array(right, hidden), sure),
        (np.ma.masked_array(right.astype(int), hidden), sure),
        (right, np.ma.masked_array(sure, hidden)),
    ):
        with pytest.raises(ValueError, match="has masked entries"):
            ch.metrics.expected_calibration_error(*given)
    monitor = ch.DriftMonitor.for_calibrator(fitted, logits=logits)
    with pytest.raises(ValueError, match="labels has masked entries"):
        monitor.update(details, np.ma.masked_array(labels, hidden))
    names = np.ma.masked_array(np.full(60, "a"), hidden)
    with pytest.raises(ValueError, match="domains has masked entries"):
        ch.DomainArchive(logits, labels=labels, domains=names)
