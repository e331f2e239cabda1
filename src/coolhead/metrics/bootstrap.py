"""Paired bootstrap: many methods, the same resampled rows, basic intervals."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from coolhead.display import Summarised, Summary
from coolhead.metrics.bins import (
    N_BINS,
    Binning,
    Interval,
    bin_index,
    check_count,
    check_level,
    check_rows,
    correctness_and_confidence,
    folded_normal_mean,
)
from coolhead.metrics.resampling import Generator, sums_of_draws
from coolhead.numerics.checks import check_choice

# A gap below this many standard errors may as well be none.
UNCLEAR = 2.0


@dataclass(frozen=True, repr=False)
class PairedBootstrap(Summarised):
    """Intervals of several methods' scores and of their differences to a baseline.

    Attributes
    ----------
    estimates : dict of str to Interval
        Score of each method.
    differences : dict of str to Interval
        Score of each method minus that of the baseline.
    p_values : dict of str to float
        Two-sided p-value of no difference, agreeing with the interval.
    values : dict of str to ndarray of shape (n_draws,)
        Score on every resample.
    baseline : str or None
        Name of the baseline; without one there are no differences.
    level : float
        Confidence level.
    allowance : dict of str to float
        How far noise alone may have raised the score, see `paired_bootstrap`.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import paired_bootstrap
    >>> right, before = np.arange(200) % 4 > 0, np.full(200, 0.95)
    >>> confidence = {"before": before, "after": before - 0.2}
    >>> result = paired_bootstrap(right, confidence, baseline="before")
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

    def _summary(self) -> Summary:
        n_draws = len(next(iter(self.values.values())))
        limits = f"bias-corrected {self.level:.0%} limits"
        title = f"PairedBootstrap: {n_draws:,} resamples, {limits}"
        header = ("", "score", f"less {self.baseline}", "p")
        header = header[:2] if self.baseline is None else header
        rows = [
            (
                name,
                str(found),
                str(self.differences.get(name, "")),
                f"{self.p_values[name]:.3g}" if name in self.p_values else "",
            )[: len(header)]
            for name, found in self.estimates.items()
        ]
        return Summary(title, header, rows)

    def against(self, baseline: str) -> "PairedBootstrap":
        """Compare the same resamples with another baseline.

        Parameters
        ----------
        baseline : str
            Name of the method to compare the others with.

        Returns
        -------
        PairedBootstrap

        Examples
        --------
        >>> import numpy as np
        >>> from coolhead.metrics import paired_bootstrap
        >>> right, before = np.arange(200) % 4 > 0, np.full(200, 0.95)
        >>> confidence = {"before": before, "after": before - 0.2}
        >>> found = paired_bootstrap(right, confidence).against("before")
        >>> found.p_values["after"] < 0.01
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
    n_bins: int = N_BINS,
    binning: Binning = "width",
    n_draws: int = 1000,
    level: float = 0.95,
    noise_allowance: bool = True,
    random_state: int = 0,
    classes: Any = None,
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
    labels : array-like of shape (n_samples,) or mapping of str to array-like
        Classes; or correctness, where the probabilities are vectors. A mapping with
        the same names gives each method its own correctness.
    probabilities : mapping of str to array-like
        By name of the method, probabilities of shape (n_samples, n_classes) or
        confidences of shape (n_samples,).
    baseline : str, default=None
        Name of the method to compare the others with.
    n_bins : int, default=15
        Number of bins.
    binning : {"width", "mass"}, default="width"
        With "mass", the edges are those of the whole set.
    n_draws : int, default=1000
        Number of resamples, each of n_samples rows with replacement.
    level : float, default=0.95
        Confidence level.
    noise_allowance : bool, default=True
        False for the plain basic limits.
    random_state : int, default=0
        Seed of the resamples.
    classes : sequence, default=None
        Names of the classes in the order of the columns.

    Returns
    -------
    PairedBootstrap

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0])
    >>> after = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> before = ch.calibrators.Identity().fit(data.logits, data.labels)
    >>> methods = {"before": before, "after": after}
    >>> p = {name: cal.predict_proba(data.logits) for name, cal in methods.items()}
    >>> result = ch.paired_bootstrap(data.labels, p, baseline="before")
    >>> result.differences["after"].high < 0    # an improvement beyond noise
    True
    """
    _check_names(probabilities, baseline)
    pairs = [
        correctness_and_confidence(_of(labels, name), probabilities[name], classes)
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
    scores : mapping of str to array-like of shape (n_samples,)
        By name of the method, one number per row.
    baseline : str, default=None
        Name of the method to compare the others with. The calibration gain over an
        uncalibrated baseline is minus the difference of the Brier scores.
    n_draws : int, default=1000
        Number of resamples, each of n_samples rows with replacement.
    level : float, default=0.95
        Confidence level.
    random_state : int, default=0
        Equal seeds give the resamples of `paired_bootstrap`.

    Returns
    -------
    PairedBootstrap

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


SIGMA_LABELS = ("< -3", "-3 to -2", "-2 to 0", "0 to 2", "2 to 3", "> 3")


@dataclass(frozen=True)
class SigmaCounts:
    """How many splits a method improves by how many of its standard deviations.

    Attributes
    ----------
    counts : tuple of int
        Number of splits in each of `SIGMA_LABELS`, in units of sigma.
    reductions : ndarray of shape (n_splits,)
        (baseline - method) / sigma.
    selection : {"fixed method", "post-hoc best"}
        "post-hoc best": the best candidate of every split was picked by its test
        score, which no user could have done beforehand.

    Examples
    --------
    >>> from coolhead.metrics import sigma_counts
    >>> counts = sigma_counts([0.10, 0.12], [0.06, 0.13], [0.01, 0.01])
    >>> counts.reductions.round(1), counts.selection
    (array([ 4., -1.]), 'fixed method')
    """

    counts: tuple[int, ...]
    reductions: np.ndarray
    selection: Literal["fixed method", "post-hoc best"]


def improvement_ratio(ece: Any, source_ece: Any, target_ece: Any) -> float:
    """Share of the way from source-only to target-only calibration that was covered.

    Parameters
    ----------
    ece, source_ece, target_ece : float or array-like of shape (n_splits,)
        Arrays are averaged first: this is a ratio of averages, never an average of
        ratios.

    Returns
    -------
    float
        1 when as good as the oracle, 0 when no better than source-only. NaN with a
        RuntimeWarning where source-only is not worse than target-only.

    Examples
    --------
    >>> from coolhead.metrics import improvement_ratio
    >>> round(improvement_ratio(0.08, source_ece=0.12, target_ece=0.02), 2)
    0.4
    """
    given = {"ece": ece, "source_ece": source_ece, "target_ece": target_ece}
    rows = {name: check_rows(np.atleast_1d(v), name) for name, v in given.items()}
    sizes = {name: len(values) for name, values in rows.items()}
    if len(set(sizes.values()) - {1}) > 1:
        found = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"{found} values; wanted the same splits in all three")
    own, source, target = (values.mean() for values in rows.values())
    if source <= target:
        warnings.warn(
            f"improvement ratio undefined: source_ece {source:.4g} is not above "
            f"target_ece {target:.4g}, so there is nothing to improve",
            RuntimeWarning,
            stacklevel=2,
        )
        return float("nan")
    return float((source - own) / (source - target))


def pooled_sigma(means: Any, standard_deviations: Any) -> float:
    """Standard deviation of the draws of all splits put together.

    Parameters
    ----------
    means, standard_deviations : array-like of shape (n_splits,)
        Of equally many draws in every split.

    Returns
    -------
    float
        sqrt(mean of the variances + population variance of the means).

    Examples
    --------
    >>> from coolhead.metrics import pooled_sigma
    >>> pooled_sigma([3.0, 5.0], [0.0, 0.0])
    1.0
    """
    means, deviations = _same_length(
        means=means, standard_deviations=standard_deviations
    )
    return float(np.sqrt(np.mean(deviations**2) + np.var(means)))


def sigma_counts(baseline: Any, method: Any, sigma: Any) -> SigmaCounts:
    """Count splits by (baseline - method) / sigma.

    Parameters
    ----------
    baseline : array-like of shape (n_splits,)
        ECE of the baseline.
    method : array-like of shape (n_splits,) or (n_splits, n_candidates)
        ECE of one method; or of several candidates, of which the lowest is taken in
        every split and the result labelled "post-hoc best".
    sigma : array-like of the shape of `method`
        Standard deviations.

    Returns
    -------
    SigmaCounts

    Examples
    --------
    >>> from coolhead.metrics import SIGMA_LABELS, sigma_counts
    >>> counts = sigma_counts([0.10, 0.12], [0.06, 0.13], [0.01, 0.01])
    >>> dict(zip(SIGMA_LABELS, counts.counts))
    {'< -3': 0, '-3 to -2': 0, '-2 to 0': 1, '0 to 2': 0, '2 to 3': 0, '> 3': 1}
    """
    method, sigma = np.asarray(method, float), np.asarray(sigma, float)
    if method.shape != sigma.shape or method.ndim not in (1, 2):
        raise ValueError(
            f"sigma has shape {sigma.shape}, method {method.shape}; wanted the same, "
            "(n_splits,) or (n_splits, n_candidates)"
        )
    selection = "fixed method"
    if method.ndim == 2:
        selection = "post-hoc best"
        best = np.arange(len(method)), method.argmin(axis=1)
        method, sigma = method[best], sigma[best]
    baseline, method = _same_length(baseline=baseline, method=method)
    if not (sigma > 0).all():
        raise ValueError(f"sigma holds {sigma.min()}; wanted numbers > 0")
    reductions = (baseline - method) / sigma
    where = np.searchsorted([-3.0, -2.0, 0.0, 2.0, 3.0], reductions, side="right")
    counts = np.bincount(where, minlength=len(SIGMA_LABELS))
    return SigmaCounts(tuple(counts.tolist()), reductions, selection)


def is_significant(
    scores: PairedBootstrap | Mapping[str, Any],
    *,
    rule: Literal["paired", "non_overlap"] = "paired",
    baseline: str | Sequence[str] | None = None,
    better: Literal["lower", "higher"] = "lower",
    alpha: float = 0.05,
) -> dict[str, bool]:
    """Which methods are significantly better than the baseline.

    Parameters
    ----------
    scores : PairedBootstrap or mapping of str to Interval
        For "non_overlap", the values of a mapping may be anything with `low` and
        `high`, such as a SubsampledScore.
    rule : {"paired", "non_overlap"}, default="paired"
        "paired": the bootstrapped difference excludes zero, with Holm's correction
        over the methods. "non_overlap": the method's whole interval lies beyond every
        baseline's, the rule of the paper's asterisks; conservative for paired data.
    baseline : str or sequence of str, default=None
        For "non_overlap" on a mapping.
    better : {"lower", "higher"}, default="lower"
        Direction of improvement: "lower" for ECE, "higher" for a gain.
    alpha : float, default=0.05
        Family-wise error of the "paired" rule; the limits of the intervals decide for
        "non_overlap".

    Returns
    -------
    dict of str to bool

    Examples
    --------
    >>> import coolhead as ch
    >>> import numpy as np
    >>> right = np.arange(200) % 4 > 0    # three times out of four
    >>> confidence = {"before": np.full(200, 0.95), "after": np.full(200, 0.75)}
    >>> ch.is_significant(ch.paired_bootstrap(right, confidence, baseline="before"))
    {'after': True}
    """
    check_choice(better, "better", "lower", "higher")
    check_choice(rule, "rule", "paired", "non_overlap")
    if rule == "paired":
        return _paired_rule(scores, better, alpha)
    if isinstance(scores, PairedBootstrap):
        baseline = scores.baseline if baseline is None else baseline
        scores = scores.estimates
    names = [baseline] if isinstance(baseline, str) else list(baseline or ())
    if not names or not set(names) <= set(scores):
        raise ValueError(
            f"baseline is {baseline!r}; wanted names among {', '.join(scores)}"
        )
    others = {name: own for name, own in scores.items() if name not in names}
    if better == "lower":
        limit = min(scores[name].low for name in names)
        return {name: bool(own.high < limit) for name, own in others.items()}
    limit = max(scores[name].high for name in names)
    return {name: bool(own.low > limit) for name, own in others.items()}


def holm(p_values: Mapping[str, float], alpha: float = 0.05) -> dict[str, bool]:
    """Reject hypotheses by Holm's step-down procedure.

    Parameters
    ----------
    p_values : mapping of str to float
        p-value of each comparison.
    alpha : float, default=0.05
        Family-wise error.

    Returns
    -------
    dict of str to bool
        Whether each hypothesis is rejected.

    Examples
    --------
    >>> from coolhead.metrics import holm
    >>> holm({"a": 0.001, "b": 0.03, "c": 0.04})
    {'a': True, 'b': False, 'c': False}
    """
    rejected = dict.fromkeys(p_values, False)
    for done, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        if p_values[name] > alpha / (len(p_values) - done):
            break
        rejected[name] = True
    return rejected


def draws_for_holm(n_methods: int, alpha: float = 0.05) -> int:
    """Bootstrap draws by which the smallest p-value, 2 / (draws + 1), can pass."""
    return int(np.ceil(2 * max(1, n_methods) / alpha))


def _paired_rule(scores: Any, better: str, alpha: float) -> dict[str, bool]:
    if not isinstance(scores, PairedBootstrap) or scores.baseline is None:
        raise ValueError(
            "scores has no paired differences; wanted paired_bootstrap(..., baseline=)"
        )
    n_draws, n_methods = len(scores.values[scores.baseline]), len(scores.p_values)
    wanted = draws_for_holm(n_methods, alpha)
    if n_draws < wanted:
        raise ValueError(
            f"n_draws is {n_draws}: no p-value can be below {2 / (n_draws + 1):.3g}, "
            f"but {n_methods} methods at alpha {alpha} need {alpha / n_methods:.3g}; "
            f"wanted n_draws >= {wanted}"
        )
    sign = 1 if better == "lower" else -1
    clear = holm(scores.p_values, alpha)
    return {
        name: clear[name] and sign * change.estimate < 0
        for name, change in scores.differences.items()
    }


def _same_length(**vectors: Any) -> list[np.ndarray]:
    arrays = [check_rows(values, name) for name, values in vectors.items()]
    if len({len(array) for array in arrays}) > 1:
        found = ", ".join(
            f"{name} has {len(array)} entries"
            for name, array in zip(vectors, arrays, strict=True)
        )
        raise ValueError(f"{found}; wanted one per split in each")
    return arrays
