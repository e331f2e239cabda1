"""Proper scores of probabilities, and the gain that calibration brings."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.vectors import correctness_and_confidence
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_labels, check_logits
from coolhead.numerics.class_names import column_names
from coolhead.numerics.probabilities import check_probabilities
from coolhead.numerics.softmax import RowScores, brier_rows, log_loss_rows, score_rows


def negative_log_likelihood(
    labels: ArrayLike,
    probabilities: Any = None,
    *,
    logits: Any = None,
    temperature: float | np.ndarray = 1.0,
) -> float:
    """Mean of -log p(true class).

    Parameters
    ----------
    labels : (n,) class indices
    probabilities : (n, k); a true class of probability 0 makes the result infinite
    logits : (n, k), instead of probabilities: exact for very small probabilities,
        and no (n, k) array is built
    temperature : number or (n,), divides the logits

    Examples
    --------
    >>> from coolhead.metrics import negative_log_likelihood
    >>> logits = [[2.0, 0.0], [2.0, 0.0]]
    >>> round(negative_log_likelihood([0, 1], logits=logits), 3)
    1.127
    >>> round(negative_log_likelihood([0, 1], logits=logits, temperature=9), 3)
    0.699
    """
    if _logits_given(probabilities, logits):
        logits, labels = _checked(labels, logits, check_logits)
        return float(log_loss_rows(logits, labels, temperature).mean())
    probabilities, labels = _checked(labels, probabilities, check_probabilities)
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        return float(-np.log(own).mean())


def brier_score(
    labels: ArrayLike,
    probabilities: Any = None,
    *,
    logits: Any = None,
    temperature: float | np.ndarray = 1.0,
) -> float:
    """Mean squared distance to the one-hot label, summed over classes (0 to 2).

    Arguments as for `negative_log_likelihood`.

    Examples
    --------
    >>> from coolhead.metrics import brier_score
    >>> round(brier_score([0, 1], [[0.8, 0.2], [0.5, 0.5]]), 3)
    0.29
    """
    if _logits_given(probabilities, logits):
        logits, labels = _checked(labels, logits, check_logits)
        return float(brier_rows(logits, labels, temperature).mean())
    return float(brier_scores(labels, probabilities).mean())


def brier_scores(labels: ArrayLike, probabilities: ArrayLike) -> np.ndarray:
    """Brier score of every row, (n,)."""
    probabilities, labels = _checked(labels, probabilities, check_probabilities)
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    squares = np.empty(len(labels))
    for rows in row_blocks(*probabilities.shape):
        block = probabilities[rows].astype(np.float64, copy=False)
        squares[rows] = np.vecdot(block, block)
    return squares - 2 * own + 1


def score_probabilities(labels: np.ndarray, probabilities: np.ndarray) -> RowScores:
    """What `score_rows` gives of z / T, of the probabilities of any other method."""
    briers = brier_scores(labels, probabilities)
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    # A zero would make the mean infinite and hide all other rows.
    losses = -np.log(np.maximum(own, np.finfo(np.float64).tiny))
    return RowScores(
        probabilities.max(axis=1), probabilities.argmax(axis=1), losses, briers
    )


class CalibratedScores(NamedTuple):
    """`RowScores` of calibrated rows, and their T (n,) if the method has one."""

    rows: RowScores
    temperature: np.ndarray | None = None


def score_calibrated(
    calibrator: Any, logits: np.ndarray, labels: np.ndarray, features: Any
) -> CalibratedScores:
    """Ask a fitted calibrator about labelled rows; None is the classifier as it is.

    With a temperature the (n, k) probabilities are never built.
    """
    if calibrator is None:
        temperature = np.ones(len(labels))
    elif hasattr(calibrator, "temperature"):
        temperature = calibrator.temperature(logits, features)
    else:
        probabilities = calibrator.predict_proba(logits, features)
        return CalibratedScores(score_probabilities(labels, probabilities))
    return CalibratedScores(score_rows(logits, labels, temperature), temperature)


def top_label_brier_score(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean squared difference of correctness and confidence.

    Takes (labels, (n, k) probabilities) or (correctness, (n,) confidence).

    Examples
    --------
    >>> from coolhead.metrics import top_label_brier_score
    >>> top_label_brier_score([1, 0], [0.5, 0.5])
    0.25
    """
    return float(_top_label_brier_scores(labels, probabilities).mean())


def calibration_gain(
    labels: ArrayLike, uncalibrated: Any, calibrated: Any, *, top_label: bool = False
) -> float:
    """Brier score before calibration minus after: positive means better.

    For one temperature and the multi-class score this is exactly the reduction of
    the squared calibration error. A map that depends on features, or the top-label
    score, may change refinement too: then it is a gain in score.

    Parameters
    ----------
    labels : (n,) class indices; or correctness, when the others are (n,)
    uncalibrated, calibrated : (n, k) probabilities, or (n,) confidences
    top_label : score the confidence of the predicted class only; this is what (n,)
        confidences give in any case

    Examples
    --------
    >>> from coolhead.metrics import calibration_gain
    >>> before, after = [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]
    >>> calibration_gain([0, 1], before, after)
    0.5
    """
    if np.ndim(uncalibrated) != np.ndim(calibrated):
        raise ValueError(
            f"calibrated has {np.ndim(calibrated)} dimensions; wanted "
            f"{np.ndim(uncalibrated)}, as uncalibrated has"
        )
    top_label = top_label or np.ndim(uncalibrated) == 1
    scores = _top_label_brier_scores if top_label else brier_scores
    return float((scores(labels, uncalibrated) - scores(labels, calibrated)).mean())


def _top_label_brier_scores(labels: Any, probabilities: Any) -> np.ndarray:
    correct, confidence = correctness_and_confidence(labels, probabilities)
    return np.square(correct - confidence)


def _logits_given(probabilities: Any, logits: Any) -> bool:
    if (probabilities is None) == (logits is None):
        found = "neither" if logits is None else "both"
        raise ValueError(
            f"{found} of probabilities and logits given; wanted exactly one"
        )
    return logits is not None


def _checked(
    labels: Any, scores: Any, check: Callable[[Any], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    rows = check(scores)
    names = column_names(scores)
    return rows, check_labels(labels, rows.shape[1], len(rows), names)
