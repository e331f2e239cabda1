"""The offset of log T(x) that belongs to what is believed of a new domain."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coolhead.new_domain.offsets import LARGEST_OFFSET
from coolhead.new_domain.posterior import Witness, believe, logit
from coolhead.numerics.softmax import confidence as confidence_of
from coolhead.numerics.softmax import score_rows

CURVE_ROWS = 1_000
CURVE = np.linspace(-LARGEST_OFFSET, LARGEST_OFFSET, 49)


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


def best_domain_offset(
    curve: np.ndarray, witnesses: Sequence[Witness], labelled: LabelledLogits | None
) -> float:
    """Mean offset under the witnesses, who speak of accuracy, and the labels."""

    def log_density(offsets: np.ndarray) -> np.ndarray:
        accuracy = np.interp(offsets, CURVE, curve)
        total = np.zeros(len(offsets))
        for witness in witnesses:
            total += witness.log_density(accuracy)
        if labelled is not None:
            total += [label_log_likelihood(labelled, offset) for offset in offsets]
        return total

    return believe(log_density, -LARGEST_OFFSET, LARGEST_OFFSET).mean
