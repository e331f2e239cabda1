"""What a fit of temperatures found, and how it ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np


class Status(StrEnum):
    """How a fit ended. Only `converged` is an interior minimum of the loss.

    `nll_above_uncalibrated` comes from methods that minimise something else than the
    negative log-likelihood, and raised it on the very rows they were fitted on.

    Examples
    --------
    >>> import coolhead as ch
    >>> ch.Status("at_bound") == "at_bound"
    True
    >>> ch.fit_temperature([[4.0, 0.0], [0.0, 4.0]], [0, 1]).status    # never wrong
    'perfectly_separated'
    """

    CONVERGED = "converged"
    AT_BOUND = "at_bound"
    PERFECTLY_SEPARATED = "perfectly_separated"
    WORSE_THAN_UNIFORM = "worse_than_uniform"
    CONSTANT_LOGITS = "constant_logits"
    TOO_FEW_SAMPLES = "too_few_samples"
    FALLBACK = "fallback"
    NLL_ABOVE_UNCALIBRATED = "nll_above_uncalibrated"


@dataclass(frozen=True)
class TemperatureFit:
    """Fitted temperatures; `temperature[i]`, `status[i]`, ... belong to `groups[i]`.

    Without groups every field is a scalar and `groups` is None.

    temperature : T > 0, what the logits are divided by.
    status : one of `Status`, as a string.
    nll : weighted mean negative log-likelihood at that temperature.
    n_samples : number of rows.
    log_temperature_se : standard error of log T; NaN where there is no minimum.
    """

    temperature: Any
    groups: np.ndarray | None
    status: Any
    nll: Any
    n_samples: Any
    log_temperature_se: Any


class Solution(NamedTuple):
    """Arrays of one entry per group."""

    temperature: np.ndarray
    status: np.ndarray
    nll: np.ndarray
    n_samples: np.ndarray
    log_temperature_se: np.ndarray

    def of(self, groups: np.ndarray) -> "Solution":
        """Of some of the groups."""
        return Solution(*(column[groups] for column in self))

    def middle(self) -> np.ndarray | None:
        """Where to look for the log temperature of all groups together, (1,)."""
        known = self.status == Status.CONVERGED
        if not known.any():
            return None
        logs, sizes = np.log(self.temperature[known]), self.n_samples[known]
        return np.array([np.average(logs, weights=sizes)])


def as_fit(solution: Solution, names: np.ndarray | None) -> TemperatureFit:
    """Arrays for named groups; scalars where all rows were one unnamed group."""
    if names is not None:
        return TemperatureFit(solution.temperature, names, *solution[1:])
    temperature, status, nll, n_samples, error = (column[0] for column in solution)
    return TemperatureFit(
        float(temperature), None, str(status), float(nll), int(n_samples), float(error)
    )
