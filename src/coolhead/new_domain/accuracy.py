"""Expected accuracy of a domain from estimates and labels, with an interval."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from coolhead.calibrators.estimators import CalibratedRows
from coolhead.calibrators.evidence import Evidence, logit, shrunk_scale
from coolhead.metrics.bins import Interval
from coolhead.new_domain.posterior import (
    Belief,
    Estimate,
    believe,
    label_log_density,
    mean_shifted,
)

# Chosen on families of data that are not reported: docs/new-domain.md.
PRIOR_SCALE, PRIOR_WORTH = 0.3, 4.0
# A little wider for intervals: missing the truth is worse than a point of ECE.
INTERVAL_SCALE = 0.45
# With labels the prior is a Cauchy density of this share of the scale: labels that
# contradict it overrule it.
LABELLED_SHARE, LABELLED_FREEDOM = 0.8, 1.0
BATCH_SCALE = {"atc": 0.6, "agreement": 0.6, "cot": 0.6}
BATCH_WORTH = 4.0
LARGEST_SHIFT = 8.0
REPRESENTATIVES = 2_000
NORMAL_90 = 1.6448536269514722
# The same quantile of Student's t with the degrees of freedom of an estimate.
TAIL_90 = 2.131846786326649


class Labelled(NamedTuple):
    """Labelled rows: calibrated confidence, whether right, and weights.

    shared : whether class offsets are learned from the same labels.
    """

    confidence: np.ndarray
    right: np.ndarray
    weights: np.ndarray
    shared: bool = False


class GroupAccuracy(NamedTuple):
    """Number of rows of a group, and their expected accuracy."""

    n_rows: int
    accuracy: Interval


def left_out_estimate(confidence: float, evidence: Evidence | None) -> Estimate:
    """Estimate accuracy by mean confidence; the scale is its left-out error."""
    scale = PRIOR_SCALE
    if evidence is not None:
        scale = shrunk_scale(
            evidence.residuals, evidence.noise, PRIOR_SCALE, PRIOR_WORTH
        )
    return Estimate("left_out", float(logit(confidence)), scale)


def batch_estimate(name: str, accuracy: float, evidence: Evidence) -> Estimate:
    """Attach the left-out error of an accuracy estimator to its estimate."""
    errors, noise = np.zeros(0), np.zeros(0)
    if name in evidence.estimates:
        errors, noise = evidence.errors_of(name), evidence.noise
    scale = shrunk_scale(errors, noise, BATCH_SCALE[name], BATCH_WORTH)
    return Estimate(name, float(logit(accuracy)), scale)


def find_estimates(
    rows: CalibratedRows, evidence: Evidence | None, use: Sequence[str]
) -> list[Estimate]:
    """Estimate the accuracy of a domain before labels, by each kind in use."""
    # Without left-out domains the default scale takes their place.
    prior = evidence if "left_out" in use else None
    found = [left_out_estimate(float(rows.confidence.mean()), prior)]
    if "batch" in use and evidence is not None:
        suggested = evidence.estimate(rows)
        found += [
            batch_estimate(name, share, evidence) for name, share in suggested.items()
        ]
    return found


def combined(estimates: Sequence[Estimate], evidence: Evidence | None) -> Estimate:
    """Combine estimates; the scale is the error of the combination where left out.

    All estimators use the same confidences, so their errors are correlated: the product
    of their densities would be far too narrow. So each left-out domain is estimated by
    the same combination.
    """
    if evidence is None:
        return Estimate("combined", _middle(estimates), INTERVAL_SCALE)
    errors = np.empty(len(evidence.domains))
    for index in range(len(errors)):
        centres = [
            float(logit(evidence.estimate_of(estimate.name)[index]))
            for estimate in estimates
        ]
        moved = [
            estimate._replace(centre=centre)
            for estimate, centre in zip(estimates, centres, strict=True)
        ]
        errors[index] = logit(evidence.accuracy[index]) - _middle(moved)
    scale = shrunk_scale(errors, evidence.noise, INTERVAL_SCALE, PRIOR_WORTH)
    return Estimate("combined", _middle(estimates), scale)


def beside_labels(prior: Estimate) -> Estimate:
    """Return a prior with tails so heavy that labels can overrule it.

    Few left-out domains measure a scale, but not how often a domain is far off.
    """
    scale = LABELLED_SHARE * prior.scale
    return prior._replace(scale=scale, freedom=LABELLED_FREEDOM)


def _middle(estimates: Sequence[Estimate]) -> float:
    """Return the mean of the product of the estimates' densities."""
    centres = [estimate.centre for estimate in estimates]
    reach = 4 * max(estimate.scale for estimate in estimates)

    def log_density(values: np.ndarray) -> np.ndarray:
        return np.sum([estimate.log_density(values) for estimate in estimates], axis=0)

    return believe(log_density, min(centres) - reach, max(centres) + reach).mean


def representatives(confidence: np.ndarray) -> np.ndarray:
    """Return at most 2,000 of the confidences, evenly spaced in their order."""
    if len(confidence) <= REPRESENTATIVES:
        return confidence
    places = (np.arange(REPRESENTATIVES) + 0.5) * len(confidence) / REPRESENTATIVES
    return np.sort(confidence)[places.astype(np.intp)]


def believe_accuracy(
    confidence: np.ndarray, estimates: Sequence[Estimate], labelled: Labelled | None
) -> Belief:
    """Return the posterior of the logit of the accuracy.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples,)
        Calibrated confidences of the domain's rows. A common shift on the logit scale
        reaches every accuracy.
    estimates : sequence of Estimate
    labelled : Labelled or None
    """
    few = representatives(confidence)

    def log_density(shift: np.ndarray) -> np.ndarray:
        accuracy = logit(mean_shifted(few, shift))
        total = np.zeros(len(shift))
        for estimate in estimates:
            total += estimate.log_density(accuracy)
        if labelled is not None:
            total += label_log_density(*labelled, shift)
        return total

    shifts = believe(log_density, -LARGEST_SHIFT, LARGEST_SHIFT)
    return Belief(logit(mean_shifted(few, shifts.grid)), shifts.probability)


def accuracy_interval(belief: Belief, confidence: np.ndarray) -> Interval:
    """Return estimate and 90 % interval; the rows are a sample of their domain."""
    middle = belief.mean
    estimate = float(expit(middle))
    noise = float(np.std(confidence)) / np.sqrt(len(confidence))
    noise *= NORMAL_90 / max(estimate * (1 - estimate), 0.01)
    below = np.hypot(middle - belief.quantile(0.05), noise)
    above = np.hypot(belief.quantile(0.95) - middle, noise)
    return Interval(
        estimate, float(expit(middle - below)), float(expit(middle + above))
    )


def group_accuracy(
    confidence: np.ndarray,
    mask: np.ndarray,
    whole: Belief,
    spread: float,
    labelled: Labelled | None,
) -> GroupAccuracy:
    """Return the expected accuracy of a part of a domain.

    The larger the part, the closer it is to the whole.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples,)
        Of the whole domain.
    mask : ndarray of bool of shape (n_samples,)
        Rows of the part.
    whole : Belief
        Posterior of the domain's accuracy without the part's own labels, which would
        count twice.
    spread : float
        Spread of parts around their domain, on the logit scale.
    labelled : Labelled or None
        Labelled rows of the part.
    """
    moved = whole.mean - float(logit(confidence.mean()))
    own = confidence[mask]
    stray = spread * np.sqrt(1 - len(own) / len(confidence))
    usual = (whole.quantile(0.95) - whole.quantile(0.05)) / 2 / TAIL_90
    scale = float(np.hypot(usual, stray))
    estimate = Estimate("domain", float(logit(own.mean())) + moved, scale)
    belief = believe_accuracy(own, [estimate], labelled)
    return GroupAccuracy(len(own), accuracy_interval(belief, own))
