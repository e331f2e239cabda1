"""Bayesian binning into quantiles (BBQ): many binnings, weighted by evidence."""

import numpy as np
from scipy.special import betaln

from coolhead.baselines.binning.one_score import Curve, CurveCalibrator, read_steps
from coolhead.calibrators.parameters import parameters

PRIOR_WEIGHT = 2.0
BINNINGS_PER_CLASS = 30


@parameters
class BayesianBinning(CurveCalibrator):
    """Average of equal-mass binnings, each weighted by its marginal likelihood.

    A binning into B bins has a Beta prior of weight 2/B on every bin, centred at the
    middle of the bin. B runs from n^(1/3)/10 to 10·n^(1/3): through every number for
    the top label, through 30 numbers in geometric steps when every class has a curve.

    Parameters
    ----------
    scheme : "top_label" calibrates the confidence, "one_vs_all" every class.

    Attributes
    ----------
    curves_ : list of (edges, values), the averaged binnings as one step function.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0])
    >>> cal = ch.baselines.BayesianBinning().fit(data.logits, data.labels)
    >>> cal.predict_proba(data.logits[:2]).sum(axis=1).round(6)
    array([1., 1.])
    """

    scheme: str = "top_label"

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Curve:
        limit = None if self.scheme == "top_label" else BINNINGS_PER_CLASS
        return fit_averaged_steps(scores, hits, weights, limit)


def fit_averaged_steps(
    scores: np.ndarray,
    hits: np.ndarray,
    weights: np.ndarray,
    max_binnings: int | None = None,
) -> Curve:
    """Evidence-weighted mean of all binnings, on the union of their edges."""
    order = np.argsort(scores, kind="stable")
    scores = scores[order].astype(np.float64)
    mass = np.concatenate([[0.0], np.cumsum(weights[order])])
    right = np.concatenate([[0.0], np.cumsum((weights * hits)[order])])
    binnings = [
        _one_binning(scores, mass, right, n_bins)
        for n_bins in _bin_counts(len(scores), max_binnings)
    ]
    evidence = np.array([log_evidence for _, _, log_evidence in binnings])
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    # Binnings without weight would only make the step function longer.
    heavy = share > 1e-6
    kept = [b for b, keep in zip(binnings, heavy, strict=True) if keep]
    edges = np.unique(np.concatenate([inner for inner, _, _ in kept]))
    # Each piece of the union lies inside one bin: read it at its right end.
    probes = np.append(edges, np.inf)
    values = sum(
        weight * read_steps((inner, means), probes)
        for weight, (inner, means, _) in zip(share[heavy], kept, strict=True)
    )
    return edges, np.asarray(values) / share[heavy].sum()


def _bin_counts(n_rows: int, max_binnings: int | None) -> np.ndarray:
    root = n_rows ** (1 / 3)
    low = max(1, int(root / 10))
    high = max(low, min(n_rows, int(np.ceil(10 * root))))
    if max_binnings is None or high - low < max_binnings:
        return np.arange(low, high + 1)
    return np.unique(np.geomspace(low, high, max_binnings).round().astype(int))


def _one_binning(
    scores: np.ndarray, mass: np.ndarray, right: np.ndarray, n_bins: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Inner edges, posterior means and log evidence of one equal-mass binning."""
    cuts = (np.arange(1, n_bins) * len(scores)) // n_bins
    # Equal scores cannot be told apart, so a cut moves behind the last of them, and
    # half way to the next: no score lies on an edge, where rounding would decide.
    ends = np.unique(np.searchsorted(scores, scores[cuts - 1], side="right"))
    ends = ends[ends < len(scores)]
    inner = (scores[ends - 1] + scores[ends]) / 2
    bounds = np.concatenate([[0], ends, [len(scores)]])
    total, hit = np.diff(mass[bounds]), np.diff(right[bounds])
    edges = np.concatenate([[0.0], inner, [1.0]])
    middle = np.clip((edges[:-1] + edges[1:]) / 2, 1e-6, 1 - 1e-6)
    weight = PRIOR_WEIGHT / len(middle)
    alpha, beta = weight * middle, weight * (1 - middle)
    evidence = betaln(alpha + hit, beta + np.maximum(total - hit, 0))
    return (
        inner,
        (alpha + hit) / (weight + total),
        float(np.sum(evidence - betaln(alpha, beta))),
    )
