"""Other libraries as oracles: they agree with us where they do not break."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import coolhead as ch
from simulate import logits_and_labels

CASES = [(2000, 3, 0.5), (2000, 10, 2.5), (1500, 65, 1.0)]


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision function is its input."""

    def fit(self, X, y):
        self.classes_ = np.arange(X.shape[1])
        return self

    def decision_function(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


def scikit_learn_temperature(logits, labels):
    frozen = FrozenEstimator(Scores().fit(logits, labels))
    model = CalibratedClassifierCV(frozen, method="temperature").fit(logits, labels)
    (inner,) = {c.calibrators[0] for c in model.calibrated_classifiers_}
    return 1 / inner.beta_


@pytest.mark.parametrize(("n", "k", "scale"), CASES)
def test_scikit_learn(n, k, scale):
    logits, labels = logits_and_labels(n, k, scale=scale)
    mine = ch.fit_temperature(logits, labels).temperature
    assert scikit_learn_temperature(logits, labels) == pytest.approx(mine, rel=1e-6)


@pytest.mark.filterwarnings("ignore:Number of classes in training fold")
def test_scikit_learn_cannot_fit_a_cluster_without_every_class():
    # Their known fault that small clusters meet; ours is an ordinary fit.
    logits, labels = logits_and_labels(200, 5, scale=2.0)
    keep = labels != 3
    with pytest.raises((IndexError, ValueError)):
        scikit_learn_temperature(logits[keep], labels[keep])
    assert ch.fit_temperature(logits[keep], labels[keep]).status == "converged"


@pytest.mark.parametrize(("n", "k", "scale"), CASES)
def test_probmetrics(n, k, scale):
    calibrators = pytest.importorskip("probmetrics.calibrators")
    logits, labels = logits_and_labels(n, k, scale=scale)
    mine = ch.fit_temperature(logits, labels).temperature
    peer = calibrators.get_calibrator("temp-scaling")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(softmax(logits, axis=1), labels)
        theirs = peer.predict_proba(softmax(logits, axis=1))
    np.testing.assert_allclose(theirs, softmax(logits / mine, axis=1), atol=1e-5)
