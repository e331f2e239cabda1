"""What is remembered of a batch of predictions: counts that never grow."""

from typing import Any

import numpy as np

from coolhead.calibrators.base import PredictionDetails
from coolhead.monitor.expected import N_BINS, Expected, count_bins
from coolhead.numerics.arrays import readable
from coolhead.numerics.checks import check_features, check_finite, check_labels
from coolhead.shift.clusters import Clusters, locate

# Quarter octaves from 2^-20 to 2^20; the first and last bin hold what lies beyond.
TEMPERATURE_EDGES = 2.0 ** np.arange(-20, 20.25, 0.25)
UNKNOWN_LABEL = -1
COUNTS = {
    "n_rows": (),
    "n_checked": (),
    "n_outside": (),
    "n_near": (),
    "n_unsure": (),
    "confidence_sum": (),
    "temperature_counts": (len(TEMPERATURE_EDGES) + 1,),
    "bin_counts": (N_BINS,),
    "bin_confidence": (N_BINS,),
    "bin_correct": (N_BINS,),
}


def no_counts() -> dict[str, np.ndarray]:
    """The state before the first batch."""
    return {name: np.zeros(shape) for name, shape in COUNTS.items()}


def count_batch(
    details: PredictionDetails,
    labels: Any,
    features: Any,
    expected: Expected,
    regions: Clusters | None,
) -> dict[str, np.ndarray]:
    """Counts of one batch; refuses before anything is counted."""
    confidence = _confidence(details)
    n_rows = len(confidence)
    counts: dict[str, Any] = no_counts()
    counts["n_rows"] += n_rows
    counts["confidence_sum"] += confidence.sum()
    counts["n_unsure"] += np.count_nonzero(expected.is_unsure(confidence))
    if details.temperature is not None:
        temperature = _per_row(details.temperature, n_rows, "temperature")
        places = np.searchsorted(TEMPERATURE_EDGES, temperature, "right")
        counts["temperature_counts"] = np.bincount(
            places, minlength=len(TEMPERATURE_EDGES) + 1
        ).astype(float)
    distance = find_distance(details, features, expected.reach, regions, n_rows)
    if distance is not None:
        counts["n_checked"] += n_rows
        # Written so that a distance that overflowed to NaN is no reason for calm.
        counts["n_outside"] += np.count_nonzero(~(distance <= expected.reach))
        counts["n_near"] += np.count_nonzero(distance < expected.near)
    if labels is not None:
        counts |= _count_labelled(details.probabilities, confidence, labels)
    return counts


def find_distance(
    details: PredictionDetails,
    features: Any,
    reach: float,
    regions: Clusters | None,
    n_rows: int,
) -> np.ndarray | None:
    """(n,) distance of each row to its nearest cluster centre, in radii.

    None where nobody can tell: no features, or rows of which only "covered" is known
    though another `reach` is asked for.
    """
    if regions is not None:
        if features is None:
            return None
        width = regions.centers.shape[1]
        return locate(regions, check_features(features, n_rows, width))[1]
    if details.distance is not None:
        return _per_row(details.distance, n_rows, "distance")
    if details.covered is not None and reach == 1:
        covered = _per_row(details.covered, n_rows, "covered")
        return np.where(covered, 1.0, np.inf)
    return None


def _confidence(details: PredictionDetails) -> np.ndarray:
    if not hasattr(details, "probabilities"):
        raise TypeError(
            f"details is a {type(details).__name__}; wanted what calibrator.details "
            "gave of the batch"
        )
    probabilities = np.asarray(details.probabilities)
    if probabilities.ndim != 2:
        raise ValueError(
            f"details.probabilities has shape {probabilities.shape}; wanted (n, k)"
        )
    check_finite(probabilities, "details.probabilities")
    return probabilities.max(axis=1).astype(np.float64)


def _per_row(values: Any, n_rows: int, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise ValueError(
            f"details.{name} has shape {array.shape}; wanted one per row, ({n_rows},)"
        )
    return array


def _count_labelled(
    probabilities: np.ndarray, confidence: np.ndarray, labels: Any
) -> dict[str, np.ndarray]:
    given = np.asarray(readable(labels, "labels"))
    known = given != UNKNOWN_LABEL
    n_rows, n_classes = probabilities.shape
    codes = check_labels(np.where(known, given, 0), n_classes, n_rows)
    known = known.reshape(n_rows)
    correct = probabilities.argmax(axis=1) == codes
    return count_bins(confidence[known], correct[known])
