"""Third-party calibrators as calibrators of this library."""

from copy import deepcopy
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from coolhead.baselines.classwise import ScoreCalibrator, ScoreData
from coolhead.calibrators.parameters import parameters
from coolhead.numerics.checks import check_choice
from coolhead.numerics.softmax import softmax
from coolhead.numerics.solver import Status


@parameters
class OutsideCalibrator(ScoreCalibrator):
    """Wraps any object with `fit(probabilities, labels)` and `predict_proba`.

    netcal's `transform` is understood as well. Missing columns (an outside
    calibrator that knows only the classes it saw, in `classes_`) keep their original
    probability; rows are scaled to sum to one.

    Parameters
    ----------
    calibrator : object
        The third-party calibrator. It is copied, never changed.
    inputs : {"probabilities", "logits"}, default="probabilities"
        Its input: rows of the softmax, or logits.

    Attributes
    ----------
    calibrator_ : object
        The fitted copy.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.OutsideCalibrator(LogisticRegression(), inputs="logits")
    >>> cal.fit(data.logits, data.labels).predict_proba(data.logits).shape
    (300, 3)
    """

    calibrator: Any
    _: KW_ONLY
    inputs: str = "probabilities"

    def __sklearn_clone__(self) -> Self:
        return type(self)(_unfitted(self.calibrator), inputs=self.inputs)

    def _learn_scores(self, data: ScoreData) -> str:
        check_choice(self.inputs, "inputs", "probabilities", "logits")
        names = [
            n for n in ("predict_proba", "transform") if hasattr(self.calibrator, n)
        ]
        if not names or not hasattr(self.calibrator, "fit"):
            raise ValueError(
                f"calibrator is a {type(self.calibrator).__name__}; wanted an object "
                "with fit and predict_proba (or transform)"
            )
        copy = _unfitted(self.calibrator)
        given = self._inputs(data.logits)
        uneven = np.ptp(data.weights) > 0
        extra = {"sample_weight": data.weights} if uneven else {}
        copy.fit(given, data.labels, **extra)
        self.calibrator_, self.method_ = copy, names[0]
        return Status.CONVERGED

    def _inputs(self, logits: np.ndarray) -> np.ndarray:
        # float64: some calibrators lose their way on float32 probabilities.
        if self.inputs == "logits":
            return logits.astype(np.float64)
        return softmax(logits.astype(np.float64), 1.0)

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        given = self._inputs(logits)
        found = np.asarray(getattr(self.calibrator_, self.method_)(given), np.float64)
        if found.ndim == 1:
            found = np.column_stack([1 - found, found])
        if found.shape[1] < self.n_classes_:
            found = self._fill(found, softmax(logits.astype(np.float64), 1.0))
        found = np.clip(found, 1e-12, None)
        return found / found.sum(axis=1, keepdims=True)

    def _fill(self, found: np.ndarray, plain: np.ndarray) -> np.ndarray:
        """Put the columns where they belong; absent classes keep their share."""
        known = np.asarray(getattr(self.calibrator_, "classes_", []))
        if len(known) != found.shape[1]:
            raise ValueError(
                f"{type(self.calibrator_).__name__} returned {found.shape[1]} columns "
                f"for {self.n_classes_} classes and has no classes_ to say which"
            )
        filled = plain.copy()
        left = plain[:, known].sum(axis=1, keepdims=True)
        filled[:, known] = found * left
        return filled


def _unfitted(calibrator: Any) -> Any:
    """A clone; a plain copy of what is no estimator, or one that cannot be cloned."""
    try:
        return clone(calibrator)
    except (TypeError, RuntimeError):
        # netcal changes its parameters in the constructor, which clone refuses.
        return deepcopy(calibrator)
