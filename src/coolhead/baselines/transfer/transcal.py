"""TransCal: match the mean confidence on the target to its estimated accuracy.

The target's error is estimated from weighted source errors, with a power of the
weights against their variance and two control variates. Power and temperature are
one equation in two unknowns: the published optimiser therefore returns a function of
its start. The "root" solver fixes the power and solves for the temperature.
"""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.optimize import approx_fprime, brentq, minimize

from coolhead.baselines.transfer.base import TransferCalibrator
from coolhead.baselines.transfer.error_estimate import (
    KnownErrors,
    estimated_accuracy,
    estimated_error,
    known_errors,
)
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import parameters
from coolhead.calibrators.quality import remember_quality
from coolhead.numerics.checks import check_choice
from coolhead.numerics.masks import typical_spread
from coolhead.numerics.slopes import temperature_slopes
from coolhead.numerics.softmax import confidence
from coolhead.numerics.solution import Status
from coolhead.numerics.solving import BOUND

PUBLISHED_START = (2.0, 0.5)


@parameters
class TransCal(TransferCalibrator):
    """One temperature whose mean target confidence equals the estimated accuracy.

    Parameters
    ----------
    solver : "published" minimises over temperature >= 1 and weight power in [0, 1]
        from the published start (2, 0.5); "root" keeps `weight_power` and finds the
        one temperature, below or above 1, that fits.
    weight_power : λ of the "root" solver, in [0, 1].
    control_variates : whether the error estimate uses them.
    min_domain_share, estimator, max_weight, random_state : as in
        `TransferCalibrator`.

    Attributes
    ----------
    temperature_ : float
    weight_power_ : λ at the end.
    target_accuracy_ : estimated accuracy on the target, cut to [0, 1].
    mismatch_ : |mean target confidence - estimated accuracy| that is left.
    Others as `TransferCalibrator`.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> seen, target = data.rows(slice(0, None, 2)), data.rows(slice(301, None, 2))
    >>> cal = ch.baselines.TransCal().fit(
    ...     seen.logits,
    ...     seen.labels,
    ...     features=seen.features,
    ...     target_features=target.features,
    ...     target_logits=target.logits,
    ... )
    >>> cal.temperature_ >= 1, 0 <= cal.target_accuracy_ <= 1
    (True, True)
    """

    reads_target_logits = True

    _: KW_ONLY
    solver: str = "published"
    weight_power: float = 0.5
    control_variates: bool = True

    def _learn(self, data: CalibrationData) -> None:
        check_choice(self.solver, "solver", "published", "root")
        if not 0 <= self.weight_power <= 1:
            raise ValueError(
                f"weight_power is {self.weight_power}; wanted a number in [0, 1]"
            )
        target_logits = None if data.target is None else data.target.logits
        if target_logits is None:
            raise ValueError(
                "target_logits is missing: TransCal needs unlabelled target data; "
                f"wanted an array (m, {self.n_classes_})"
            )
        weights = self._weigh(data)
        known = known_errors(data.logits, data.labels, weights, self.control_variates)
        if self.solver == "published":
            fitted = published_solution(target_logits, known)
        else:
            fitted = root_solution(target_logits, known, self.weight_power)
        self.temperature_, self.weight_power_, status = fitted
        self.target_accuracy_ = estimated_accuracy(known, self.weight_power_)
        reached = mean_confidence(target_logits, self.temperature_)
        self.mismatch_ = abs(reached - self.target_accuracy_)
        remember_quality(self, data, self.temperature_, status)


def mean_confidence(logits: np.ndarray, temperature: float) -> float:
    """Mean of the largest probabilities; it falls as the temperature rises."""
    return float(confidence(logits, temperature)[0].mean(dtype=np.float64))


def confidence_slope(
    logits: np.ndarray, top: np.ndarray, temperature: float
) -> tuple[float, float]:
    """Mean confidence and its derivative by the temperature.

    The derivative is exact: differences of float32 confidences would be noise.
    """
    losses, slopes = temperature_slopes(logits, top, np.full(len(top), temperature))
    largest = np.exp(-losses)
    return float(largest.mean()), float(-np.mean(largest * slopes) / temperature)


def published_solution(
    target_logits: np.ndarray, known: KnownErrors
) -> tuple[float, float, str]:
    """Return (T, λ, status) by SLSQP from (2, 0.5) with T >= 1 and 0 <= λ <= 1."""

    spread = typical_spread(target_logits)
    if spread <= 0:
        return 1.0, PUBLISHED_START[1], Status.CONSTANT_LOGITS
    top = target_logits.argmax(axis=1)

    def mismatch(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        temperature, power = parameters
        reached, slope = confidence_slope(target_logits, top, temperature)
        gap = reached - 1 + estimated_error(known, power)
        by_power: Any = approx_fprime(
            [power], lambda value: estimated_error(known, value[0])
        )
        return abs(gap), np.sign(gap) * np.array([slope, by_power[0]])

    found = minimize(
        mismatch,
        PUBLISHED_START,
        jac=True,
        method="SLSQP",
        bounds=((1.0, None), (0.0, 1.0)),
    )
    temperature, power = float(found.x[0]), float(found.x[1])
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        return 1.0, PUBLISHED_START[1], Status.FALLBACK
    power = float(np.clip(power, 0.0, 1.0))
    if temperature <= 1 + 1e-9:
        return 1.0, power, Status.AT_BOUND
    if temperature > BOUND * spread:
        # Even an almost uniform prediction is surer than the estimated accuracy.
        return temperature, power, Status.AT_BOUND
    return temperature, power, Status.CONVERGED


def root_solution(
    target_logits: np.ndarray, known: KnownErrors, power: float
) -> tuple[float, float, str]:
    """Return (T, λ, status) with λ given and T by root finding."""
    wanted = estimated_accuracy(known, power)
    spread = typical_spread(target_logits)
    if spread <= 0:
        return 1.0, power, Status.CONSTANT_LOGITS
    low, high = np.log(spread) - np.log(BOUND), np.log(spread) + np.log(BOUND)

    def excess(position: float) -> float:
        return mean_confidence(target_logits, float(np.exp(position))) - wanted

    if excess(low) <= 0:
        return float(np.exp(low)), power, Status.AT_BOUND
    if excess(high) >= 0:
        return float(np.exp(high)), power, Status.AT_BOUND
    root: Any = brentq(excess, low, high, xtol=1e-9)
    return float(np.exp(root)), power, Status.CONVERGED
