"""Did the fit help on the very rows it was made on?"""

from typing import Any

import numpy as np

from coolhead.calibrators.data import CalibrationData
from coolhead.numerics.softmax import log_loss_rows
from coolhead.numerics.solution import Solution, Status

# Rounding in float32 sums moves a mean loss by less than this.
ROUNDING = 1e-6


def remember_quality(
    calibrator: Any,
    data: CalibrationData,
    temperature: float | np.ndarray,
    status: str,
) -> None:
    """Store status and losses of a temperature fitted on these rows."""
    losses = log_loss_rows(data.logits, data.labels, temperature)
    remember_losses(calibrator, losses, data, status)


def remember_beyond(
    calibrator: Any, data: CalibrationData, temperature: np.ndarray, common: Solution
) -> None:
    """Store the quality of T(x), (n,), whose fit started at the common temperature."""
    remember_quality(calibrator, data, temperature, Status.CONVERGED)
    if calibrator.status_ == Status.CONVERGED != common.status[0]:
        calibrator.status_ = status_beyond(common, temperature, calibrator.nll_)


def remember_losses(
    calibrator: Any, losses: np.ndarray, data: Any, status: str
) -> None:
    """Store `status`, unless the mean of the losses (n,) rose above uncalibrated.

    A method that minimises something else than the negative log-likelihood may raise
    it; then the status becomes `Status.NLL_ABOVE_UNCALIBRATED`.
    """
    before = log_loss_rows(data.logits, data.labels, 1.0)
    nll, uncalibrated = (
        float(np.average(rows, weights=data.weights)) for rows in (losses, before)
    )
    above = is_above(nll, uncalibrated)
    calibrator.nll_, calibrator.nll_uncalibrated_ = nll, uncalibrated
    calibrator.status_ = str(Status.NLL_ABOVE_UNCALIBRATED if above else status)


def is_above(nll: float, reference: float) -> bool:
    """Whether a mean loss exceeds another by more than rounding."""
    return nll > reference + ROUNDING * (1 + abs(reference))


def status_beyond(common: Solution, temperature: np.ndarray, nll: float) -> str:
    """Status of T(x), (n,), with mean loss `nll`, from a start at one common T.

    Where one temperature for all rows has no minimum, T(x) may have one: but not where
    all rows are right, not without a smaller loss, and not if every row went on to the
    same side, as far as the search let it.
    """
    status, start = str(common.status[0]), float(common.temperature[0])
    hopeless = status in (Status.CONSTANT_LOGITS, Status.PERFECTLY_SEPARATED)
    better = is_above(float(common.nll[0]), nll)
    one_sided = temperature.min() >= start or temperature.max() <= start
    if hopeless or one_sided or not better:
        return status
    return str(Status.CONVERGED)
