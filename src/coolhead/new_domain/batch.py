"""What unlabelled rows say about their own accuracy.

Two witnesses who err differently: the share of rows surer than a threshold at which
labelled domains are right as often as they are sure (ATC; Garg et al. 2022), and the
mean probability of labels dealt out so that every class gets its usual share (COT; Lu
et al. 2023). Their mean on the logit scale is what is believed.
"""

from typing import Any

import numpy as np

from coolhead.new_domain.posterior import expit, logit
from coolhead.numerics import softmax

TRANSPORTED_ROWS = 500


def equal_domains_threshold(
    confidence: np.ndarray, right: np.ndarray, codes: np.ndarray
) -> float:
    """The confidence that as many rows exceed as are right, domains counting alike."""
    sizes = np.bincount(codes)
    share = 1.0 / sizes[codes] / np.count_nonzero(sizes)
    order = np.argsort(-confidence, kind="stable")
    wanted = float(share @ right)
    at = np.searchsorted(np.cumsum(share[order]), wanted)
    return float(confidence[order[min(at, len(order) - 1)]])


def transported_accuracy(
    logits: np.ndarray, temperature: np.ndarray, label_shares: np.ndarray
) -> float:
    """Mean probability of labels assigned best under the given shares of classes.

    Solved on at most 500 rows, evenly taken: the assignment is cubic in their number.
    """
    from scipy.optimize import linear_sum_assignment

    wanted = min(len(logits), TRANSPORTED_ROWS)
    rows = np.linspace(0, len(logits) - 1, wanted).astype(np.intp)
    probabilities = softmax.softmax(logits[rows], temperature[rows])
    columns = np.repeat(np.arange(len(label_shares)), _counts(label_shares, wanted))
    cost = probabilities[:, columns]
    row, column = linear_sum_assignment(cost, maximize=True)
    return float(cost[row, column].mean())


def batch_accuracy(
    logits: np.ndarray,
    temperature: np.ndarray,
    confidence: np.ndarray,
    known: Any,
) -> float:
    """The accuracy that unlabelled rows suggest.

    known : has `threshold`, of labelled domains, and their `label_shares`.
    """
    surer = float(np.mean(confidence > known.threshold))
    # A share of few rows is never quite 0 or 1.
    surer = (surer * len(confidence) + 0.5) / (len(confidence) + 1)
    dealt = transported_accuracy(logits, temperature, known.label_shares)
    return float(expit((logit(surer) + logit(dealt)) / 2))


def _counts(shares: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers proportional to the shares that sum to `total`."""
    wanted = shares / shares.sum() * total
    counts = np.floor(wanted).astype(np.intp)
    largest = np.argsort(counts - wanted, kind="stable")[: total - counts.sum()]
    counts[largest] += 1
    return counts
