"""What a scikit-learn wrapper hides: its calibrator, and what that one sees of X."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from coolhead.calibrators.classifier import CalibratedClassifier


class Calibration(NamedTuple):
    """A calibrator and the rows it was fitted on, as far as they are known."""

    calibrator: Any
    features: Any
    domains: Any
    logits: Any
    labels: Any


def unwrap(
    calibrator: Any, features: Any, domains: Any, logits: Any, labels: Any
) -> Calibration:
    """The calibrator inside a `CalibratedClassifier`, with its features and logits.

    The rows its estimator learned from are left out: it is surer there than it will
    ever be again. Where it learned from all rows, only the features are used.
    """
    if not isinstance(calibrator, CalibratedClassifier):
        return Calibration(calibrator, features, domains, logits, labels)
    model, X = calibrator, features
    if X is None:
        raise ValueError("features is missing; wanted the X of the classifier's fit")
    if model.source is not None:
        if domains is None:
            raise ValueError(
                "sample_domain is missing; wanted that of the classifier's fit, whose "
                f"source is {model.source}"
            )
        kept = np.flatnonzero(~np.isin(domains, model.source))
        X, domains = _safe_indexing(X, kept), np.asarray(domains)[kept]
        labels = None if labels is None else np.asarray(labels)[kept]
    found = model.features_of(X)
    if model.source is None and not isinstance(model.estimator_, FrozenEstimator):
        return Calibration(model.calibrator_, found, domains, None, None)
    logits, _ = model._query(X)
    if labels is not None:
        known = np.isin(labels, model.classes_)
        if not known.all():
            raise ValueError(
                f"labels holds {np.asarray(labels)[~known][0]}; wanted classes of "
                f"the classifier: {', '.join(map(str, model.classes_[:5]))}, ..."
            )
        labels = np.searchsorted(model.classes_, labels)
    return Calibration(model.calibrator_, found, domains, logits, labels)
