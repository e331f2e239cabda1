"""The density ratio w = dP_target/dP_calibration at the calibration rows.

A discriminator u(h) = P(target | h) trained on n_C calibration and n_T target rows
gives w(h) = (n_C/n_T) · u/(1 - u). In many dimensions it can separate the two sets
by memory alone; so it works on few components, is regularised, and never judges a
row it was trained on.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from coolhead.numerics.single_thread import one_blas_thread
from coolhead.shift.compression import compress
from coolhead.shift.inputs import feature_rows
from coolhead.shift.published import published_ratio
from coolhead.shift.ulsif import least_squares_ratio
from coolhead.shift.weights import effective_sample_size, weight_variance

ESTIMATORS = ("discriminator", "ulsif", "published")
SEPARATED_AUROC = 0.99
FEW_SAMPLES = 30
MISSED_AUROC = 0.05


@dataclass(frozen=True)
class DensityRatio:
    """Importance weights and how far they can be trusted.

    Attributes
    ----------
    weights : (n,) at least 0, with mean one; as they are from "published".
    raw_mean : mean of the weights before they were scaled to one; far from one it
        says that the supports differ or that the discriminator is off.
    variance : Var(w); the exponentiated Rényi divergence is `divergence` = 1 + Var(w).
    effective_sample_size : (Σw)²/Σw².
    auroc : of the discriminator on rows it had not seen. 0.5: no shift visible.
    share_clipped : share of the weights that were cut at the limit.
    explained_auroc : how well a shift with exactly these weights could be told from
        none. No discriminator beats the true ratio, so below `auroc` the weights miss
        a part of the shift, as kernels do in many dimensions.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> ratio = ch.shift.density_ratio(data.features[:300], data.features[300:])
    >>> ratio.weights.shape, round(float(ratio.weights.mean()), 6), ratio.auroc > 0.9
    ((300,), 1.0, True)
    """

    weights: np.ndarray
    raw_mean: float
    variance: float
    effective_sample_size: float
    auroc: float
    share_clipped: float
    explained_auroc: float

    @property
    def divergence(self) -> float:
        """d₂(P_T‖P_C) = 1 + Var(w)."""
        return 1.0 + self.variance

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the weights deserve no trust; empty when nothing speaks against them."""
        reasons = []
        if self.auroc > SEPARATED_AUROC:
            reasons.append(
                f"the discriminator separates calibration and target (AUROC "
                f"{self.auroc:.3f} > {SEPARATED_AUROC})"
            )
        if self.effective_sample_size < FEW_SAMPLES:
            reasons.append(
                f"{self.effective_sample_size:.1f} effective samples, fewer than "
                f"{FEW_SAMPLES}"
            )
        if self.explained_auroc < self.auroc - MISSED_AUROC:
            reasons.append(
                f"the weights explain an AUROC of {self.explained_auroc:.3f}, a "
                f"discriminator reaches {self.auroc:.3f}: they miss part of the shift"
            )
        return tuple(reasons)

    @property
    def unreliable(self) -> bool:
        """Whether any of the `reasons` holds."""
        return bool(self.reasons)


@one_blas_thread()
def density_ratio(
    features: Any,
    target_features: Any,
    *,
    reference_features: Any = None,
    estimator: str = "discriminator",
    max_weight: float = 50.0,
    n_components: int = 50,
    penalty: float = 1.0,
    n_folds: int = 5,
    random_state: int = 0,
) -> DensityRatio:
    """Estimate dP_target/dP_calibration at every row of `features`.

    Parameters
    ----------
    features : (n, d) calibration rows, where the ratio is wanted.
    target_features : (m, d) unlabelled target rows.
    reference_features : (r, d) further rows of the calibration distribution. When
        given, the discriminator learns from these instead, and `features` are new to
        it; otherwise the ratio is cross-fitted on `features` themselves.
    estimator : "discriminator"; "ulsif" for kernel least squares, which fails in
        more than a few dimensions and then says so in `reasons`; "published" for the
        weights of TransCal's and CPCS's code: not compressed, not cross-fitted (give
        `reference_features`), neither cut nor scaled.
    max_weight : weights are cut here before they are scaled to mean one.
    n_components : number of principal components the estimator sees.
    penalty : strength of the L2 penalty of the discriminator.
    n_folds : parts of the cross-fit.
    random_state : seed of the folds, of the components and of uLSIF's kernels.

    Returns
    -------
    DensityRatio

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> ratio = ch.shift.density_ratio(data.features[:300], data.features[300:])
    >>> ratio.auroc > 0.9, ratio.effective_sample_size < 100    # a large shift
    (True, True)
    """
    if estimator not in ESTIMATORS:
        raise ValueError(
            f"estimator is {estimator!r}; wanted one of {', '.join(ESTIMATORS)}"
        )
    given = _checked(features, target_features, reference_features)
    if len(given[0]) == 1 and len(given) == 2:
        # The weights of a single row have mean one, whatever the ratio.
        return summarise_weights(np.ones(1), max_weight=max_weight)
    own, target, *reference = compress(given, n_components, random_state)
    known = reference[0] if reference else own
    score, auroc = _log_odds(own, known, target, penalty, n_folds, random_state)
    if estimator == "published":
        source = given[-1] if reference else given[0]
        raw = published_ratio(given[0], source, given[1], random_state=random_state)
        return _described(raw, raw, auroc)
    if estimator == "ulsif":
        raw = least_squares_ratio(own, known, target, random_state=random_state)
    else:
        # A weight beyond any limit would overflow; it is cut below anyway.
        raw = np.exp(np.minimum(score, 700.0))
    return summarise_weights(raw, max_weight=max_weight, auroc=auroc)


def summarise_weights(
    weights: np.ndarray, *, max_weight: float = 50.0, auroc: float = float("nan")
) -> DensityRatio:
    """Clip raw weights, scale them to mean one, and describe them.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import summarise_weights
    >>> described = summarise_weights(np.array([1.0, 3.0]))
    >>> described.weights, described.variance
    (array([0.5, 1.5]), 0.25)
    """
    if not max_weight > 0:
        raise ValueError(f"max_weight is {max_weight}; wanted a number > 0")
    clipped = np.minimum(weights, max_weight)
    if not clipped.sum() > 0:
        # No calibration row resembles the target: all alike is all that can be said.
        clipped = np.ones_like(clipped)
    share = float(np.mean(weights > max_weight))
    return _described(clipped / clipped.mean(), clipped, auroc, share)


def explained_auroc(weights: np.ndarray) -> float:
    """AUROC of the weights themselves between their rows and the weighted rows.

    The chance that a row drawn by weight has a larger weight than a row drawn evenly.
    """
    _, place, count = np.unique(weights, return_inverse=True, return_counts=True)
    below = np.cumsum(count) - count / 2
    return float(np.average(below[place], weights=weights) / len(weights))


def _described(
    weights: np.ndarray, raw: np.ndarray, auroc: float, share_clipped: float = 0.0
) -> DensityRatio:
    return DensityRatio(
        weights=weights,
        raw_mean=float(raw.mean()),
        variance=weight_variance(raw),
        effective_sample_size=effective_sample_size(raw),
        auroc=auroc,
        share_clipped=share_clipped,
        explained_auroc=explained_auroc(raw),
    )


def _checked(features: Any, target: Any, reference: Any) -> list[np.ndarray]:
    own = feature_rows(features, "features")
    width = own.shape[1]
    given = [own, feature_rows(target, "target_features", width)]
    if reference is not None:
        given.append(feature_rows(reference, "reference_features", width))
    return given


def _log_odds(
    own: np.ndarray,
    known: np.ndarray,
    target: np.ndarray,
    penalty: float,
    n_folds: int,
    random_state: int,
) -> tuple[np.ndarray, float]:
    """Return log w at the calibration rows, and the discriminator's AUROC.

    The log-odds are recalibrated (Platt) on rows the discriminator had not seen, and
    shifted by log(n_C/n_T), so that their exponential is a ratio of densities.
    """
    rows = np.concatenate([known, target])
    is_target = np.r_[np.zeros(len(known)), np.ones(len(target))]
    n_folds = min(n_folds, len(known), len(target))
    if n_folds < 2:
        raise ValueError(
            f"found {len(known)} calibration and {len(target)} target rows; the "
            "density ratio needs at least two of each"
        )
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    scores = np.empty(len(rows))
    for train, test in folds.split(rows, is_target):
        model = _discriminator(penalty).fit(rows[train], is_target[train])
        scores[test] = model.decision_function(rows[test])
    auroc = float(roc_auc_score(is_target, scores))
    platt = _discriminator(1.0).fit(scores[:, None], is_target)
    prior = np.log(len(known)) - np.log(len(target))
    if known is own:
        own_scores = scores[: len(own)]
    else:
        model = _discriminator(penalty).fit(rows, is_target)
        own_scores = model.decision_function(own)
    return platt.decision_function(own_scores[:, None]) + prior, auroc


def _discriminator(penalty: float) -> LogisticRegression:
    return LogisticRegression(C=1 / penalty, max_iter=1000)
