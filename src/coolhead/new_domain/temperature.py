"""The offset of log T(x) that belongs to what is believed of a new domain."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from coolhead.new_domain.offsets import LARGEST_OFFSET
from coolhead.new_domain.posterior import Witness, believe, logit
from coolhead.numerics.softmax import confidence as confidence_of
from coolhead.numerics.softmax import score_rows

CURVE_ROWS = 1_000
CURVE = np.linspace(-LARGEST_OFFSET, LARGEST_OFFSET, 49)
# Likelihoods of labels are dear, and smooth.
LIKELIHOOD_POINTS = 61
SLOPES = np.linspace(0.0, 1.5, 7)
SLOPE_SCALE = 0.5


class LabelledLogits(NamedTuple):
    """Labelled rows: logits (n, k), labels (n,), log T (n,)."""

    logits: np.ndarray
    labels: np.ndarray
    log_temperature: np.ndarray


def confidence_curve(
    logits: np.ndarray, log_temperature: np.ndarray, confidence: np.ndarray
) -> np.ndarray:
    """Logit of the mean confidence at each offset of `CURVE`, (49,).

    Taken from rows spread evenly through the order of confidence.
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
    """Half the likelihood of the labels, half that of being right or wrong.

    The first knows more, the second is what calibration of the top class is about;
    their mean did better than either on the development families.
    """
    logits, labels, line = labelled
    scores = score_rows(logits, labels, np.exp(line + offset))
    sure = np.clip(scores.confidence, 1e-12, 1 - 1e-6)
    right = scores.predicted == labels
    either = np.where(right, np.log(sure), np.log1p(-sure))
    return float(either.sum() - scores.log_loss.sum()) / 2


class Move(NamedTuple):
    """log T' = middle + offset + slope (log T - middle)."""

    offset: float
    slope: float


def best_move(
    curve: np.ndarray,
    witnesses: Sequence[Witness],
    labelled: LabelledLogits | None,
    middle: float,
) -> Move:
    """Mean offset under the witnesses, who speak of accuracy, and the labels.

    With labels, also how much of the shape of T(x) they bear out: the mean slope,
    which starts from 1.
    """

    def prior(offsets: np.ndarray) -> np.ndarray:
        accuracy = np.interp(offsets, CURVE, curve)
        return np.sum([one.log_density(accuracy) for one in witnesses], axis=0)

    if labelled is None:
        return Move(believe(prior, -LARGEST_OFFSET, LARGEST_OFFSET).mean, 1.0)
    slope = _mean_slope(prior, labelled, middle)
    bent = _bend(labelled, slope, middle)

    def log_density(offsets: np.ndarray) -> np.ndarray:
        return prior(offsets) + _likelihoods(bent, offsets)

    limits = -LARGEST_OFFSET, LARGEST_OFFSET
    return Move(believe(log_density, *limits, LIKELIHOOD_POINTS).mean, slope)


def _mean_slope(
    prior: Callable[[np.ndarray], np.ndarray], labelled: LabelledLogits, middle: float
) -> float:
    """Posterior mean of the slope, with the offset integrated out."""
    offsets = CURVE[12:-12:2]
    before = prior(offsets)
    logs = np.array(
        [
            np.logaddexp.reduce(
                before + _likelihoods(_bend(labelled, slope, middle), offsets)
            )
            for slope in SLOPES
        ]
    )
    logs -= np.square((SLOPES - 1) / SLOPE_SCALE) / 2
    weights = np.exp(logs - logs.max())
    return float(weights @ SLOPES / weights.sum())


def _bend(labelled: LabelledLogits, slope: float, middle: float) -> LabelledLogits:
    line = middle + slope * (labelled.log_temperature - middle)
    return labelled._replace(log_temperature=line)


def _likelihoods(labelled: LabelledLogits, offsets: np.ndarray) -> np.ndarray:
    return np.array([label_log_likelihood(labelled, offset) for offset in offsets])
