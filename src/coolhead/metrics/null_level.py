"""The ECE that a perfectly calibrated classifier would show."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.bins import Binning, bin_index
from coolhead.metrics.vectors import check_confidence
from coolhead.numerics.checks import check_choice
from coolhead.numerics.probabilities import check_probabilities


def expected_calibration_error_null(
    probabilities: ArrayLike,
    *,
    n_bins: int = 15,
    binning: Binning = "width",
    size: int | None = None,
    method: Literal["normal", "simulation"] = "normal",
    n_draws: int = 1000,
    random_state: int = 0,
) -> float:
    """Expected ECE if every confidence were exactly right: ECE's noise level.

    Parameters
    ----------
    probabilities : (n, k) probabilities, or (n,) confidence of the predicted class
    n_bins, binning : as for `expected_calibration_error`
    size : rows of the evaluated sample, when ECE is taken on samples of fewer rows
        than `probabilities` has; all rows by default
    method : "normal" takes the number of right answers in a bin as normal, a closed
        form; "simulation" draws the right answers `n_draws` times
    n_draws, random_state : used by "simulation" only

    Returns
    -------
    Null level of ECE, in the unit of ECE. An ECE near it is no sign of miscalibration.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import expected_calibration_error_null
    >>> sure = np.full(100, 0.8)    # 100 rows: 3 points of ECE are noise
    >>> round(expected_calibration_error_null(sure), 3)
    0.032
    """
    confidence = _confidence(probabilities)
    size = len(confidence) if size is None else size
    if not 1 <= size <= len(confidence):
        raise ValueError(
            f"size is {size}; wanted 1..{len(confidence)}, the number of rows"
        )
    index = bin_index(confidence, n_bins, binning)
    check_choice(method, "method", "normal", "simulation")
    if method == "simulation":
        return _simulate(confidence, index, n_bins, size, n_draws, random_state)
    variance = np.bincount(index, confidence * (1 - confidence), n_bins)
    scale = np.sqrt(2 / (np.pi * size * len(confidence)))
    return float(np.sqrt(variance).sum() * scale)


def _confidence(probabilities: Any) -> np.ndarray:
    if np.ndim(probabilities) == 1:
        return check_confidence(probabilities)
    return check_confidence(np.max(check_probabilities(probabilities), axis=1))


def _simulate(
    confidence: np.ndarray,
    index: np.ndarray,
    n_bins: int,
    size: int,
    n_draws: int,
    random_state: int,
) -> float:
    generator = np.random.default_rng(random_state)
    total = 0.0
    for _ in range(n_draws):
        correct = generator.random(len(confidence)) < confidence
        gap = correct - confidence
        rows = slice(None)
        if size < len(confidence):
            rows = generator.choice(len(confidence), size, replace=False)
        total += np.abs(np.bincount(index[rows], gap[rows], n_bins)).sum()
    return total / (n_draws * size)
