"""The evidence of left-out domains about domains that are yet to come.

A summary: numbers for each domain and conformal scores, no rows of users.
"""

import warnings
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.class_offsets import add_offsets, used_offsets
from coolhead.calibrators.data import CalibrationData, fresh
from coolhead.calibrators.estimators import (
    CalibratedRows,
    FeatureSums,
    SecondClassifier,
    accuracy_threshold,
    assigned_probability,
    share,
)
from coolhead.calibrators.left_out import (
    OutOfDomain,
    leave_domains_out,
    left_out_distances,
    loss_changes,
    warn_of_harm,
)
from coolhead.display import Summarised, Summary
from coolhead.metrics.bins import N_BINS, equal_width_index
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.moments import row_moments, summarise_rows
from coolhead.numerics.softmax import score_rows, softmax
from coolhead.shift.clusters import Clusters, find_regions, locate

# Spread of groups within a domain around the domain's own residual, on the logit
# scale; see docs/new-domain.md for the data that the defaults were chosen on.
GROUP_SPREAD = 0.4
GROUP_WORTH = 10.0
SMALLEST_GROUP = 20
LARGEST_OFFSET = 3.0
# A residual beyond this says no more than that domains can be very far off.
LARGEST_RESIDUAL = 3.0
CLOSEST = 1e-6
# More conformal scores than this are thinned to evenly spaced ranks of each domain.
MOST_SCORES = 6_000
SCORES = ("lac", "aps")
# Names of the accuracy estimators in version 0.2.
OLD_NAMES = {"surer": "atc", "transport": "cot"}


@dataclass(frozen=True, repr=False)
class Evidence(Summarised):
    """Left-out domains, summarised, so that a calibrator can carry them in its file.

    Attributes
    ----------
    domains : ndarray of shape (n_domains,)
        Names of the calibration domains that were left out.
    sizes : ndarray of shape (n_domains,)
        Their numbers of rows.
    accuracy, confidence : ndarray of shape (n_domains,)
        Share of right rows, and mean confidence by a fit without the domain.
    estimates : dict of str to ndarray of shape (n_domains,)
        Accuracy by each estimator of `coolhead.calibrators.estimators`.
    offsets, offset_errors : ndarray of shape (n_domains,)
        Best offset of log T(x), and its standard error.
    loss_changes : ndarray of shape (n_domains, 3)
        NLL uncalibrated and calibrated, and the standard error of their difference.
    group_spread : float
        How far predicted classes stray from their domain, on the logit scale.
    threshold : float
        Confidence that as many labelled rows exceed as are right.
    class_shares : ndarray of shape (n_classes,) or None
        Shares of the classes among the calibration labels, domains counting the same.
    second : SecondClassifier or None
        A classifier of the features.
    scores : dict of str to ndarray of shape (n_scores,)
        "lac" and "aps" of labelled rows, by fits that did not see their domain.
    score_domains : ndarray of shape (n_scores,)
        Domain of each score.
    regions : Clusters or None
        Where the calibration features lie, if the calibrator does not keep that.
    shown : dict or None
        What a monitor expects of rows like those of the calibration domains.
    offset_spread : float or None
        Spread of the class offsets of domains; None for calibrators without any.
    offset_step : float
        How far unlabelled rows move class offsets towards `class_shares`.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.5, 2.0, 2.5])
    >>> cal = ch.AutoCalibrator().fit(
    ...     data.logits, data.labels, features=data.features, sample_domain=data.domains
    ... )
    >>> cal.evidence_.domains.tolist(), cal.evidence_.sizes.tolist()
    (['site-0', 'site-1', 'site-2'], [300, 300, 300])
    """

    domains: np.ndarray
    sizes: np.ndarray
    accuracy: np.ndarray
    confidence: np.ndarray
    estimates: dict[str, np.ndarray]
    offsets: np.ndarray
    offset_errors: np.ndarray
    loss_changes: np.ndarray
    group_spread: float
    threshold: float
    class_shares: np.ndarray | None
    second: SecondClassifier | None
    scores: dict[str, np.ndarray]
    score_domains: np.ndarray
    regions: Clusters | None = None
    shown: dict[str, Any] | None = None
    offset_spread: float | None = None
    offset_step: float = 0.0

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields, also those of version 0.2."""
        state = dict(state)
        if "comparison" in state:
            old = vars(state.pop("comparison"))
            state |= {"threshold": old["threshold"], "second": old["second"]}
            state["class_shares"] = old.get("shares")
        if "suggested" in state:
            known = state.pop("suggested").items()
            state["estimates"] = {OLD_NAMES.get(n, n): each for n, each in known}
        known = {
            f.name: None if f.default is MISSING else f.default for f in fields(self)
        }
        vars(self).update(known | state)

    def _summary(self) -> Summary:
        title = f"Evidence of {len(self.domains)} left-out domains"
        columns = self.domains, self.sizes, 100 * self.accuracy, 100 * self.confidence
        rows = [
            (str(name), str(size), f"{accuracy:.1f}", f"{confidence:.1f}")
            for name, size, accuracy, confidence in zip(*columns, strict=True)
        ]
        return Summary(title, ("domain", "rows", "accuracy %", "confidence %"), rows)

    @property
    def residuals(self) -> np.ndarray:
        """Logit of accuracy minus logit of mean confidence of each domain."""
        return self.errors_of("left_out")

    def estimate_of(self, name: str) -> np.ndarray:
        """Accuracy of each left-out domain according to an estimator."""
        return self.confidence if name == "left_out" else self.estimates[name]

    def errors_of(self, name: str) -> np.ndarray:
        """Logit of accuracy minus that of an estimate, of each domain."""
        return logit(self.accuracy) - logit(self.estimate_of(name))

    @property
    def noise(self) -> np.ndarray:
        """Standard error of the logit of accuracy of each domain."""
        kept = np.clip(self.accuracy, 0.02, 0.98)
        return 1 / np.sqrt(self.sizes * kept * (1 - kept))

    def estimate(self, rows: CalibratedRows) -> dict[str, float]:
        """Return the accuracy of unlabelled rows by each estimator."""
        return estimate_accuracy(rows, self.threshold, self.second, self.class_shares)


@dataclass(frozen=True)
class Comparison:
    """Part of the evidence in files of version 0.2; `Evidence` takes it apart."""

    threshold: float
    second: SecondClassifier | None
    shares: np.ndarray | None = None


def keep_evidence(
    calibrator: Any, data: CalibrationData, *, stacklevel: int = 2
) -> None:
    """Leave each domain out once: warn of harm, and keep a summary on the calibrator.

    A calibrator that leaves domains out in its own fit has done so already.
    """
    if hasattr(calibrator, "evidence_"):
        return
    found = leave_domains_out(calibrator, data)
    warn_of_harm(data, found, stacklevel=stacklevel + 1)
    if hasattr(calibrator, "temperature"):
        calibrator.evidence_ = summarise(calibrator, data, found)


def gather_evidence(calibrator: Any, data: CalibrationData) -> Evidence:
    """Return the evidence of the rows that a calibrator was fitted on."""
    check_is_fitted(calibrator)
    if hasattr(calibrator, "harmed_"):  # it leaves domains out in its own fit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return fresh(calibrator).fit_data(data).evidence_
    return summarise(calibrator, data, leave_domains_out(calibrator, data))


def estimate_accuracy(
    rows: CalibratedRows,
    threshold: float,
    second: SecondClassifier | None,
    class_shares: np.ndarray | None,
) -> dict[str, float]:
    """Return the accuracy of unlabelled rows by each estimator that can be used."""
    found = {"atc": share(rows.confidence > threshold)}
    if second is not None and rows.features is not None:
        found["agreement"] = share(second.predict(rows.features) == rows.predicted)
    if class_shares is not None:
        found["cot"] = assigned_probability(*rows[:2], class_shares)
    return found


def summarise(calibrator: Any, data: CalibrationData, found: OutOfDomain) -> Evidence:
    """Summarise the rows of left-out domains.

    Parameters
    ----------
    calibrator : TemperatureCalibrator
        Fitted on all of the data.
    data : CalibrationData
    found : OutOfDomain
        With temperatures.
    """
    left_out, learned = found.folds >= 0, found.class_offsets
    temperature, scored = found.temperature, found.scores
    offsets = used_offsets(calibrator)
    if temperature is not None and left_out.any():
        rows = np.flatnonzero(left_out)
        if offsets is not None and learned is not None:
            offsets = learned.left_out[found.folds[rows]]
    else:
        # One domain stands for itself: enough for sets of rows like its own.
        source = data.domains.source_rows
        rows = np.flatnonzero(~source | source.all())
        temperature = calibrator.temperature(data.logits, data.features)
        scored = score_rows(data.logits, data.labels, temperature, offsets)
    given, folds = data.take(rows), found.folds[rows]
    part = given
    if offsets is not None:
        logits = add_offsets(part.logits, temperature[rows], offsets)
        scaled = summarise_rows(logits, part.labels, scores=True)
        part = replace(part, rows=scaled)
    seen = CalibratedRows(
        part.logits,
        temperature[rows],
        scored.confidence[rows].astype(np.float64),
        scored.predicted[rows],
        part.features,
    )
    estimates, final = _estimates(part, folds, seen)
    shown = _shown(calibrator, part, seen)
    names, codes = part.domains.names.astype(np.str_), part.domains.codes
    scores, score_domains = _thinned(
        conformal_scores(part.logits, part.labels, seen.temperature), codes
    )
    summary = {
        "scores": scores,
        "score_domains": score_domains,
        **final,
        "regions": None,
        "shown": shown,
    }
    if learned is not None:
        summary["offset_spread"] = learned.spread
        summary["offset_step"] = learned.step
    if data.features is not None and not hasattr(calibrator, "clusters_"):
        summary["regions"] = find_regions(part.features)
    if not left_out.any():
        none = np.zeros(0)
        return Evidence(
            names[:0],
            codes[:0],
            none,
            none,
            {},
            none,
            none,
            np.zeros((0, 3)),
            GROUP_SPREAD,
            **summary,
        )
    n_domains, right = len(names), seen.predicted == part.labels
    sizes = np.bincount(codes, minlength=n_domains)
    # Half a row of each kind, so that a domain without mistakes has a finite logit.
    accuracy = (np.bincount(codes, right, n_domains) + 0.5) / (sizes + 1)
    mean = np.bincount(codes, seen.confidence, n_domains) / sizes
    offsets, errors = domain_offsets(part, np.log(seen.temperature))
    change = loss_changes(given, scored.log_loss[rows], codes, n_domains)
    return Evidence(
        names,
        sizes,
        accuracy,
        mean,
        estimates,
        offsets,
        errors,
        np.column_stack(change),
        _group_spread(codes, seen, right, logit(accuracy) - logit(mean)),
        **summary,
    )


def _estimates(
    data: CalibrationData, folds: np.ndarray, seen: CalibratedRows
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Estimate the accuracy of each domain by estimators that did not see it.

    Returns
    -------
    estimates : dict of str to ndarray of shape (n_domains,)
    final : dict
        What the estimators keep of all domains.
    """
    codes, n_classes = data.domains.codes, data.n_classes
    right = seen.predicted == data.labels
    sizes = np.bincount(codes)
    weights = 1.0 / sizes[codes]

    def of_rows(kept: np.ndarray) -> tuple[float, np.ndarray]:
        threshold = accuracy_threshold(seen.confidence[kept], right[kept], codes[kept])
        shares = np.bincount(data.labels[kept], weights[kept], n_classes)
        return threshold, shares / shares.sum()

    sums = None
    if data.features is not None:
        sums = FeatureSums(data.features, data.labels, n_classes)
    everywhere = np.ones(len(data), bool)
    threshold, shares = of_rows(everywhere)
    final = {"threshold": threshold, "class_shares": shares.astype(np.float32)}
    final["second"] = None if sums is None else sums.classifier()
    found: dict[str, np.ndarray] = {}
    for number in range(folds.max() + 1):
        outside = folds == number
        second = None if sums is None else sums.classifier(outside)
        threshold, shares = of_rows(~outside)
        for code in np.unique(codes[outside]):
            rows = seen.take(codes == code)
            estimates = estimate_accuracy(rows, threshold, second, shares)
            for name, value in estimates.items():
                found.setdefault(name, np.zeros(len(sizes)))[code] = value
    return found, final


def domain_offsets(
    data: CalibrationData, log_temperature: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the offset of log T(x) that fits the rows of each domain best.

    Newton's steps on the loss of softmax(z / exp(log T + offset)), all domains in the
    same passes.

    Parameters
    ----------
    data : CalibrationData
    log_temperature : ndarray of shape (n_samples,)

    Returns
    -------
    offsets, errors : ndarray of shape (n_domains,)
        The offsets and their standard errors.
    """
    codes, n_domains = data.domains.codes, len(data.domains.names)
    offsets, curvature = np.zeros(n_domains), np.zeros(n_domains)
    for _ in range(50):
        moments = row_moments(data.rows, np.exp(-(log_temperature + offsets[codes])))
        # Derivatives in log b = -offset; the curvature alone is always positive.
        gradient = -np.bincount(codes, moments.score, n_domains)
        curvature = np.bincount(codes, moments.curvature, n_domains)
        step = np.clip(-gradient / np.maximum(curvature, 1e-9), -0.5, 0.5)
        moved = np.clip(offsets + step, -LARGEST_OFFSET, LARGEST_OFFSET)
        converged = np.abs(moved - offsets).max() < 1e-6
        if converged:
            break
        offsets = moved
    return offsets, 1 / np.sqrt(np.maximum(curvature, 1e-9))


def _group_spread(
    codes: np.ndarray, seen: CalibratedRows, right: np.ndarray, residuals: np.ndarray
) -> float:
    """Measure how far predicted classes stray from their domain, beyond noise."""
    pairs, groups = np.unique(
        np.column_stack([codes, seen.predicted]), axis=0, return_inverse=True
    )
    counts = np.bincount(groups.ravel())
    accuracy = (np.bincount(groups.ravel(), right) + 0.5) / (counts + 1)
    mean = np.bincount(groups.ravel(), seen.confidence) / counts
    stray = logit(accuracy) - logit(mean) - residuals[pairs[:, 0]]
    noise = 1 / np.sqrt(counts * accuracy * (1 - accuracy))
    kept = counts >= SMALLEST_GROUP
    return shrunk_scale(stray[kept], noise[kept], GROUP_SPREAD, GROUP_WORTH)


def _shown(
    calibrator: Any, data: CalibrationData, seen: CalibratedRows
) -> dict[str, Any]:
    """Count what a monitor compares new rows with, domain by domain.

    Counts of domains are packed: names, and an array with a row for each.
    """
    codes, names = data.domains.codes, data.domains.names.astype(np.str_).tolist()
    middle = float(np.median(seen.confidence))
    right = seen.predicted == data.labels
    place = codes * N_BINS + equal_width_index(seen.confidence, N_BINS)
    bins = [
        np.bincount(place, values, len(names) * N_BINS).reshape(-1, N_BINS)
        for values in (right, None)
    ]
    unsure = unsure_rows(seen.confidence, middle)
    found: dict[str, Any] = {
        "middle": middle,
        "unsure": {name: counted(unsure[codes == c]) for c, name in enumerate(names)},
        "right": dict(zip(names, np.stack(bins, axis=1), strict=True)),
    }
    clusters = getattr(calibrator, "clusters_", None)
    if data.features is not None and clusters is not None and len(data) > 1:
        apart = left_out_distances(data.features, data.domains.all_alike(), clusters)
        own = locate(clusters, data.features)[1]
        within = {name: own[codes == code] for code, name in enumerate(names)}
        found |= distance_counts(apart, within)
    return {
        name: (np.array(list(value)), np.array(list(value.values()), np.float32))
        if isinstance(value, dict)
        else value
        for name, value in found.items()
    }


def unsure_rows(confidence: np.ndarray, middle: float) -> np.ndarray:
    """Return a mask of rows less confident than the median calibration row."""
    # The same row in another batch may get another last digit.
    return confidence < middle - 1e-6


def distance_counts(
    apart: dict[str, np.ndarray], within: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Choose the radii beyond and within which rows are rare, and count rows there.

    Parameters
    ----------
    apart : dict of str to ndarray
        Distances of each domain, in radii, from regions of the other domains.
    within : dict of str to ndarray
        Distances of each domain from the regions of all.
    """
    largest = 0.25  # a larger share outside would leave no room for news
    # Order statistics, not means of two: then the comparison with new rows is exact
    # although these rows chose the limits.
    reach = max(
        1.0, *(np.quantile(d, 1 - largest, method="higher") for d in apart.values())
    )
    if not np.isfinite(reach):
        return {}  # domains of identical rows: every other row is infinitely far
    near = min(np.quantile(d, largest, method="lower") for d in within.values())
    return {
        "reach": float(reach),
        "outside": {name: counted(d > reach) for name, d in apart.items()},
        "near": float(near),
        "inside": {name: counted(d < near) for name, d in within.items()},
    }


def counted(mask: np.ndarray) -> tuple[float, float]:
    """Return how many rows of a mask are True, and how many there are."""
    return float(np.count_nonzero(mask)), float(len(mask))


def _thinned(
    scores: dict[str, np.ndarray], codes: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Keep evenly spaced upper ranks of the scores of each domain.

    The quantiles that promises rest on become larger, never smaller.
    """
    stride = max(1.0, len(codes) / MOST_SCORES)
    sizes = np.bincount(codes)
    kept = {kind: [] for kind in scores}
    for code, size in enumerate(sizes):
        count = int(np.ceil(size / stride))
        ranks = np.ceil(np.arange(1, count + 1) * size / count).astype(int) - 1
        for kind, values in scores.items():
            # Rounding to single precision upwards keeps the promise, too.
            found = np.sort(values[codes == code])[ranks].astype(np.float32)
            kept[kind].append(np.nextafter(found, np.float32(2)))
    counts = [len(each) for each in kept["lac"]]
    domains = np.repeat(np.arange(len(sizes), dtype=np.uint16), counts)
    return {kind: np.concatenate(parts) for kind, parts in kept.items()}, domains


def class_scores(logits: np.ndarray, temperature: np.ndarray, kind: str) -> np.ndarray:
    """Return the conformal score of every class in every row, small where it is likely.

    Parameters
    ----------
    logits : ndarray of shape (n_samples, n_classes)
    temperature : ndarray of shape (n_samples,)
    kind : {"lac", "aps"}
        "lac" is one minus the probability; "aps" the probability of all likelier
        classes and its own (without randomisation, so sets are never empty).
    """
    scores = softmax(logits, temperature).astype(np.float64)
    if kind == "lac":
        return 1 - scores
    order = np.argsort(-scores, axis=1, kind="stable")
    summed = np.cumsum(np.take_along_axis(scores, order, axis=1), axis=1)
    np.put_along_axis(scores, order, summed, axis=1)
    return scores


def conformal_scores(
    logits: np.ndarray, labels: np.ndarray, temperature: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the scores of the true classes, float64 of shape (n_samples,) per kind."""
    found = {kind: np.empty(len(labels)) for kind in SCORES}
    for rows in row_blocks(*logits.shape):
        part = softmax(logits[rows], temperature[rows])
        each, own = np.arange(len(part)), labels[rows]
        probability = part[each, own, None]
        # Among equal probabilities the class with the lower number comes first.
        ahead = part > probability
        ahead |= (part == probability) & (np.arange(part.shape[1]) <= own[:, None])
        found["lac"][rows] = 1 - probability[:, 0].astype(np.float64)
        found["aps"][rows] = np.where(ahead, part, 0).sum(axis=1, dtype=np.float64)
    return found


def logit(probability: np.ndarray | float) -> np.ndarray:
    """Return log(p / (1 - p)), finite at 0 and 1."""
    clipped = np.clip(np.asarray(probability, np.float64), CLOSEST, 1 - CLOSEST)
    return np.log(clipped) - np.log1p(-clipped)


def shrunk_scale(
    errors: np.ndarray, noise: np.ndarray, default: float, worth: float
) -> float:
    """Return the root mean square of errors beyond their noise, shrunk to a default.

    Parameters
    ----------
    errors, noise : ndarray of shape (n_domains,)
        Errors on left-out domains, and their standard errors.
    default : float
    worth : float
        Number of domains that the default is worth.
    """
    kept = np.clip(errors, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
    beyond = max(float(np.sum(np.square(kept) - np.square(noise))), 0.0)
    total = worth * default**2 + beyond
    return float(np.sqrt(total / (worth + len(errors))))
