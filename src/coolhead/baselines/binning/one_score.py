"""Maps of one score to one probability, put to work on many classes.

"top_label": the map sees the confidence and whether the prediction is right; the
other classes share what is left, and the prediction stays. "one_vs_all": every class
has its own map and the results are scaled to sum to one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from coolhead.baselines.classwise.base import ScoreCalibrator, ScoreData
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice
from coolhead.numerics.softmax import confidence, softmax
from coolhead.numerics.solution import Status

# Keeps every class possible, and breaks ties by the original order.
BLEND = 1e-9
# Keeps the top label just ahead, so that rounding cannot change it.
TIE = 1e-5

Curve = tuple[np.ndarray, np.ndarray]
FitCurve = Callable[[np.ndarray, np.ndarray, np.ndarray], Curve]


class CurveCalibrator(ScoreCalibrator):
    """Maps one score, or that of every class, by curves learned from hits and misses.

    A subclass has a parameter `scheme` and writes `_fit_curve`.

    Attributes
    ----------
    curves_ : list of pairs of arrays; None for a class without rows, which keeps its
        probability.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_
    """

    scheme: str

    @property
    def learns_classes(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every class has a curve."""
        return self.scheme == "one_vs_all"

    def _learn_scores(self, data: ScoreData) -> str:
        self.curves_ = fit_curves(data, self.scheme, self._fit_curve)
        return Status.CONVERGED

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        if self.scheme == "top_label":
            largest, top = exact_confidence(logits)
            return replace_top(logits, top, self._read_curve(self.curves_[0], largest))
        probabilities = exact_softmax(logits)
        mapped = probabilities.copy()
        for k, curve in enumerate(self.curves_):
            if curve is not None:
                mapped[:, k] = self._read_curve(curve, probabilities[:, k])
        mapped += BLEND * probabilities
        return mapped / mapped.sum(axis=1, keepdims=True)

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Curve:
        raise NotImplementedError(f"{type(self).__name__} does not define its curves")

    def _read_curve(self, curve: Curve, scores: np.ndarray) -> np.ndarray:
        """Curves are steps unless a subclass knows better."""
        return read_steps(curve, scores)


def read_steps(steps: Curve, scores: np.ndarray) -> np.ndarray:
    """Value of the step that each score falls on."""
    inner, values = steps
    return values[np.searchsorted(inner, scores, side="left")]


def exact_softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in double precision, whatever that of the logits.

    A curve may jump, and near one single precision has few numbers left: the step a
    score falls on must not hang on who rounds.
    """
    probabilities = np.empty(logits.shape)
    for rows in row_blocks(*logits.shape):
        probabilities[rows] = softmax(logits[rows].astype(np.float64), 1.0)
    return probabilities


def exact_confidence(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Confidence in double precision and predicted class, (n,) each."""
    largest, predicted = np.empty(len(logits)), np.empty(len(logits), np.intp)
    for rows in row_blocks(*logits.shape):
        block = logits[rows].astype(np.float64)
        largest[rows], predicted[rows] = confidence(block, 1.0)
    return largest, predicted


def fit_curves(data: ScoreData, scheme: str, fit_curve: FitCurve) -> list[Any]:
    """One curve for the top label, or one per class (None where a class is absent)."""
    check_choice(scheme, "scheme", "top_label", "one_vs_all")
    if scheme == "top_label":
        largest, predicted = exact_confidence(data.logits)
        return [fit_curve(largest, predicted == data.labels, data.weights)]
    probabilities = exact_softmax(data.logits)
    absent = set(data.absent.tolist())
    return [
        None
        if k in absent
        else fit_curve(
            np.ascontiguousarray(probabilities[:, k]), data.labels == k, data.weights
        )
        for k in range(probabilities.shape[1])
    ]


def replace_top(logits: np.ndarray, top: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Probabilities with the wanted one for class `top`, which stays the largest.

    The others keep their proportions, as far as none of them overtakes the top: the
    second of an overconfident classifier would otherwise inherit all it lost. Where
    it must be, they are made more even, and a wish below 1/k becomes 1/k.
    """
    each = np.arange(len(top))
    others = logits.astype(np.float64)
    # Masked classes take no share; a row with one class left is certain anyway.
    n_classes = np.maximum(np.isfinite(others).sum(axis=1), 2)
    # Exactly 1 would make a single surprise infinitely bad.
    wanted = np.clip(wanted, (1 + 10 * TIE) / n_classes, 1 - BLEND)
    others[each, top] = -np.inf
    # A softmax of their own keeps their digits where the top has nearly all mass.
    free = np.isfinite(others)
    others -= np.where(free, others, -np.finfo(np.float64).max).max(
        axis=1, keepdims=True
    )
    np.exp(others, out=others)
    others /= np.maximum(others.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    even, largest = 1 / (n_classes - 1), others.max(axis=1)
    allowed = (1 - TIE) * wanted / (1 - wanted)
    room = np.maximum(largest - even, TIE * even)
    blend = np.clip((largest - allowed) / room, 0.0, 1.0)[:, None]
    others = (1 - blend) * others + blend * even[:, None] * free
    others *= (1 - wanted)[:, None]
    others[each, top] = wanted
    return others / others.sum(axis=1, keepdims=True)
