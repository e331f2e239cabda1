"""What the calibration domains show, so that a new one can be compared with them."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from coolhead.calibrators.base import PredictionDetails
from coolhead.calibrators.data import find_domains
from coolhead.calibrators.evidence import (
    counted,
    distance_counts,
    unsure_rows,
)
from coolhead.calibrators.left_out import held_out_distances, left_out_distances
from coolhead.metrics.bins import N_BINS, equal_width_index
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_features, check_finite
from coolhead.numerics.classes import Names, encode_labels
from coolhead.shift.clusters import Clusters, locate

SHARES = ("outside", "inside", "unsure")
Seen = tuple[float, float] | float


@dataclass(frozen=True)
class Expected:
    """Counts in each calibration domain, (found, rows); or a share known exactly.

    Attributes
    ----------
    reach : a row is outside when it lies further than this many radii from its
        nearest cluster centre. Above one where left-out domains lie far outside.
    outside : {domain: (rows outside, rows)} of each domain when the clusters are
        found in the others. Empty: nothing is known.
    near, inside : {domain: (rows nearer than `near` radii to a centre, rows)}. Noise
        of a small scale lies where no data is, in the middle.
    middle : median confidence of the calibration rows; None: nothing is known.
    unsure : {domain: (rows less sure than `middle`, rows)}.
    right : {domain: (right answers, rows)} in each of 15 bins of confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.monitor import Expected
    >>> expected = Expected(middle=0.8, unsure={"north": (40, 100)})
    >>> expected.is_unsure(np.array([0.7, 0.9]))
    array([ True, False])
    """

    reach: float = 1.0
    outside: dict[str, Seen] = field(default_factory=dict)
    near: float = 0.0
    inside: dict[str, Seen] = field(default_factory=dict)
    middle: float | None = None
    unsure: dict[str, Seen] = field(default_factory=dict)
    right: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.reach < np.inf:
            raise ValueError(f"reach is {self.reach}; wanted a number above 0")
        for name in SHARES:
            # After JSON the pairs are lists.
            known = {
                domain: _pair(seen) for domain, seen in getattr(self, name).items()
            }
            for domain, seen in known.items():
                share = seen if isinstance(seen, float) else seen[0] / max(seen[1], 1)
                if not 0 <= share <= 1:
                    raise ValueError(
                        f"{name} of {domain} is {seen}; wanted a share between 0 and "
                        "1, or (found, rows)"
                    )
            object.__setattr__(self, name, known)
        right = {
            domain: np.reshape(two, (2, N_BINS)) for domain, two in self.right.items()
        }
        lists = {
            domain: tuple(two.astype(float).tolist()) for domain, two in right.items()
        }
        object.__setattr__(self, "right", lists)

    @classmethod
    def of_evidence(cls, shown: dict[str, Any]) -> Self:
        """Unpack what the evidence of a fitted calibrator holds for monitors."""
        unpacked: dict[str, Any] = {
            name: dict(zip(found[0].tolist(), found[1].tolist(), strict=True))
            if isinstance(found, tuple | list)
            else float(found)
            for name, found in shown.items()
        }
        return cls(**unpacked)

    def is_unsure(self, confidence: np.ndarray) -> np.ndarray:
        """(n,) True for rows less sure than half of the calibration rows."""
        return unsure_rows(confidence, -np.inf if self.middle is None else self.middle)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, also after JSON made lists of the tuples."""
        try:
            return cls(**state)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                f"what is expected is damaged ({type(error).__name__}: {error}); "
                "wanted what Expected.to_dict gives"
            ) from error


def _pair(seen: Any) -> Seen:
    if isinstance(seen, int | float):
        return float(seen)
    found, rows = seen
    return float(found), float(rows)


def find_served(domains: np.ndarray, served: Any) -> np.ndarray | None:
    """(n,) True for rows of the domains named; None: no difference is made."""
    if served is None:
        return None
    known = [str(name) for name in np.unique(domains)]
    for name in map(str, np.atleast_1d(served)):
        if name not in known:
            raise ValueError(
                f"served names {name}, which sample_domain does not hold; wanted some "
                f"of {', '.join(known)}"
            )
    return np.isin(domains.astype(str), np.atleast_1d(served).astype(str))


def expect_distances(
    features: np.ndarray,
    domains: np.ndarray,
    clusters: Clusters,
    served: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return what `Expected` holds about distances, for clusters like these.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
        Of the calibration rows.
    domains : ndarray of shape (n_samples,)
    clusters : Clusters
    served : ndarray of bool of shape (n_samples,), default=None
        Rows of domains that are expected again. They are compared with clusters in
        which they have a part; others as strangers to all clusters.
    """
    if len(features) < 2:
        return {}
    if served is None:
        apart = left_out_distances(features, find_domains(domains, None), clusters)
        served = np.ones(len(features), bool)
    else:
        apart = {
            str(name): held_out_distances(features, domains == name, clusters)
            for name in np.unique(domains[served])
        }
    own, domains = locate(clusters, features[served])[1], domains[served]
    within = {str(name): own[domains == name] for name in np.unique(domains)}
    return distance_counts(apart, within) if apart else {}


def expect_adapted(name: str, details: PredictionDetails) -> Expected:
    """Return what a calibrator adapted to a domain expects: what it found there.

    Other domains were calibrated by another temperature, and are nearer or further.
    """
    confidence = details.probabilities.max(axis=1).astype(np.float64)
    middle = float(np.median(confidence))
    shown: dict[str, Any] = {"middle": middle}
    shown["unsure"] = {name: counted(unsure_rows(confidence, middle))}
    far = details.distance
    if far is not None and np.isfinite(far).all():
        shown |= distance_counts({name: far}, {name: far})
    return Expected(**shown)


def expect_confidence(
    calibrator: Any, logits: np.ndarray, features: Any, domains: np.ndarray, labels: Any
) -> dict[str, Any]:
    """`middle`, `unsure` and, where labels are known, `right` of `Expected`.

    These are of the rows the calibrator was fitted on, each domain by itself.
    """
    confidence = np.empty(len(logits))
    correct = np.zeros(len(logits))
    for rows in row_blocks(*logits.shape):
        # As in `details`: another way to the same number may end in another digit.
        part = None if features is None else features[rows]
        probabilities = calibrator.predict_proba(logits[rows], part)
        confidence[rows] = probabilities.max(axis=1)
        if labels is not None:
            correct[rows] = probabilities.argmax(axis=1) == labels[rows]
    middle = float(np.median(confidence))
    unsure, right = {}, {}
    for name in np.unique(domains):
        own = domains == name
        unsure[str(name)] = counted(unsure_rows(confidence[own], middle))
        if labels is not None:
            bins = count_bins(confidence[own], correct[own])
            right[str(name)] = (
                bins["bin_correct"].tolist(),
                bins["bin_counts"].tolist(),
            )
    return {"middle": middle, "unsure": unsure, "right": right}


def count_bins(confidence: np.ndarray, correct: np.ndarray) -> dict[str, np.ndarray]:
    """Rows, confidence and right answers in each of 15 bins of equal width."""
    if not len(confidence):
        return {}
    index = equal_width_index(confidence, N_BINS)
    sums = {"counts": None, "confidence": confidence, "correct": correct}
    return {
        f"bin_{name}": np.bincount(index, weights, N_BINS).astype(float)
        for name, weights in sums.items()
    }


COUNTS = {
    "n_rows": (),
    "n_checked": (),
    "n_outside": (),
    "n_near": (),
    "n_unsure": (),
    "confidence_sum": (),
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
    classes: Names | None,
) -> dict[str, np.ndarray]:
    """Counts of one batch; refuses before anything is counted."""
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
    confidence = probabilities.max(axis=1).astype(np.float64)
    n_rows, n_classes = probabilities.shape
    counts: dict[str, Any] = no_counts()
    counts["n_rows"] += n_rows
    counts["confidence_sum"] += confidence.sum()
    counts["n_unsure"] += np.count_nonzero(expected.is_unsure(confidence))
    distance = find_distance(details, features, expected.reach, regions, n_rows)
    if distance is not None:
        counts["n_checked"] += n_rows
        # Written so that a distance that overflowed to NaN is no reason for calm.
        counts["n_outside"] += np.count_nonzero(~(distance <= expected.reach))
        counts["n_near"] += np.count_nonzero(distance < expected.near)
    if labels is not None:
        codes, _ = encode_labels(labels, n_classes, n_rows, classes, unlabelled=True)
        known = codes >= 0
        correct = probabilities.argmax(axis=1) == codes
        counts |= count_bins(confidence[known], correct[known])
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


def _per_row(values: Any, n_rows: int, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise ValueError(
            f"details.{name} has shape {array.shape}; wanted one per row, ({n_rows},)"
        )
    return array
