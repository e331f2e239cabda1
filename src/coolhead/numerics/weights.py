"""Which rows count in a fit, and how much: the one owner of sample weights."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.checks import bad_logits_message, check_finite, real_array


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return finite weights >= 0 that are not all zero, or None."""
    if sample_weight is None:
        return None
    array = real_array(sample_weight, "sample_weight").astype(np.float64, copy=False)
    if array.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {array.shape}; wanted one weight per row, "
            f"({n_rows},)"
        )
    check_finite(array, "sample_weight")
    negative = np.flatnonzero(array < 0)
    if len(negative):
        raise ValueError(
            f"sample_weight holds {array[negative[0]]} in row {negative[0]}; wanted "
            "weights >= 0"
        )
    if not array.any():
        raise ValueError("sample_weight is zero in every row; wanted one weight > 0")
    # Only proportions count, and sums of such numbers would not be finite.
    extreme = not 1e-150 < array.max() < 1e150
    return array / array.max() if extreme else array


def weighted_rows(weights: np.ndarray | None) -> np.ndarray | None:
    """Return the numbers of the rows whose weight is not zero; None stands for all.

    Not of those above zero: negative weights and NaN are refused, not left out.
    """
    if weights is None or weights.all():
        return None
    return np.flatnonzero(weights)


def masked_rows(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return a mask of the rows whose label has a logit of -inf: probability zero."""
    return np.isneginf(logits[np.arange(len(labels)), labels])


def counted_rows(
    logits: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray | None, int]:
    """Decide which rows a fit learns from.

    Rows of weight zero are as good as absent. Rows whose class is masked have an
    infinite loss at every temperature.

    Returns
    -------
    kept : ndarray of bool of shape (n_samples,), or None
        None stands for all rows.
    n_masked : int
        Rows of positive weight that are left out because their class is masked.
    """
    kept = np.ones(len(labels), bool) if weights is None else weights > 0
    masked = masked_rows(logits, labels) & kept
    n_masked = int(masked.sum())
    kept &= ~masked
    dropped = np.flatnonzero(~kept)
    bad = dropped[~np.isfinite(logits[dropped].max(axis=1))]
    if len(bad):
        raise ValueError(bad_logits_message(logits, bad, "logits"))
    if not kept.any():
        raise ValueError(
            f"labels holds a masked class in every row that counts (row "
            f"{int(np.argmax(masked))}: its logit is -inf); wanted a row whose class "
            "has a probability above zero"
        )
    return (None if kept.all() else kept), n_masked


def masked_message(n_masked: int, n_rows: int) -> str:
    """Say that rows are left out because the classifier cannot predict their class."""
    return (
        f"{n_masked} of {n_rows} rows are left out of the calibration: the classifier "
        "gives their class probability zero (it was not fitted on it, or it is masked)"
    )


def finite_mean(losses: np.ndarray, weights: Any = None) -> tuple[float, int]:
    """Return the mean of the finite losses, and how many are infinite.

    The log loss of a class with probability zero is infinite and would hide all other
    rows; it is left out and counted.
    """
    finite = np.isfinite(losses)
    n_infinite = len(losses) - int(finite.sum())
    if n_infinite == len(losses):
        return float("inf"), n_infinite
    if n_infinite:
        losses = losses[finite]
        weights = None if weights is None else weights[finite]
    return float(np.average(losses, weights=weights)), n_infinite


def infinite_loss_message(n_masked: int, n_rows: int) -> str:
    """Return the sentence that counts the rows a mean log loss leaves out."""
    return (
        f"the true class of {n_masked} of {n_rows} rows has probability zero: their "
        "log loss is infinite and left out of the mean"
    )


def proportion_error(mean: Any, count: Any) -> np.ndarray:
    """Standard error of proportions, never zero; NaN where the count is zero.

    Computed with one success and one failure added, so that a group whose answers are
    all right does not look certain.
    """
    count = np.where(np.asarray(count) > 0, count, np.nan)
    smoothed = (np.asarray(mean) * count + 1) / (count + 2)
    return np.sqrt(smoothed * (1 - smoothed) / (count + 2))
