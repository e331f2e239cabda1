"""Density ratios: importance weights under which known rows resemble a target."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd

from coolhead.numerics.blocks import one_blas_thread
from coolhead.shift.clusters import feature_rows

# A larger log-ratio says nothing more, and its square would overflow.
LARGEST_LOG_RATIO = 300.0


def published_ratio(
    rows: np.ndarray,
    calibration: np.ndarray,
    target: np.ndarray,
    *,
    random_state: int = 0,
) -> np.ndarray:
    """P(target | h) / P(calibration | h) at `rows`, (n,): neither cut nor scaled.

    The smaller set is filled up by drawing from it with replacement, then a logistic
    regression with the library's settings learns from features as they are. Draws
    and an unconverged fit are part of the published method.
    """
    rng = np.random.default_rng(random_state)
    size = max(len(calibration), len(target))
    known, new = (_filled(part, size, rng) for part in (calibration, target))
    model = LogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.concatenate([known, new]), np.repeat([0, 1], size))
    return np.exp(np.minimum(model.decision_function(rows), LARGEST_LOG_RATIO))


def _filled(part: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.integers(0, len(part), size - len(part))
    return np.concatenate([part, part[drawn]])


FITTED_ROWS = 2_500

# Columns up to which their products cost less than the iterations they save.
WIDE = 1_024


def compress(
    parts: list[np.ndarray], n_components: int, random_state: int
) -> list[np.ndarray]:
    """Standardise the parts together and keep their leading principal components.

    The components look at no label and at no domain, so a discriminator that is
    cross-fitted on them stays honest.

    Parameters
    ----------
    parts : finite arrays (n_i, d).
    n_components : at most this many columns are returned.
    random_state : seed of the randomised decomposition.

    Returns
    -------
    list of arrays (n_i, c) of float64 with columns of about unit scale.
    """
    rows = np.concatenate(parts).astype(_precision(parts), copy=False)
    rows = StandardScaler(copy=False).fit_transform(rows)
    n_components = min(n_components, *rows.shape)
    if n_components < rows.shape[1]:
        rows = rows @ _directions(rows, n_components, random_state)
    # Unit scale lets one penalty serve every component and every width.
    rows = StandardScaler().fit_transform(rows.astype(float))
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(rows, cuts)


def _directions(rows: np.ndarray, n_wanted: int, random_state: int) -> np.ndarray:
    """Leading principal directions of the rows, (d, n_wanted) or as many as there are.

    So many rows and four power iterations, instead of all rows and seven, move the
    density ratio by no more than another seed of its folds does.
    """
    some = rows[_spread(len(rows), FITTED_ROWS)]
    some = some - some.mean(axis=0)
    if some.shape[1] <= WIDE:
        # The same directions, for one product instead of two in every iteration.
        some = some.T @ some
    settings: dict[str, Any] = {"n_iter": 4}  # its type is declared as text
    found = randomized_svd(some, n_wanted, random_state=random_state, **settings)
    _, sizes, directions = found
    # What rounding leaves of fewer dimensions is no direction; brought to unit scale,
    # it would count as one.
    least = sizes[0] * max(some.shape) * np.finfo(some.dtype).eps
    return directions[: max(1, np.count_nonzero(sizes > least))].T


def _spread(n_rows: int, n_wanted: int) -> np.ndarray | slice:
    if n_rows <= n_wanted:
        return slice(None)
    return np.arange(n_wanted) * n_rows // n_wanted


def _precision(parts: list[np.ndarray]) -> type:
    wide = any(part.dtype == np.float64 for part in parts)
    return np.float64 if wide else np.float32


def weight_variance(weights: np.ndarray) -> float:
    """Return the variance of the weights after scaling them to mean one.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import weight_variance
    >>> weight_variance(np.array([1.0, 3.0]))
    0.25
    """
    weights = _positive_mean(weights)
    return float(np.var(weights / weights.mean()))


def renyi_divergence(weights: np.ndarray) -> float:
    """Return the exponentiated Rényi divergence of order two, d₂ = E_C[w²].

    It is 1 when both distributions agree and has no upper limit.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import renyi_divergence
    >>> renyi_divergence(np.array([0.5, 1.5]))
    1.25
    """
    return 1.0 + weight_variance(weights)


def effective_sample_size(weights: np.ndarray) -> float:
    """Return (Σw)²/Σw²: the number of equally weighted rows with the same variance.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import effective_sample_size
    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    weights = _positive_mean(weights)
    return float(weights.sum() ** 2 / np.square(weights).sum())


def domain_sample_sizes(weights: np.ndarray, sample_domain: np.ndarray) -> dict:
    """Return the effective sample size of every domain as a share of its rows.

    With a small share a few rows carry the weight of the whole domain.

    Parameters
    ----------
    weights : array-like of shape (n_samples,)
        Importance weights of the calibration rows.
    sample_domain : array-like of shape (n_samples,)
        Domain of every row.

    Returns
    -------
    dict
        Of domain to (share in (0, 1], mean weight of the domain).

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.shift import domain_sample_sizes
    >>> weights, site = np.array([1.0, 1.0, 4.0, 0.0]), np.array(["a", "a", "b", "b"])
    >>> domain_sample_sizes(weights, site)["b"]    # one of two rows has weight
    (0.5, 2.0)
    """
    weights, sample_domain = np.asarray(weights), np.asarray(sample_domain)
    sizes = {}
    for domain in np.unique(sample_domain):
        own = weights[sample_domain == domain]
        # A domain without any weight has no effective sample at all.
        size = effective_sample_size(own) if own.sum() > 0 else 0.0
        sizes[domain] = (size / len(own), float(own.mean()))
    return sizes


def _positive_mean(weights: np.ndarray) -> np.ndarray:
    weights = np.asarray(weights, dtype=float)
    if weights.size == 0 or np.any(~(weights >= 0)) or weights.sum() == 0:
        raise ValueError("weights must be non-negative numbers, not all of them zero")
    return weights


ESTIMATORS = ("discriminator", "published")
SEPARATED_AUROC = 0.99
FEW_SAMPLES = 30


@dataclass(frozen=True)
class DensityRatio:
    """Importance weights and how far they can be trusted.

    Attributes
    ----------
    weights : ndarray of shape (n_samples,)
        At least 0, with mean one; those of "published" are not scaled.
    raw_mean : float
        Mean of the weights before they were scaled to one. Far from one, the supports
        differ or the discriminator is wrong.
    variance : float
        Var(w); the exponentiated Rényi divergence is `divergence` = 1 + Var(w).
    effective_sample_size : float
        (Σw)²/Σw².
    auroc : float
        Of the discriminator on rows it was not fitted on. 0.5: no shift visible.
    share_clipped : float
        Share of the weights that were cut at the limit.

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

    @property
    def divergence(self) -> float:
        """d₂(P_T‖P_C) = 1 + Var(w)."""
        return 1.0 + self.variance

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the weights are unreliable; empty if they are not."""
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
        return tuple(reasons)

    @property
    def unreliable(self) -> bool:
        """Whether any of the `reasons` holds."""
        return bool(self.reasons)


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
    features : array-like of shape (n_samples, n_features)
        Calibration rows, where the ratio is wanted.
    target_features : array-like of shape (n_target, n_features)
        Unlabelled target rows.
    reference_features : array-like of shape (n_reference, n_features), default=None
        Further rows of the calibration distribution. When given, the discriminator
        learns from these instead, and `features` are new to it; otherwise the ratio is
        cross-fitted on `features` themselves.
    estimator : {"discriminator", "published"}, default="discriminator"
        "published" gives the weights of TransCal's and CPCS's code: not compressed,
        not cross-fitted (give `reference_features`), neither cut nor scaled.
    max_weight : float, default=50
        Weights are cut here before they are scaled to mean one.
    n_components : int, default=50
        Number of principal components that the estimator is fitted on.
    penalty : float, default=1
        Strength of the L2 penalty of the discriminator.
    n_folds : int, default=5
        Parts of the cross-fit.
    random_state : int, default=0
        Seed of the folds and of the components.

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
    with one_blas_thread():
        own, target, *reference = compress(given, n_components, random_state)
        known = reference[0] if reference else own
        score, auroc = _log_odds(own, known, target, penalty, n_folds, random_state)
    if estimator == "published":
        source = given[-1] if reference else given[0]
        raw = published_ratio(given[0], source, given[1], random_state=random_state)
        return _described(raw, raw, auroc)
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
