"""Estimators of the accuracy of unlabelled rows, which err in different ways.

"atc": the share of rows above the confidence that, on labelled domains, as many rows
exceed as are right (average thresholded confidence; Garg et al. 2022). "agreement": the
share on which a second classifier agrees, one that learned from the calibration labels.
"cot": the mean probability of classes that are assigned to the rows in the shares of
the calibration labels, at the smallest cost (confidence by optimal transport; Lu et al.
2023).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from coolhead.calibrators.class_offsets import add_offsets, used_offsets
from coolhead.numerics.softmax import confidence, softmax

# Rows that classes are assigned to: the cost grows with the cube.
ASSIGNED_ROWS = 400
# Penalty of the second classifier, per row, on standardised features.
RIDGE = 0.3
# More features than this are projected at random for the second classifier.
MOST_FEATURES = 128
MOST_WEIGHTS = 16_384


class CalibratedRows(NamedTuple):
    """Rows with the temperature, confidence and class that a calibrator gives them."""

    logits: np.ndarray
    temperature: np.ndarray
    confidence: np.ndarray
    predicted: np.ndarray
    features: np.ndarray | None

    def take(self, rows: np.ndarray) -> "CalibratedRows":
        """Return some of the rows, by mask or numbers."""
        features = None if self.features is None else self.features[rows]
        return CalibratedRows(
            self.logits[rows],
            self.temperature[rows],
            self.confidence[rows],
            self.predicted[rows],
            features,
        )

    def with_offsets(self, offsets: np.ndarray | None) -> "CalibratedRows":
        """Return the rows with class offsets added to their logits.

        offsets : (n_classes,) or (n_samples, n_classes); None adds nothing.
        """
        if offsets is None:
            return self
        logits = add_offsets(self.logits, self.temperature, offsets)
        found, predicted = confidence(logits, self.temperature)
        return self._replace(
            logits=logits, confidence=found.astype(np.float64), predicted=predicted
        )


def scale_rows(calibrator: Any, logits: np.ndarray, features: Any) -> CalibratedRows:
    """Give checked rows the temperatures of a fitted calibrator, no class offsets."""
    given = features if calibrator.uses_features else None
    temperature = calibrator._temperature(logits, given)
    found, predicted = confidence(logits, temperature)
    return CalibratedRows(
        logits, temperature, found.astype(np.float64), predicted, features
    )


def calibrate_rows(
    calibrator: Any, logits: np.ndarray, features: Any
) -> CalibratedRows:
    """Calibrate checked rows by a fitted calibrator.

    Where it has class offsets, the logits of the result contain them.
    """
    found = scale_rows(calibrator, logits, features)
    return found.with_offsets(used_offsets(calibrator))


@dataclass(frozen=True)
class SecondClassifier:
    """Ridge regression on the classes, of features or of a random projection of them.

    Attributes
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    bias : ndarray of shape (n_classes,)
    n_features : int or None
        Width of the features before the projection; None without one.
    """

    weights: np.ndarray
    bias: np.ndarray
    n_features: int | None = None

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return the class with the largest score of each row."""
        wanted = self.n_features or len(self.weights)
        if features.shape[1] != wanted:
            raise ValueError(
                f"features has {features.shape[1]} columns; wanted {wanted}, as in the "
                "calibration data"
            )
        return np.argmax(self.project(features) @ self.weights + self.bias, axis=1)

    def project(self, features: np.ndarray) -> np.ndarray:
        """Return the columns that the weights multiply."""
        if self.n_features is None:
            return features
        return features @ random_signs(self.n_features, len(self.weights))


def random_signs(n_features: int, n_columns: int) -> np.ndarray:
    """Return the same random projection whenever it is asked for."""
    signs = np.random.default_rng(0).integers(0, 2, (n_features, n_columns))
    return ((2 * signs - 1) / np.sqrt(n_columns)).astype(np.float32)


class FeatureSums:
    """Sums over rows from which second classifiers follow, with or without some rows.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
    n_classes : int
    """

    def __init__(self, features: np.ndarray, labels: np.ndarray, n_classes: int):
        width = features.shape[1]
        most = max(8, min(MOST_FEATURES, MOST_WEIGHTS // n_classes))
        self.n_features = width if width > most else None
        if self.n_features is not None:
            features = features @ random_signs(width, most)
        # Sums of squares of features far from zero would lose their digits.
        self.middle = features.mean(axis=0, dtype=np.float64)
        self.columns = features - self.middle
        self.labels, self.n_classes = labels, n_classes
        self.total = self._sums(slice(None))

    def _sums(self, rows: Any) -> tuple[np.ndarray, ...]:
        columns, labels = self.columns[rows], self.labels[rows]
        by_class = np.zeros((self.n_classes, columns.shape[1]))
        np.add.at(by_class, labels, columns)
        counts = np.bincount(labels, minlength=self.n_classes)
        return counts, columns.sum(axis=0), by_class, columns.T @ columns

    def classifier(self, without: np.ndarray | None = None) -> SecondClassifier:
        """Return the classifier of all rows, or of those that a mask leaves."""
        sums = self.total
        if without is not None:
            sums = [a - b for a, b in zip(sums, self._sums(without), strict=True)]
        counts, column_sums, by_class, gram = sums
        n_rows = counts.sum()
        mean = column_sums / n_rows
        gram = gram - n_rows * np.outer(mean, mean)
        variance = np.maximum(np.diagonal(gram) / n_rows, 0)
        floor = 1e-12 * max(float(variance.max(initial=0)), 1e-300)
        scale = np.sqrt(np.where(variance > floor, variance, 1.0))
        gram = gram / np.outer(scale, scale)
        gram[np.diag_indices_from(gram)] += RIDGE * n_rows
        target = (by_class - np.outer(counts, mean)).T / scale[:, None]
        weights = np.linalg.solve(gram, target) / scale[:, None]
        bias = counts / n_rows - (self.middle + mean) @ weights
        return SecondClassifier(
            weights.astype(np.float32), bias.astype(np.float32), self.n_features
        )


def accuracy_threshold(
    found: np.ndarray, right: np.ndarray, codes: np.ndarray
) -> float:
    """Return the confidence that as many rows exceed as are right.

    Parameters
    ----------
    found : ndarray of shape (n_samples,)
        Confidence.
    right : ndarray of bool of shape (n_samples,)
    codes : ndarray of shape (n_samples,)
        Domain of each row; domains count the same.
    """
    sizes = np.bincount(codes)
    share = 1.0 / sizes[codes] / np.count_nonzero(sizes)
    order = np.argsort(-found, kind="stable")
    wanted = float(share @ right)
    at = np.searchsorted(np.cumsum(share[order]), wanted)
    return float(found[order[min(at, len(order) - 1)]])


def assigned_probability(
    logits: np.ndarray, temperature: np.ndarray, shares: np.ndarray
) -> float:
    """Return the mean probability of classes assigned to rows in given shares.

    At most 400 rows, drawn at random, take part.

    Parameters
    ----------
    logits : ndarray of shape (n_samples, n_classes)
    temperature : ndarray of shape (n_samples,)
    shares : ndarray of shape (n_classes,)
    """
    rows = np.random.default_rng(0).permutation(len(logits))[:ASSIGNED_ROWS]
    found = softmax(logits[rows], temperature[rows])
    wanted = shares * len(rows)
    counts = np.floor(wanted).astype(np.intp)
    missing = len(rows) - counts.sum()
    counts[np.argsort(counts - wanted, kind="stable")[:missing]] += 1
    assigned = np.repeat(np.arange(len(shares)), counts)
    costs = found[:, assigned].astype(np.float64)
    pairs = linear_sum_assignment(costs, maximize=True)
    return float(costs[pairs].mean())


def share(found: np.ndarray) -> float:
    """Return a share that is never quite 0 or 1 among few rows."""
    return float((found.sum() + 0.5) / (len(found) + 1))
