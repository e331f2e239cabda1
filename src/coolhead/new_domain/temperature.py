"""The offset of log T(x) in a new domain, and the confidence to answer at."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from coolhead.calibrators.estimators import CalibratedRows
from coolhead.calibrators.evidence import LARGEST_OFFSET, logit
from coolhead.display import Summarised, Summary
from coolhead.new_domain.posterior import (
    POINTS,
    Belief,
    Estimate,
    believe,
    shift_to,
)
from coolhead.numerics.softmax import confidence as confidence_of
from coolhead.numerics.softmax import score_rows

CURVE_ROWS = 1_000
CURVE = np.linspace(-LARGEST_OFFSET, LARGEST_OFFSET, 49)
# Likelihoods of labels are dear, and smooth.
LIKELIHOOD_POINTS = 61
LARGEST_LOGIT = 8.0


class LabelledLogits(NamedTuple):
    """Labelled rows: logits (n_labels, n_classes), labels, and log T, (n_labels,)."""

    logits: np.ndarray
    labels: np.ndarray
    log_temperature: np.ndarray


def confidence_curve(
    logits: np.ndarray, log_temperature: np.ndarray, confidence: np.ndarray
) -> np.ndarray:
    """Return the logit of the mean confidence at each offset of `CURVE`, (49,).

    Rows are a sample, evenly spaced in the order of confidence.
    """
    count = min(CURVE_ROWS, len(logits))
    places = ((np.arange(count) + 0.5) * len(logits) / count).astype(np.intp)
    rows = np.argsort(confidence, kind="stable")[places]
    few, lines = logits[rows], log_temperature[rows]
    found = [confidence_of(few, np.exp(lines + offset))[0].mean() for offset in CURVE]
    curve = logit(np.array(found))
    # A sample's mean is moved onto that of all rows.
    return curve + float(logit(confidence.mean()) - np.interp(0.0, CURVE, curve))


def label_log_likelihood(labelled: LabelledLogits, offset: float) -> float:
    """Return the mean of the log-likelihoods of labels and of being right or wrong.

    The first has more information, the second is what top-label calibration measures;
    their mean did better than either on the development families.
    """
    logits, labels, line = labelled
    scores = score_rows(logits, labels, np.exp(line + offset))
    sure = np.clip(scores.confidence, 1e-12, 1 - 1e-6)
    right = scores.predicted == labels
    either = np.where(right, np.log(sure), np.log1p(-sure))
    return float(either.sum() - scores.log_loss.sum()) / 2


def offset_to(curve: np.ndarray, accuracy: np.ndarray | float) -> np.ndarray:
    """Return the offset where the curve has each logit of accuracy, or its last one."""
    return np.asarray(np.interp(accuracy, curve[::-1], CURVE[::-1]))


def believe_along(
    curve: np.ndarray, prior: Estimate, labelled: LabelledLogits | None
) -> Belief:
    """Return the posterior of the logit of accuracy if only an offset is unknown.

    Parameters
    ----------
    curve : ndarray of shape (49,)
        Logit of the mean confidence at each offset of `CURVE`.
    prior : Estimate
        Prior of the logit of accuracy.
    labelled : LabelledLogits or None
        Labelled rows, with their log T at offset 0 of the curve.

    Returns
    -------
    belief : Belief
    """

    def log_density(accuracy: np.ndarray) -> np.ndarray:
        found = prior.log_density(accuracy)
        if labelled is None:
            return found
        return found + _likelihoods(labelled, offset_to(curve, accuracy))

    return believe(log_density, -LARGEST_LOGIT, LARGEST_LOGIT)


def best_offset(
    curve: np.ndarray, estimates: Sequence[Estimate], labelled: LabelledLogits | None
) -> float:
    """Return the mean offset of log T under estimates of accuracy and labels."""

    def log_density(offsets: np.ndarray) -> np.ndarray:
        accuracy = np.interp(offsets, CURVE, curve)
        found = np.sum([one.log_density(accuracy) for one in estimates], axis=0)
        return found if labelled is None else found + _likelihoods(labelled, offsets)

    points = POINTS if labelled is None else LIKELIHOOD_POINTS
    return believe(log_density, -LARGEST_OFFSET, LARGEST_OFFSET, points).mean


def _likelihoods(labelled: LabelledLogits, offsets: np.ndarray) -> np.ndarray:
    return np.array([label_log_likelihood(labelled, offset) for offset in offsets])


SMALLEST_ANSWERED = 20


@dataclass(frozen=True, repr=False)
class Threshold(Summarised):
    """Answer where the calibrated confidence is at least this.

    The promise is about the expected accuracy of all rows of the domain at or above
    the threshold, not about how many of the answered rows of one batch happen to be
    right. It rests on the assumption that the domain is off by one factor of T(x).

    Attributes
    ----------
    confidence : float or None
        Lowest confidence to answer at; None where none will do.
    share : float
        Share of the rows that are answered.
    accuracy : float
        Expected accuracy of the answered rows.
    at_least : float
        Accuracy that the answered rows reach with certainty `level`.
    wanted, level : float
        Accuracy and certainty asked for.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 1.5])
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, seen.logits, seen.labels, sample_domain=seen.domains
    ... )
    >>> there = ch.NewDomain(cal, unseen.logits, evidence=known)
    >>> threshold = there.threshold(accuracy=0.8)
    >>> threshold.wanted, 0 < threshold.share <= 1
    (0.8, True)
    """

    confidence: float | None
    share: float
    accuracy: float
    at_least: float
    wanted: float
    level: float

    def _summary(self) -> Summary:
        return Summary(f"Threshold: {self}")

    def __str__(self) -> str:
        if self.confidence is None:
            return (
                f"{self.wanted:.0%} cannot be had here with {self.level:.0%} certainty:"
                " even the most confident rows are expected to be right in "
                f"{self.accuracy:.0%} and at least {self.at_least:.0%}; more labels "
                "would narrow this"
            )
        return (
            f"answer at confidence {self.confidence:.3f} or more: {self.share:.0%} of "
            f"the rows, right in {self.accuracy:.0%}, at least {self.at_least:.0%} with"
            f" {self.level:.0%} certainty"
        )


def find_threshold(
    rows: CalibratedRows,
    prior: Estimate,
    labelled: LabelledLogits | None,
    wanted: float,
    level: float,
) -> Threshold:
    """Find the lowest confidence above which rows are right as often as wanted.

    Parameters
    ----------
    rows : CalibratedRows
        Rows of the new domain, as its calibrator has them.
    prior : Estimate
        Logit of the accuracy of all rows, before labels.
    labelled : LabelledLogits or None
        Labelled rows, with the log T of `rows`.
    wanted, level : float
        Accuracy of the answered rows, and how certain it shall be.

    Returns
    -------
    threshold : Threshold
    """
    if not 0 < wanted < 1:
        raise ValueError(f"accuracy is {wanted}; wanted a share between 0 and 1")
    curve = confidence_curve(rows.logits, np.log(rows.temperature), rows.confidence)
    belief = believe_along(curve, prior, labelled)
    order = np.argsort(-rows.confidence, kind="stable")
    ordered, counts = rows.confidence[order], np.arange(1, len(order) + 1)
    expected, lowest = (
        confidence_at(rows, curve, accuracy)[order]
        for accuracy in (belief.mean, belief.quantile(1 - level))
    )
    likely, lower = np.cumsum(expected) / counts, np.cumsum(lowest) / counts
    # The rows are a sample of their domain, whose mean above a threshold may be less.
    variance = np.maximum(np.cumsum(np.square(lowest)) / counts - np.square(lower), 0)
    noise = NormalDist().inv_cdf(level) * np.sqrt(variance / counts)
    at_least = likely - np.hypot(likely - lower, noise)
    # Only the last of equal confidences can be separated from the next.
    last = np.append(ordered[1:] < ordered[:-1], True)
    least = min(SMALLEST_ANSWERED, len(ordered))
    enough = np.flatnonzero((at_least >= wanted) & last & (counts >= least))
    at = int(enough[-1]) if len(enough) else least - 1
    found = float(ordered[at]) if len(enough) else None
    share = (at + 1) / len(ordered) if len(enough) else 0.0
    return Threshold(
        found, share, float(likely[at]), float(at_least[at]), wanted, level
    )


def confidence_at(
    rows: CalibratedRows, curve: np.ndarray, accuracy: float
) -> np.ndarray:
    """Return confidences at the temperature where their mean is an accuracy.

    Domains are off by a factor of T, which moves large logits more than small ones. A
    shift of the logits of confidence adds what no temperature reaches, such as an
    accuracy below chance.

    Parameters
    ----------
    rows : CalibratedRows
        Rows with the temperatures to start from.
    curve : ndarray of shape (49,)
        Logit of their mean confidence at each offset of log T.
    accuracy : float
        Logit of the accuracy.

    Returns
    -------
    confidence : ndarray of shape (n_samples,)
    """
    temperature = rows.temperature * np.exp(offset_to(curve, accuracy))
    found = confidence_of(rows.logits, temperature)[0]
    return expit(logit(found) + shift_to(found, float(expit(accuracy))))
