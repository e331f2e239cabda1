"""Maps of one score to one probability, applied to many classes.

"top_label": the map is of the confidence, fitted to whether the prediction is right;
the other classes share the remaining probability, and the prediction does not change.
"one_vs_all": every class has its own map and the results are scaled to sum to one.
"""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.special import betaln, logsumexp
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from coolhead.baselines.classwise import ScoreCalibrator, ScoreData
from coolhead.calibrators.parameters import Count, parameters
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice
from coolhead.numerics.softmax import confidence, softmax
from coolhead.numerics.solver import Status

# Keeps every class possible, and breaks ties by the original order.
BLEND = 1e-9
# Keeps the top label just ahead, so that rounding cannot change it.
TIE = 1e-5

Curve = tuple[np.ndarray, np.ndarray]
FitCurve = Callable[[np.ndarray, np.ndarray, np.ndarray], Curve]


class CurveCalibrator(ScoreCalibrator):
    """Maps one score, or that of every class, by curves learned from hits and misses.

    A subclass has a parameter `scheme` and writes `_fit_curve`.

    Attributes
    ----------
    curves_ : list of pairs of arrays
        None for a class without rows, which keeps its probability.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_
    """

    scheme: str

    @property
    def learns_classes(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every class has a curve."""
        return self.scheme == "one_vs_all"

    def _learn_scores(self, data: ScoreData) -> str:
        self.curves_ = fit_curves(data, self.scheme, self._fit_curve)
        return Status.CONVERGED

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        if self.scheme == "top_label":
            largest, top = confidence(exact(logits), 1.0)
            return replace_top(logits, top, self._read_curve(self.curves_[0], largest))
        probabilities = softmax(exact(logits), 1.0)
        mapped = probabilities.copy()
        for k, curve in enumerate(self.curves_):
            if curve is not None:
                mapped[:, k] = self._read_curve(curve, probabilities[:, k])
        mapped += BLEND * probabilities
        return mapped / mapped.sum(axis=1, keepdims=True)

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Curve:
        raise NotImplementedError(f"{type(self).__name__} does not define its curves")

    def _read_curve(self, curve: Curve, scores: np.ndarray) -> np.ndarray:
        """Read the curve as steps, unless a subclass overrides this."""
        return read_steps(curve, scores)


def read_steps(steps: Curve, scores: np.ndarray) -> np.ndarray:
    """Value of the step that each score falls on."""
    inner, values = steps
    return values[np.searchsorted(inner, scores, side="left")]


def equal_mass_ends(scores: np.ndarray, mass: np.ndarray, n_bins: int) -> np.ndarray:
    """Return where each of the bins of equal mass but the last ends, among the rows.

    Equal scores share a bin, so a cut moves behind the last of them. Bins end
    half way to the next score: none lies on an edge, where rounding would decide.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Ascending.
    mass : ndarray of shape (n_samples + 1,)
        Sum of the weights of the rows before each.
    n_bins : int
    """
    # Sums of weights may miss a multiple of the bin's mass by their rounding.
    cuts = np.arange(1, n_bins) * (mass[-1] / n_bins) * (1 - 1e-12)
    last = np.searchsorted(mass[1:], cuts, side="left")
    ends = np.unique(np.searchsorted(scores, scores[last], side="right"))
    return ends[ends < len(scores)]


def exact(logits: np.ndarray) -> np.ndarray:
    """Logits in double precision.

    A curve may jump, and near one single precision has few numbers left: the step a
    score falls on must not depend on rounding.
    """
    return logits.astype(np.float64, copy=False)


def fit_curves(data: ScoreData, scheme: str, fit_curve: FitCurve) -> list[Any]:
    """One curve for the top label, or one per class (None where a class is absent)."""
    check_choice(scheme, "scheme", "top_label", "one_vs_all")
    if scheme == "top_label":
        largest, predicted = confidence(exact(data.logits), 1.0)
        return [fit_curve(largest, predicted == data.labels, data.weights)]
    probabilities = softmax(exact(data.logits), 1.0)
    absent = set(data.absent.tolist())
    return [
        None
        if k in absent
        else fit_curve(
            np.ascontiguousarray(probabilities[:, k]), data.labels == k, data.weights
        )
        for k in range(probabilities.shape[1])
    ]


def replace_top(logits: np.ndarray, top: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Probabilities with the wanted one for class `top`, which stays the largest.

    The others keep their proportions, as far as none of them overtakes the top: the
    second of an overconfident classifier would otherwise inherit all it lost. Where
    it must be, they are made more even, and a wish below 1/k becomes 1/k.
    """
    each = np.arange(len(top))
    others = logits.astype(np.float64)
    # Masked classes take no share; a row with one class left is certain anyway.
    n_classes = np.maximum(np.isfinite(others).sum(axis=1), 2)
    # Exactly 1 would make a single surprise infinitely bad.
    wanted = np.clip(wanted, (1 + 10 * TIE) / n_classes, 1 - BLEND)
    others[each, top] = -np.inf
    # A softmax of their own keeps their digits where the top has nearly all mass.
    free = np.isfinite(others)
    others -= np.where(free, others, -np.finfo(np.float64).max).max(
        axis=1, keepdims=True
    )
    np.exp(others, out=others)
    others /= np.maximum(others.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    even, largest = 1 / (n_classes - 1), others.max(axis=1)
    allowed = (1 - TIE) * wanted / (1 - wanted)
    above_even = np.maximum(largest - even, TIE * even)
    blend = np.clip((largest - allowed) / above_even, 0.0, 1.0)[:, None]
    others = (1 - blend) * others + blend * even[:, None] * free
    others *= (1 - wanted)[:, None]
    others[each, top] = wanted
    return others / others.sum(axis=1, keepdims=True)


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
    scheme : {"top_label", "one_vs_all"}, default="top_label"
        "top_label" calibrates the confidence, "one_vs_all" every class.

    Attributes
    ----------
    curves_ : list of (edges, values)
        The averaged binnings as one step function.
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
        for n_bins in _bin_counts(mass[-1], max_binnings)
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


def _bin_counts(mass: float, max_binnings: int | None) -> np.ndarray:
    root = mass ** (1 / 3)
    low = max(1, int(root / 10))
    high = max(low, min(int(mass), int(np.ceil(10 * root))))
    if max_binnings is None or high - low < max_binnings:
        return np.arange(low, high + 1)
    return np.unique(np.geomspace(low, high, max_binnings).round().astype(int))


def _one_binning(
    scores: np.ndarray, mass: np.ndarray, right: np.ndarray, n_bins: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Inner edges, posterior means and log evidence of one equal-mass binning."""
    ends = equal_mass_ends(scores, mass, n_bins)
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


@parameters
class HistogramBinning(CurveCalibrator):
    """Replaces a probability by the share of hits in its bin of equal width.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins.
    scheme : {"top_label", "one_vs_all"}, default="top_label"
        "top_label" calibrates the confidence, "one_vs_all" every class.

    Attributes
    ----------
    curves_ : list of (edges, values)
        A value holds up to and with its right edge.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0])
    >>> cal = ch.baselines.HistogramBinning(n_bins=10).fit(data.logits, data.labels)
    >>> cal.nll_ < cal.nll_uncalibrated_, len(cal.curves_)
    (True, 1)
    """

    n_bins: Count = 15
    _: KW_ONLY
    scheme: str = "top_label"

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Curve:
        inner = np.arange(1, self.n_bins) / self.n_bins
        index = np.searchsorted(inner, scores, side="left")
        mass = np.bincount(index, weights, len(inner) + 1)
        right = np.bincount(index, weights * hits, len(inner) + 1)
        edges = np.concatenate([[0.0], inner, [1.0]])
        # An empty bin keeps its middle.
        values = (edges[:-1] + edges[1:]) / 2
        values[mass > 0] = right[mass > 0] / mass[mass > 0]
        return inner, values


# Ten digits: relative distance of scores between which a curve may rise.
CLOSEST = 2.0**-33


@parameters
class IsotonicCalibration(CurveCalibrator):
    """Increasing curves through the class probabilities.

    Parameters
    ----------
    scheme : {"one_vs_all", "pooled", "top_label"}, default="one_vs_all"
        "one_vs_all" fits a curve per class and may change the predicted class;
        "pooled" (IRM) fits one curve to all n·k pairs and keeps the order of the
        classes; "top_label" calibrates the confidence alone.

    Attributes
    ----------
    curves_ : list of (scores, values)
        Interpolated in between; None for a class without rows, which keeps its
        probability.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0])
    >>> cal = ch.baselines.IsotonicCalibration().fit(data.logits, data.labels)
    >>> cal.nll_ < cal.nll_uncalibrated_, len(cal.curves_)
    (True, 3)
    """

    scheme: str = "one_vs_all"

    def _learn_scores(self, data: ScoreData) -> str:
        if self.scheme != "pooled":
            return super()._learn_scores(data)
        scores = softmax(exact(data.logits), 1.0)
        hits = np.zeros(scores.shape, bool)
        hits[np.arange(len(hits)), data.labels] = True
        weights = np.repeat(data.weights.astype(scores.dtype), self.n_classes_)
        curve = self._fit_curve(scores.ravel(), hits.ravel(), weights)
        self.curves_ = [curve] * self.n_classes_
        return Status.CONVERGED

    def _fit_curve(
        self, scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
    ) -> Curve:
        """Corner points of the increasing curve of least squares."""
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        for given in (scores, _rounded(scores)):
            model.fit(given, hits.astype(scores.dtype), sample_weight=weights)
            corners, values = model.X_thresholds_, model.y_thresholds_
            # As steep as this, the last bit of a score decides, which NumPy and torch
            # do not share; then scores that are as close are one.
            apart = np.diff(corners) >= CLOSEST * corners[1:]
            if np.all(apart | (np.diff(values) == 0)):
                break
        return corners, values

    def _read_curve(self, curve: Curve, scores: np.ndarray) -> np.ndarray:
        """Interpolate between the corner points; constant beyond them."""
        return np.interp(scores, *curve)


def _rounded(scores: np.ndarray) -> np.ndarray:
    """Scores to as many digits as neighbours on a curve are apart."""
    fraction, exponent = np.frexp(scores)
    return np.ldexp(np.round(fraction / CLOSEST) * CLOSEST, exponent)


class PlattScaling(ScoreCalibrator):
    """sigmoid(a·s + b), with Platt's smoothed targets.

    With two classes s is the difference of the logits. With more, s is the logit of
    the confidence, the target is whether the prediction is right, and the other
    classes share what is left; the prediction stays.

    Attributes
    ----------
    slope_, intercept_ : float
        a and b.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0], n_classes=2)
    >>> cal = ch.baselines.PlattScaling().fit(data.logits, data.labels)
    >>> round(cal.slope_, 1)    # about 1/T
    0.5
    """

    def _learn_scores(self, data: ScoreData) -> str:
        scores, top = scores_of(data.logits)
        hits = (data.labels == top) if self.n_classes_ > 2 else data.labels == 1
        self.slope_, self.intercept_ = fit_logistic(scores, hits, data.weights)
        constant = np.ptp(scores) == 0
        return Status.CONSTANT_LOGITS if constant else Status.CONVERGED

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        scores, top = scores_of(logits)
        wanted = _sigmoid(self.slope_ * scores + self.intercept_)
        if self.n_classes_ == 2:
            return np.column_stack([1 - wanted, wanted])
        return replace_top(logits, top, wanted)


def scores_of(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Score (n,) in float64 and the class it is about (n,)."""
    if logits.shape[1] == 2:
        apart = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        return _unless_certain(apart), np.ones(len(logits), np.intp)
    top = logits.argmax(axis=1)
    scores = np.empty(len(logits))
    for rows in row_blocks(*logits.shape):
        # log conf - log(1 - conf) is what the top has over all others together, and
        # this way a confidence near one keeps its digits.
        others = logits[rows].astype(np.float64)
        each = np.arange(len(others)), top[rows]
        others -= others[each][:, None]
        others[each] = -np.inf
        scores[rows] = -logsumexp(others, axis=1)
    return _unless_certain(scores), top


def _unless_certain(scores: np.ndarray) -> np.ndarray:
    """Where all other classes are masked, one is certain, whatever the curve says."""
    return np.where(np.isfinite(scores), scores, 0.0)


def fit_logistic(
    scores: np.ndarray, hits: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Slope and intercept by likelihood, with targets (n₊+1)/(n₊+2) and 1/(n₋+2)."""
    positive, negative = float(weights @ hits), float(weights @ ~hits)
    targets = np.where(hits, (positive + 1) / (positive + 2), 1 / (negative + 2))
    center = np.average(scores, weights=weights)
    unit = np.sqrt(np.average((scores - center) ** 2, weights=weights)) or 1.0
    column = ((scores - center) / unit)[:, None]
    # A fractional target is one row of each kind, weighted by its share.
    model: Any = LogisticRegression(C=np.inf, max_iter=1000, tol=1e-8)
    with warnings.catch_warnings():
        # scikit-learn 1.8 warns of its own way to say that there is no penalty.
        warnings.filterwarnings("ignore", "Setting penalty=None", UserWarning)
        model.fit(
            np.concatenate([column, column]),
            np.repeat([1, 0], len(scores)),
            sample_weight=np.concatenate([weights * targets, weights * (1 - targets)]),
        )
    slope = float(model.coef_[0, 0] / unit)
    return slope, float(model.intercept_[0] - slope * center)


def _sigmoid(scores: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -scores))
