"""Proper scores of probabilities, and the gain that calibration brings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.bins import correctness_and_confidence
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_logits, check_probabilities
from coolhead.numerics.classes import match_rows
from coolhead.numerics.softmax import brier_rows, log_loss_rows
from coolhead.numerics.weights import finite_mean, infinite_loss_message


def negative_log_likelihood(
    labels: ArrayLike,
    probabilities: Any = None,
    *,
    logits: Any = None,
    temperature: float | np.ndarray = 1.0,
    classes: Any = None,
) -> float:
    """Mean of -log p(true class).

    The loss of a row whose true class has probability zero (a masked class, one that
    the classifier was not fitted on) is infinite. Such rows are left out of the mean
    and a warning counts them; a mean without any other row is infinite.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Class numbers, or names.
    probabilities : array-like of shape (n_samples, n_classes)
        Predicted probabilities.
    logits : array-like of shape (n_samples, n_classes), default=None
        Instead of probabilities: exact for very small probabilities, and no array of
        that shape is built.
    temperature : float or ndarray of shape (n_samples,), default=1.0
        Divides the logits.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

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
        logits, labels, _ = match_rows(logits, labels, classes, check_logits)
        losses = log_loss_rows(logits, labels, temperature)
    else:
        rows = match_rows(probabilities, labels, classes, check_probabilities)
        own = rows[0][np.arange(len(rows[1])), rows[1]].astype(np.float64)
        with np.errstate(divide="ignore"):
            losses = -np.log(own)
    mean, n_infinite = finite_mean(losses)
    if n_infinite:
        warnings.warn(infinite_loss_message(n_infinite, len(losses)), stacklevel=2)
    return mean


def brier_score(
    labels: ArrayLike,
    probabilities: Any = None,
    *,
    logits: Any = None,
    temperature: float | np.ndarray = 1.0,
    classes: Any = None,
) -> float:
    """Mean squared distance to the one-hot label, summed over classes (0 to 2).

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Class numbers, or names.
    probabilities : array-like of shape (n_samples, n_classes)
        Predicted probabilities.
    logits : array-like of shape (n_samples, n_classes), default=None
        Instead of probabilities.
    temperature : float or ndarray of shape (n_samples,), default=1.0
        Divides the logits.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> from coolhead.metrics import brier_score
    >>> round(brier_score([0, 1], [[0.8, 0.2], [0.5, 0.5]]), 3)
    0.29
    """
    if _logits_given(probabilities, logits):
        logits, labels, _ = match_rows(logits, labels, classes, check_logits)
        return float(brier_rows(logits, labels, temperature).mean())
    return float(brier_scores(labels, probabilities, classes).mean())


def brier_scores(
    labels: ArrayLike, probabilities: ArrayLike, classes: Any = None
) -> np.ndarray:
    """Return the Brier score of every row, (n,)."""
    probabilities, labels, _ = match_rows(
        probabilities, labels, classes, check_probabilities
    )
    own = probabilities[np.arange(len(labels)), labels].astype(np.float64)
    squares = np.empty(len(labels))
    for rows in row_blocks(*probabilities.shape):
        block = probabilities[rows].astype(np.float64, copy=False)
        squares[rows] = np.vecdot(block, block)
    return squares - 2 * own + 1


def top_label_brier_score(
    labels: ArrayLike, probabilities: ArrayLike, *, classes: Any = None
) -> float:
    """Mean squared difference of correctness and confidence.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where `probabilities` is a vector.
    probabilities : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; or the confidence of the predicted class.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

    Examples
    --------
    >>> from coolhead.metrics import top_label_brier_score
    >>> top_label_brier_score([1, 0], [0.5, 0.5])
    0.25
    """
    return float(_top_label_brier_scores(labels, probabilities, classes).mean())


def calibration_gain(
    labels: ArrayLike,
    uncalibrated: Any,
    calibrated: Any,
    *,
    top_label: bool = False,
    classes: Any = None,
) -> float:
    """Brier score before calibration minus after: positive means better.

    For one temperature and the multi-class score this is exactly the reduction of
    the squared calibration error. A map that depends on features, or the top-label
    score, may change refinement too: then it is a gain in score.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Classes; or correctness, where the others are vectors.
    uncalibrated, calibrated : array-like
        Probabilities of shape (n_samples, n_classes); or the confidence of the
        predicted class, of shape (n_samples,).
    top_label : bool, default=False
        Score the confidence of the predicted class only, as vectors always do.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Returns
    -------
    float

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
    before, after = (scores(labels, p, classes) for p in (uncalibrated, calibrated))
    return float((before - after).mean())


def _top_label_brier_scores(
    labels: Any, probabilities: Any, classes: Any
) -> np.ndarray:
    correct, confidence = correctness_and_confidence(labels, probabilities, classes)
    return np.square(correct - confidence)


def _logits_given(probabilities: Any, logits: Any) -> bool:
    if (probabilities is None) == (logits is None):
        found = "neither" if logits is None else "both"
        raise ValueError(
            f"{found} of probabilities and logits given; wanted exactly one"
        )
    return logits is not None
