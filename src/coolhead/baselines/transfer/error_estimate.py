"""The error on an unlabelled target, estimated from weighted labelled rows."""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.softmax import confidence
from coolhead.numerics.temperature import fit_temperature


class KnownErrors(NamedTuple):
    """Weights and errors (n,) of labelled rows, and their calibrated confidence."""

    weights: np.ndarray
    errors: np.ndarray
    source_confidence: float
    control_variates: bool


def known_errors(
    logits: np.ndarray, labels: np.ndarray, weights: np.ndarray, control_variates: bool
) -> KnownErrors:
    """Collect what the error estimate needs from labelled rows."""
    source = fit_temperature(logits, labels).temperature
    largest, predicted = confidence(logits, source)
    mean = float(largest.mean(dtype=np.float64))
    return KnownErrors(
        weights, (predicted != labels).astype(float), mean, control_variates
    )


def estimated_error(known: KnownErrors, power: float) -> float:
    """Error on the target from weighted errors with serial control variates.

    It may leave [0, 1]: E[w^λ] = 1 does not hold for λ < 1.
    """
    weights = known.weights**power
    weighted = weights * known.errors
    if not known.control_variates:
        return float(weighted.mean())
    right = 1 - known.errors
    first = _coefficient(weighted, weights)
    second = _coefficient(weighted + first * (weights - 1), right)
    return float(
        weighted.mean()
        + first * (weights.mean() - 1)
        + second * (right.mean() - known.source_confidence)
    )


def estimated_accuracy(known: KnownErrors, power: float) -> float:
    """1 - `estimated_error`, cut to [0, 1]."""
    return float(np.clip(1 - estimated_error(known, power), 0.0, 1.0))


def _coefficient(values: np.ndarray, control: np.ndarray) -> float:
    """-Cov(values, control)/Var(control), and 0 where the control does not vary."""
    if len(control) < 2:
        return 0.0
    covariance = np.cov(values, control)
    varies = covariance[1, 1] > 1e-12 * (1 + np.mean(control) ** 2)
    return float(-covariance[0, 1] / covariance[1, 1]) if varies else 0.0
