"""What `NewDomain` is made of: a calibrator and logits, or a classifier and its X."""

import copy
from typing import Any, NamedTuple

import numpy as np

from coolhead.calibrators.classifier import CalibratedClassifier
from coolhead.models.kinds import check_calibrator
from coolhead.numerics.checks import as_logits, check_features, check_logit_values
from coolhead.numerics.class_names import are_names, column_names, number_names
from coolhead.numerics.probabilities import refuse_probabilities


class Given(NamedTuple):
    """The rows of a new domain as the calibrator sees them.

    calibrator : of logits. logits, features : checked, the latter None without.
    classes : names of the columns where they are known, else None.
    model : the classifier around the calibrator, or None.
    """

    calibrator: Any
    logits: np.ndarray
    features: np.ndarray | None
    classes: np.ndarray | None
    model: CalibratedClassifier | None = None

    def number(self, labels: Any) -> np.ndarray:
        """Class numbers for labels that are names, or a classifier's own classes."""
        found = np.asarray(labels)
        if self.classes is None:
            return found
        if self.model is None:
            if not are_names(found):
                return found
            return number_names(found, None, self.classes.tolist())[0]
        wrong = found[~np.isin(found, self.classes)]
        if len(wrong):
            listed = ", ".join(map(str, self.classes[:5]))
            more = ", ..." if len(self.classes) > 5 else ""
            raise ValueError(
                f"labels holds {wrong.flat[0]!s}, an unknown class; wanted classes of "
                f"the classifier: {listed}{more}"
            )
        return np.searchsorted(self.classes, found)

    def around(self, calibrator: Any) -> Any:
        """The same classifier with another calibrator; that itself, without one."""
        if self.model is None:
            return calibrator
        moved = copy.copy(self.model)
        moved.calibrator_ = calibrator
        return moved


def look_at(calibrator: Any, logits: Any, features: Any) -> Given:
    """Check what is given; the rows of a batch come together, so ask what they are."""
    if isinstance(calibrator, CalibratedClassifier):
        if features is not None:
            raise ValueError(
                "features is given with a CalibratedClassifier, which makes its own "
                "out of X; wanted X alone"
            )
        model, (logits, features) = calibrator, calibrator._query(logits)
        inner = check_calibrator(model.calibrator_, temperature=True)
        classes = np.asarray(model.classes_)
        return Given(inner, *_check(inner, logits, features), classes, model)
    check_calibrator(calibrator, temperature=True)
    names = column_names(logits)
    classes = None if names is None else np.array(names)
    array, features = _check(calibrator, logits, features)
    if np.ndim(logits) == 2:
        refuse_probabilities(array, "logits")
    return Given(calibrator, array, features, classes)


def _check(
    calibrator: Any, logits: Any, features: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    array, checked = calibrator._check_query(as_logits(logits), features)
    if checked is None and features is not None:
        # Of no use to this calibrator, but they tell what lies outside.
        checked = check_features(features, len(array))
    check_logit_values(array, "logits")
    return array, checked
