"""Paired bootstrap: many methods, the same resampled rows, basic intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coolhead.metrics.bins import Binning, bin_index
from coolhead.metrics.calibration_error import folded_normal_mean
from coolhead.metrics.draws import Generator, sums_of_draws
from coolhead.metrics.intervals import Interval, check_count, check_level
from coolhead.metrics.vectors import check_rows, correctness_and_confidence

# A gap below this many standard errors may as well be none.
UNCLEAR = 2.0


@dataclass(frozen=True)
class PairedBootstrap:
    """Intervals of several methods' scores and of their differences to a baseline.

    Attributes
    ----------
    estimates : name -> Interval of the score
    differences : name -> Interval of score(method) - score(baseline)
    p_values : name -> two-sided p-value of no difference, agreeing with the interval
    values : name -> (n_draws,) score on every resample
    baseline : name of the baseline, or None: then there are no differences
    level : confidence level
    allowance : name -> how far noise alone may have raised the score, see
        `paired_bootstrap`

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import paired_bootstrap
    >>> right, sure = np.arange(200) % 4 > 0, np.full(200, 0.95)
    >>> said = {"before": sure, "after": sure - 0.2}
    >>> result = paired_bootstrap(right, said, baseline="before")
    >>> round(result.estimates["before"].estimate, 2), result.p_values["after"] < 0.01
    (0.2, True)
    """

    estimates: dict[str, Interval]
    differences: dict[str, Interval]
    p_values: dict[str, float]
    values: dict[str, np.ndarray]
    baseline: str | None
    level: float
    allowance: dict[str, float]

    def against(self, baseline: str) -> "PairedBootstrap":
        """The same resamples, compared with another baseline.

        Examples
        --------
        >>> import numpy as np
        >>> from coolhead.metrics import paired_bootstrap
        >>> right, sure = np.arange(200) % 4 > 0, np.full(200, 0.95)
        >>> said = {"before": sure, "after": sure - 0.2}
        >>> paired_bootstrap(right, said).against("before").p_values["after"] < 0.01
        True
        """
        _check_names(self.values, baseline)
        differences, p_values = {}, {}
        for name in self.values:
            if name == baseline:
                continue
            change = self.estimates[name].estimate - self.estimates[baseline].estimate
            draws = self.values[name] - self.values[baseline]
            below, above = self.allowance[name], self.allowance[baseline]
            differences[name] = _basic(change, draws, self.level, below, above)
            p_values[name] = _p_value(change, draws - change, below, above)
        return replace(
            self, baseline=baseline, differences=differences, p_values=p_values
        )


def paired_bootstrap(
    labels: Any,
    probabilities: Mapping[str, Any],
    *,
    baseline: str | None = None,
    n_bins: int = 15,
    binning: Binning = "width",
    n_draws: int = 1000,
    level: float = 0.95,
    noise_allowance: bool = True,
    random_state: int = 0,
) -> PairedBootstrap:
    """Bootstrap the ECE of several methods with the same resamples for all.

    The limits are those of the basic bootstrap, 2 * estimate - percentile, which
    takes the upward bias of ECE off. Where bins' gaps are within noise of zero it
    takes off too little: the bias of |gap| is then larger than resampling shows. The
    noise allowance moves the limits outward by what would be missing if the bins
    with a gap under two standard errors were perfectly calibrated: a method's own
    ECE may be lower by that much, a difference lower by the method's and higher by
    the baseline's. For clearly miscalibrated methods it is zero.

    Parameters
    ----------
    labels : (n,) class indices; or correctness, when the probabilities are (n,).
        A mapping with the same names gives each method its own correctness.
    probabilities : name -> (n, k) probabilities or (n,) confidences
    baseline : name of the method to compare the others with
    n_bins, binning : as for `expected_calibration_error`; with "mass" the edges are
        those of the whole set
    n_draws : number of resamples, each of n rows with replacement
    level : confidence level
    noise_allowance : False for the plain basic limits
    random_state : seed

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0])
    >>> after = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> before = ch.calibrators.Identity().fit(data.logits, data.labels)
    >>> methods = {"before": before, "after": after}
    >>> said = {name: cal.predict_proba(data.logits) for name, cal in methods.items()}
    >>> result = ch.paired_bootstrap(data.labels, said, baseline="before")
    >>> result.differences["after"].high < 0    # an improvement beyond noise
    True
    """
    _check_names(probabilities, baseline)
    pairs = [
        correctness_and_confidence(_of(labels, name), probabilities[name])
        for name in probabilities
    ]
    _check_lengths([len(confidence) for _, confidence in pairs])
    index = np.stack([bin_index(c, n_bins, binning) for _, c in pairs], axis=1)
    gap = np.stack([correct - c for correct, c in pairs], axis=1)
    sums = _resampled_sums(index, gap, n_bins, n_draws, random_state)
    observed = _group_sums(index, gap, n_bins) / len(gap)
    variance = _group_sums(index, gap**2, n_bins) / len(gap) ** 2
    deviation = np.sqrt(np.maximum(variance - observed**2 / len(gap), 0))
    allowance = _missing_bias(observed, deviation).sum(axis=1) * noise_allowance
    return _compare(
        list(probabilities),
        np.abs(observed).sum(axis=1),
        np.abs(sums).sum(axis=2) / len(gap),
        allowance,
        baseline,
        level,
        lowest=0.0,
    )


def paired_bootstrap_mean(
    scores: Mapping[str, Any],
    *,
    baseline: str | None = None,
    n_draws: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
) -> PairedBootstrap:
    """Bootstrap the mean of a score per row (NLL, Brier, accuracy) of several methods.

    Parameters
    ----------
    scores : name -> (n,) one number per row
    baseline, n_draws, level, random_state : as for `paired_bootstrap`; equal seeds
        give the same resamples. The calibration gain over an uncalibrated baseline is
        minus the difference of the Brier scores.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import paired_bootstrap_mean
    >>> losses = np.linspace(0, 1, 100)
    >>> result = paired_bootstrap_mean({"a": losses, "b": losses - 0.1}, baseline="a")
    >>> round(result.differences["b"].estimate, 3)
    -0.1
    """
    _check_names(scores, baseline)
    columns = [check_rows(values, name) for name, values in scores.items()]
    _check_lengths([len(column) for column in columns])
    rows = np.stack(columns, axis=1)
    index = np.zeros(rows.shape, np.intp)
    sums = _resampled_sums(index, rows, 1, n_draws, random_state)
    none = np.zeros(rows.shape[1])
    means = rows.mean(axis=0)
    resampled = sums[:, :, 0] / len(rows)
    return _compare(list(scores), means, resampled, none, baseline, level, -np.inf)


def _resampled_sums(
    index: np.ndarray, values: np.ndarray, n_groups: int, n_draws: int, seed: int
) -> np.ndarray:
    """Group sums of every method on every resample, (n_draws, n_methods, n_groups)."""
    n_rows, n_methods = values.shape

    def count(draws: slice, generator: Generator, counts: np.ndarray) -> None:
        # Several short draws in one step, as long as their counts stay in the cache.
        step = max(1, 2**16 // n_rows)
        for start in range(0, len(counts), step):
            some = counts[start : start + step]
            drawn = generator.integers(n_rows, size=some.shape)
            drawn += np.arange(len(some))[:, None] * n_rows
            some[:] = np.bincount(drawn.ravel(), None, some.size).reshape(some.shape)

    columns = index + np.arange(n_methods) * n_groups
    n_draws = check_count(n_draws, "n_draws")
    sums = sums_of_draws(columns, values, n_methods * n_groups, n_draws, count, seed)
    return sums.reshape(n_draws, n_methods, n_groups)


def _group_sums(index: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    columns = zip(index.T, values.T, strict=True)
    return np.stack([np.bincount(i, v, n_groups) for i, v in columns])


def _missing_bias(gap: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Bias of |gap| if the truth were zero, less what the basic bootstrap removes."""
    removed = folded_normal_mean(gap, deviation) - np.abs(gap)
    at_zero = deviation * np.sqrt(2 / np.pi)
    return np.where(np.abs(gap) < UNCLEAR * deviation, at_zero - removed, 0.0)


def _compare(
    names: list[str],
    estimate: np.ndarray,
    values: np.ndarray,
    allowance: np.ndarray,
    baseline: str | None,
    level: float,
    lowest: float,
) -> PairedBootstrap:
    check_level(level)
    estimates = {}
    for k, name in enumerate(names):
        own = _basic(estimate[k], values[:, k], level, allowance[k], 0.0)
        low, high = max(own.low, lowest), max(own.high, lowest)
        estimates[name] = Interval(own.estimate, low, high)
    by_name = dict(zip(names, values.T, strict=True))
    allowed = dict(zip(names, map(float, allowance), strict=True))
    alone = PairedBootstrap(estimates, {}, {}, by_name, None, level, allowed)
    return alone if baseline is None else alone.against(baseline)


def _basic(
    estimate: float, values: np.ndarray, level: float, below: float, above: float
) -> Interval:
    lower, upper = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    low = float(2 * estimate - upper - below)
    return Interval(float(estimate), low, float(2 * estimate - lower + above))


def _p_value(change: float, noise: np.ndarray, below: float, above: float) -> float:
    """Twice the share of resampling noise that reaches from zero to the change."""
    lower = (1 + np.count_nonzero(noise <= change + above)) / (1 + len(noise))
    higher = (1 + np.count_nonzero(noise >= change - below)) / (1 + len(noise))
    return min(1.0, 2 * float(min(lower, higher)))


def _of(labels: Any, name: str) -> Any:
    if not isinstance(labels, Mapping):
        return labels
    if name not in labels:
        raise ValueError(f"labels has no entry for {name!r}; wanted one per method")
    return labels[name]


def _check_names(methods: Mapping[str, Any], baseline: str | None) -> None:
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(
            f"methods is {type(methods).__name__}; wanted a mapping name -> array"
        )
    if baseline is not None and baseline not in methods:
        raise ValueError(
            f"baseline is {baseline!r}; wanted one of {', '.join(map(str, methods))}"
        )


def _check_lengths(lengths: list[int]) -> None:
    if len(set(lengths)) > 1:
        raise ValueError(
            f"methods have {sorted(set(lengths))} rows; wanted the same rows for all"
        )
