"""Over many splits: improvement, pooled spread, significance."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from coolhead.metrics.bootstrap import PairedBootstrap
from coolhead.metrics.vectors import check_rows
from coolhead.numerics.checks import check_choice

SIGMA_LABELS = ("< -3", "-3 to -2", "-2 to 0", "0 to 2", "2 to 3", "> 3")


class HasLimits(Protocol):
    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


@dataclass(frozen=True)
class SigmaCounts:
    """How many splits a method improves by how many of its standard deviations.

    Attributes
    ----------
    counts : number of splits in each of `SIGMA_LABELS`, in units of sigma
    reductions : (n_splits,) (baseline - method) / sigma
    selection : "fixed method", or "post-hoc best": the best candidate of every split
        was picked by its test score, which no user could have done beforehand

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
    ece, source_ece, target_ece : numbers, or one number per split. Arrays are averaged
        first: this is a ratio of averages, never an average of ratios.

    Returns
    -------
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
    means, standard_deviations : (n_splits,) of equally many draws in every split

    Returns
    -------
    sqrt(mean of the variances + population variance of the means)

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
    baseline : (n_splits,) ECE of the baseline
    method : (n_splits,) ECE of one method; or (n_splits, n_candidates), of which the
        lowest is taken in every split and the result labelled "post-hoc best"
    sigma : standard deviations, of the same shape as `method`

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
    scores: PairedBootstrap | Mapping[str, HasLimits],
    *,
    rule: Literal["paired", "non_overlap"] = "paired",
    baseline: str | Sequence[str] | None = None,
    better: Literal["lower", "higher"] = "lower",
    alpha: float = 0.05,
) -> dict[str, bool]:
    """Which methods are significantly better than the baseline.

    Parameters
    ----------
    scores : a PairedBootstrap; or, for "non_overlap", name -> anything with `low` and
        `high`, such as an Interval or a SubsampledScore
    rule : "paired" (default): the bootstrapped difference excludes zero, with Holm's
        correction over the methods. "non_overlap": the method's whole interval
        lies beyond every baseline's, the rule of the paper's asterisks; conservative
        for paired data.
    baseline : name or names, for "non_overlap" on a mapping
    better : direction of improvement, "lower" for ECE, "higher" for a gain
    alpha : family-wise error of the "paired" rule; the limits of the intervals
        decide for "non_overlap"

    Examples
    --------
    >>> import coolhead as ch
    >>> import numpy as np
    >>> right = np.arange(200) % 4 > 0    # three times out of four
    >>> sure = {"before": np.full(200, 0.95), "after": np.full(200, 0.75)}
    >>> ch.is_significant(ch.paired_bootstrap(right, sure, baseline="before"))
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
    """Holm's step-down: which hypotheses fall at family-wise error `alpha`.

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
