"""The importance weights of TransCal's and CPCS's released code."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

# A larger log-ratio says nothing more, and its square would overflow.
LARGEST_LOG_RATIO = 300.0


def published_ratio(
    rows: np.ndarray,
    calibration: np.ndarray,
    target: np.ndarray,
    *,
    random_state: int = 0,
) -> np.ndarray:
    """P(target | h) / P(calibration | h) at `rows`, (n,): neither cut nor scaled.

    The smaller set is filled up by drawing from it with replacement, then a logistic
    regression with the library's settings learns from features as they are. Draws
    and an unconverged fit are part of the published method.
    """
    rng = np.random.default_rng(random_state)
    size = max(len(calibration), len(target))
    known, new = (_filled(part, size, rng) for part in (calibration, target))
    model = LogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.concatenate([known, new]), np.repeat([0, 1], size))
    return np.exp(np.minimum(model.decision_function(rows), LARGEST_LOG_RATIO))


def _filled(part: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.integers(0, len(part), size - len(part))
    return np.concatenate([part, part[drawn]])
