"""What unlabelled rows say about their own accuracy: witnesses who err differently.

"surer": the share of rows above the confidence that, on labelled domains, as many rows
exceed as are right (average thresholded confidence; Garg et al. 2022). "agreement": the
share on which a second classifier agrees, one that learned from the calibration labels.
"transport": the mean probability of classes dealt out to the rows in the shares that
the calibration labels have, as cheaply as possible (COT; Lu et al. 2023).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from coolhead.numerics.single_thread import one_blas_thread
from coolhead.numerics.softmax import confidence, softmax

# Rows that classes are dealt out to: the cost grows with the cube.
TRANSPORTED = 400
# Penalty of the second classifier, per row, on standardised features.
PENALTY = 0.3


@dataclass(frozen=True)
class SecondClassifier:
    """Linear scores x @ weights + bias of each class; weights (d, k), bias (k,)."""

    weights: np.ndarray
    bias: np.ndarray

    @one_blas_thread()
    def predict(self, features: np.ndarray) -> np.ndarray:
        """The class with the largest score, (n,)."""
        if features.shape[1] != len(self.weights):
            raise ValueError(
                f"features has {features.shape[1]} columns; wanted "
                f"{len(self.weights)}, as in the calibration data"
            )
        return np.argmax(features @ self.weights + self.bias, axis=1)


@dataclass(frozen=True)
class Comparison:
    """What a batch is compared with.

    threshold : confidence that as many labelled rows exceed as are right.
    second : a classifier of the features, or None without features.
    shares : (k,) of the classes among the calibration labels; None in older files.
    """

    threshold: float
    second: SecondClassifier | None
    shares: np.ndarray | None = None

    def suggest(self, rows: "SeenRows") -> dict[str, float]:
        """The accuracy of rows without labels, as each witness has it."""
        found = {"surer": _share(rows.confidence > self.threshold)}
        if self.second is not None and rows.features is not None:
            agrees = self.second.predict(rows.features) == rows.predicted
            found["agreement"] = _share(agrees)
        if self.shares is not None:
            found["transport"] = dealt_probability(*rows[:2], self.shares)
        return found


class SeenRows(NamedTuple):
    """Rows through the eyes of a calibrator: what it was given, and what it says."""

    logits: np.ndarray
    temperature: np.ndarray
    confidence: np.ndarray
    predicted: np.ndarray
    features: np.ndarray | None


@one_blas_thread()
def see(calibrator: Any, logits: np.ndarray, features: Any) -> SeenRows:
    """Ask a fitted calibrator about checked rows."""
    given = features if calibrator.uses_features else None
    temperature = calibrator._temperature(logits, given)
    sure, predicted = confidence(logits, temperature)
    return SeenRows(logits, temperature, sure.astype(np.float64), predicted, features)


def equal_domains_threshold(
    sure: np.ndarray, right: np.ndarray, codes: np.ndarray
) -> float:
    """The confidence that as many rows exceed as are right, domains counting alike."""
    sizes = np.bincount(codes)
    share = 1.0 / sizes[codes] / np.count_nonzero(sizes)
    order = np.argsort(-sure, kind="stable")
    wanted = float(share @ right)
    at = np.searchsorted(np.cumsum(share[order]), wanted)
    return float(sure[order[min(at, len(order) - 1)]])


def class_shares(labels: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """(k,) share of each class, domains counting alike."""
    counts = np.zeros((codes.max() + 1, n_classes))
    np.add.at(counts, (codes, labels), 1.0)
    counts = counts[counts.sum(axis=1) > 0]
    return (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)


def dealt_probability(
    logits: np.ndarray, temperature: np.ndarray, shares: np.ndarray
) -> float:
    """Mean probability of the dealt classes, on at most 400 rows drawn at random."""
    rows = np.random.default_rng(0).permutation(len(logits))[:TRANSPORTED]
    found = softmax(logits[rows], temperature[rows]).astype(np.float64)
    wanted = shares * len(rows)
    counts = np.floor(wanted).astype(np.intp)
    missing = len(rows) - counts.sum()
    counts[np.argsort(counts - wanted, kind="stable")[:missing]] += 1
    dealt = np.repeat(np.arange(len(shares)), counts)
    pairs = linear_sum_assignment(found[:, dealt], maximize=True)
    return float(found[pairs[0], dealt[pairs[1]]].mean())


@one_blas_thread()
def train_second(
    features: np.ndarray, labels: np.ndarray, n_classes: int
) -> SecondClassifier:
    """Ridge regression on the classes, in closed form."""
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    rows = ((features - centre) / scale).astype(np.float64)
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    target = np.eye(n_classes)[labels] - shares
    if len(rows) < rows.shape[1]:
        # The same solution from the smaller of the two systems.
        gram = rows @ rows.T
        gram[np.diag_indices_from(gram)] += PENALTY * len(rows)
        weights = rows.T @ np.linalg.solve(gram, target)
    else:
        gram = rows.T @ rows
        gram[np.diag_indices_from(gram)] += PENALTY * len(rows)
        weights = np.linalg.solve(gram, rows.T @ target)
    weights = weights / scale[:, None]
    return SecondClassifier(weights, shares - centre @ weights)


def _share(found: np.ndarray) -> float:
    """A share of few rows is never quite 0 or 1."""
    return float((found.sum() + 0.5) / (len(found) + 1))
