"""Reliability and risk-coverage curves."""

import matplotlib
import numpy as np
import pytest

from coolhead.metrics import (
    expected_calibration_error,
    reliability_curve,
    risk_coverage_curve,
)

matplotlib.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(300)
    confidence = generator.beta(5, 2, 300)
    return generator.random(300) < confidence**2, confidence


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_reliability_gives_ece(data, binning):
    curve = reliability_curve(*data, binning=binning)
    ece = expected_calibration_error(*data, binning=binning)
    assert curve.expected_calibration_error == pytest.approx(ece, abs=1e-12)
    assert np.isnan(curve.accuracy[curve.count == 0]).all()
    assert (curve.standard_error[curve.count > 0] > 0).all()


def test_reliability_agrees_with_scikit_learn(data):
    from sklearn.calibration import calibration_curve

    correct, confidence = data
    accuracy, mean = calibration_curve(correct, confidence, n_bins=15)
    curve = reliability_curve(correct, confidence)
    filled = curve.count > 0
    assert np.allclose(curve.accuracy[filled], accuracy, atol=1e-12)
    assert np.allclose(curve.confidence[filled], mean, atol=1e-12)


@pytest.mark.parametrize("curve_of", [reliability_curve, risk_coverage_curve])
def test_plots_draw_on_the_given_axes_or_their_own(data, curve_of):
    curve = curve_of(*data)
    _, ax = plt.subplots()
    assert curve.plot(ax=ax, label="ours") is ax
    assert ax.get_legend_handles_labels()[1] == ["ours"]
    assert curve.plot() is not ax
    plt.close("all")


def test_risk_and_coverage_by_definition(data):
    correct, confidence = data
    curve = risk_coverage_curve(correct, confidence)
    for coverage, risk, threshold in zip(
        curve.coverage, curve.risk, curve.threshold, strict=True
    ):
        answered = confidence >= threshold
        assert coverage == pytest.approx(answered.mean())
        assert risk == pytest.approx(1 - correct[answered].mean())
    assert curve.risk_at(1.0) == pytest.approx(1 - correct.mean())


def test_area_averages_over_the_order_of_ties():
    generator = np.random.default_rng(0)
    confidence = generator.integers(1, 5, 40) / 5
    correct = generator.random(40) < confidence
    areas = []
    for _ in range(4000):
        order = np.lexsort([generator.random(40), -confidence])
        areas.append(np.mean(np.cumsum(~correct[order]) / np.arange(1, 41)))
    area = risk_coverage_curve(correct, confidence).area
    assert area == pytest.approx(np.mean(areas), abs=3e-3)


def test_risk_at_finds_the_least_coverage_that_suffices():
    curve = risk_coverage_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6])
    assert [curve.risk_at(c) for c in (0.2, 0.25, 0.3, 0.75, 1)] == (
        pytest.approx([0, 0, 1 / 2, 1 / 3, 1 / 2])
    )
    with pytest.raises(ValueError, match="coverage is 0"):
        curve.risk_at(0)
