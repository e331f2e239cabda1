"""What unlabelled rows say about their own accuracy: two witnesses who err differently.

"surer": the share of rows above the confidence that, on labelled domains, as many rows
exceed as are right (average thresholded confidence; Garg et al. 2022). "agreement": the
share on which a second classifier agrees, one that learned from the calibration labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

# Ridge of the second classifier, per row, on standardised features.
RIDGE = 0.3


@dataclass(frozen=True)
class SecondClassifier:
    """Linear scores x @ weights + bias of each class; weights (d, k), bias (k,)."""

    weights: np.ndarray
    bias: np.ndarray

    def predict(self, features: np.ndarray) -> np.ndarray:
        """The class with the largest score, (n,)."""
        return np.argmax(features @ self.weights + self.bias, axis=1)


@dataclass(frozen=True)
class Comparison:
    """What a batch is compared with.

    threshold : confidence that as many labelled rows exceed as are right.
    second : a classifier of the features, or None without features.
    """

    threshold: float
    second: SecondClassifier | None

    def suggest(
        self, confidence: np.ndarray, predicted: np.ndarray, features: Any
    ) -> dict[str, float]:
        """The accuracy of rows without labels, as each witness has it."""
        found = {"surer": _share(confidence > self.threshold)}
        if self.second is not None and features is not None:
            found["agreement"] = _share(self.second.predict(features) == predicted)
        return found


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
        gram[np.diag_indices_from(gram)] += RIDGE * len(rows)
        weights = rows.T @ np.linalg.solve(gram, target)
    else:
        gram = rows.T @ rows
        gram[np.diag_indices_from(gram)] += RIDGE * len(rows)
        weights = np.linalg.solve(gram, rows.T @ target)
    weights = weights / scale[:, None]
    return SecondClassifier(weights, shares - centre @ weights)


def _share(found: np.ndarray) -> float:
    """A share of few rows is never quite 0 or 1."""
    return float((found.sum() + 0.5) / (len(found) + 1))
