"""Estimates with a lower and an upper limit."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A number and its limits.

    Examples
    --------
    >>> from coolhead.metrics import Interval
    >>> Interval(0.05, 0.03, 0.08).high
    0.08
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class SubsampledScore:
    """A score on all rows and on many subsamples of them.

    The spread tells how much the score moves between subsamples of this one finite
    set; it shrinks to zero as they grow to the whole set. It is not a confidence
    interval for the domain the rows come from: see `paired_bootstrap` for that.

    Attributes
    ----------
    estimate : the score on all rows
    values : (n_draws,) the score on each subsample
    level : share of the values between `low` and `high`

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import SubsampledScore
    >>> score = SubsampledScore(0.05, np.linspace(0.03, 0.07, 101))
    >>> round(score.low, 3), round(score.high, 3)
    (0.031, 0.069)
    """

    estimate: float
    values: np.ndarray
    level: float = 0.95

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def standard_deviation(self) -> float:
        # Measured from one of the values, so that equal values give exactly zero.
        return float((self.values - self.values[0]).std())

    @property
    def low(self) -> float:
        """Lower percentile, 2.5 % at the default level."""
        return float(np.quantile(self.values, (1 - self.level) / 2))

    @property
    def high(self) -> float:
        """Upper percentile, 97.5 % at the default level."""
        return float(np.quantile(self.values, (1 + self.level) / 2))


def check_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; wanted a share between 0 and 1, e.g. 0.95")
    return level


def check_count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} is {value!r}; wanted an integer >= 1")
    return int(value)
