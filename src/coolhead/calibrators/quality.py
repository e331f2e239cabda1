"""Did the fit help on the very rows it was made on?"""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.softmax import log_loss_rows
from coolhead.numerics.temperature import Status

# Rounding in float32 sums moves a mean loss by less than this.
ROUNDING = 1e-6


class FitQuality(NamedTuple):
    """Mean loss on the fit set, with and without calibration, and the status."""

    status: str
    nll: float
    nll_uncalibrated: float


def judge_temperatures(
    logits: np.ndarray,
    labels: np.ndarray,
    temperature: float | np.ndarray,
    weights: np.ndarray | None,
    status: str,
) -> FitQuality:
    """Compare softmax(z/T) with softmax(z) on labelled rows."""
    losses = log_loss_rows(logits, labels, temperature)
    return judge_losses(losses, logits, labels, weights, status)


def judge_losses(
    losses: np.ndarray,
    logits: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    status: str,
) -> FitQuality:
    """Keep `status`, unless the mean of the losses (n,) rose above uncalibrated.

    A method that minimises something else than the negative log-likelihood may raise
    it; then the status becomes `Status.NLL_ABOVE_UNCALIBRATED`.
    """
    nll = float(np.average(losses, weights=weights))
    before = log_loss_rows(logits, labels, 1.0)
    uncalibrated = float(np.average(before, weights=weights))
    if nll > uncalibrated + ROUNDING * (1 + abs(uncalibrated)):
        status = Status.NLL_ABOVE_UNCALIBRATED
    return FitQuality(str(status), nll, uncalibrated)
