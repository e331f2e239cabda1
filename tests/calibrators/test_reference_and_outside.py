"""Reference rows, the adapter for outside calibrators, and refused input."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from coolhead.baselines.binning import PlattScaling
from coolhead.baselines.classwise import VectorScaling
from coolhead.baselines.error_oracle import OracleErrorTemperature
from coolhead.baselines.outside import OutsideCalibrator
from coolhead.calibrators.temperature import Identity, TemperatureScaling
from coolhead.metrics import expected_calibration_error
from coolhead.numerics.softmax import confidence, softmax
from simulate import logits_and_labels


def test_identity_changes_nothing():
    logits, labels = logits_and_labels(100, 4)
    method = Identity().fit(logits, labels)
    np.testing.assert_array_equal(method.predict_proba(logits), softmax(logits, 1.0))
    assert method.temperature_ == 1.0


def test_error_oracle_has_the_smallest_error_of_a_fine_grid():
    logits, labels = logits_and_labels(800, 4, scale=3.0)
    method = OracleErrorTemperature().fit(logits, labels)

    def error(temperature):
        largest, predicted = confidence(logits, temperature)
        return expected_calibration_error(predicted == labels, largest)

    assert method.error_ == pytest.approx(error(method.temperature_))
    likely = TemperatureScaling().fit(logits, labels).temperature_
    assert method.error_ <= error(likely)
    assert method.error_ <= min(map(error, np.geomspace(1, 9, 40))) + 0.004


@pytest.mark.parametrize("right", [True, False])
def test_error_oracle_says_when_it_stands_at_the_end_of_its_range(right):
    logits, _ = logits_and_labels(200, 4)
    labels = logits.argmax(axis=1) if right else logits.argmin(axis=1)
    method = OracleErrorTemperature().fit(logits, labels)
    spread = np.exp(np.log(logits.max(axis=1) - logits.mean(axis=1)).mean())
    assert method.status_ == "at_bound"
    assert spread / 301 < method.temperature_ < 301 * spread


class Columns:
    """An outside calibrator of the plainest kind."""

    def fit(self, probabilities, labels):
        self.model = LogisticRegression(C=np.inf, max_iter=2000)
        self.model.fit(np.log(probabilities + 1e-12), labels)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, probabilities):
        return self.model.predict_proba(np.log(probabilities + 1e-12))


def test_plain_outside_calibrator_takes_part():
    logits, labels = logits_and_labels(600, 4, scale=3.0)
    outside = Columns()
    method = OutsideCalibrator(outside).fit(logits, labels)
    assert not hasattr(outside, "model")
    assert method.nll_ < method.nll_uncalibrated_
    np.testing.assert_allclose(method.predict_proba(logits).sum(axis=1), 1)


def test_classes_unknown_to_the_outside_keep_their_share():
    logits, labels = logits_and_labels(600, 4, scale=2.0)
    keep = labels != 1
    method = OutsideCalibrator(Columns()).fit(logits[keep], labels[keep])
    found, plain = method.predict_proba(logits), softmax(logits, 1.0)
    np.testing.assert_allclose(found[:, 1], plain[:, 1], atol=1e-9)


def test_scikit_learn_model_on_logits():
    logits, labels = logits_and_labels(500, 3, scale=2.0)
    model = LogisticRegression(max_iter=1000)
    method = OutsideCalibrator(model, inputs="logits").fit(logits, labels)
    expected = model.fit(logits, labels).predict_proba(logits)
    np.testing.assert_allclose(method.predict_proba(logits), expected, atol=1e-9)


def test_probmetrics_and_ours_agree():
    calibrators = pytest.importorskip("probmetrics.calibrators")
    logits, labels = logits_and_labels(800, 5, scale=2.0)
    outside = OutsideCalibrator(calibrators.TemperatureScalingCalibrator())
    ours = TemperatureScaling().fit(logits, labels)
    np.testing.assert_allclose(
        outside.fit(logits, labels).predict_proba(logits),
        ours.predict_proba(logits),
        atol=2e-3,
    )


# The probability library behind netcal calls functions of its own that it deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["TemperatureScaling", "LogisticCalibration"])
def test_netcal_takes_part(name):
    scaling = pytest.importorskip("netcal.scaling")
    logits, labels = logits_and_labels(300, 3, scale=3.0)
    method = clone(OutsideCalibrator(getattr(scaling, name)())).fit(logits, labels)
    assert method.method_ == "transform"
    assert method.nll_ < method.nll_uncalibrated_
    np.testing.assert_allclose(method.predict_proba(logits).sum(axis=1), 1)
    ours = TemperatureScaling().fit(logits, labels)
    if name == "TemperatureScaling":
        np.testing.assert_allclose(
            method.predict_proba(logits), ours.predict_proba(logits), atol=2e-2
        )


def test_netcal_binning_of_two_classes_takes_part():
    binning = pytest.importorskip("netcal.binning")
    logits, labels = logits_and_labels(300, 2, scale=3.0)
    method = OutsideCalibrator(binning.HistogramBinning(10)).fit(logits, labels)
    assert method.predict_proba(logits).shape == (300, 2)
    assert method.nll_ < method.nll_uncalibrated_


def test_transform_is_understood():
    class Halves:
        def fit(self, probabilities, labels):
            return self

        def transform(self, probabilities):
            return probabilities[:, 1] / 2

    logits, labels = logits_and_labels(50, 2)
    method = OutsideCalibrator(Halves()).fit(logits, labels)
    expected = softmax(logits, 1.0)[:, 1] / 2
    np.testing.assert_allclose(method.predict_proba(logits)[:, 1], expected)


def test_outside_mistakes_are_named():
    logits, labels = logits_and_labels(50, 3)
    with pytest.raises(ValueError, match="wanted an object"):
        OutsideCalibrator("temperature").fit(logits, labels)
    with pytest.raises(ValueError, match="inputs"):
        OutsideCalibrator(Columns(), inputs="x").fit(logits, labels)


@pytest.mark.parametrize("method", [VectorScaling(), PlattScaling()], ids=str)
def test_bad_input_is_refused(method):
    logits, labels = logits_and_labels(60, 3)
    with pytest.raises(NotFittedError):
        VectorScaling().predict_proba(logits)
    with pytest.raises(ValueError, match="logits_from_probabilities"):
        method.fit(softmax(logits, 1.0), labels)
    with pytest.raises(ValueError, match="row 3"):
        method.fit(np.where(np.arange(60)[:, None] == 3, np.nan, logits), labels)
    with pytest.raises(ValueError, match="labels"):
        method.fit(logits, labels + 5)
    with pytest.raises(ValueError, match="labels are missing"):
        method.fit(logits, None)
    method.fit(logits, labels)
    with pytest.raises(ValueError, match="expecting 3"):
        method.predict_proba(logits[:, :2])
