"""What the calibration domains show, and the counts of new rows compared with it."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from coolhead.calibrators.base import PredictionDetails
from coolhead.calibrators.data import find_domains
from coolhead.calibrators.evidence import counted, distance_counts, unsure_rows
from coolhead.calibrators.left_out import held_out_distances, left_out_distances
from coolhead.metrics.bins import N_BINS, equal_width_index
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
    reach : float, default=1.0
        A row is outside when it lies further than this many radii from its nearest
        cluster centre. Above one where left-out domains lie far outside.
    outside : dict of str to (float, float) or float
        Rows outside, and rows, of each domain when the clusters are found in the
        others. Empty: nothing is known.
    near : float, default=0.0
    inside : dict of str to (float, float) or float
        Rows nearer than `near` radii to a centre, and rows. Noise of a small scale
        lies in the middle, where there are no data.
    middle : float or None
        Median confidence of the calibration rows; None: nothing is known.
    unsure : dict of str to (float, float) or float
        Rows less confident than `middle`, and rows.
    right : dict of str to (list, list)
        Correct predictions, and rows, in each of 15 bins of confidence.

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
            given = getattr(self, name).items()
            known = {domain: _share(name, domain, seen) for domain, seen in given}
            object.__setattr__(self, name, known)
        right = {
            domain: tuple(np.reshape(two, (2, N_BINS)).astype(float).tolist())
            for domain, two in self.right.items()
        }
        object.__setattr__(self, "right", right)

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
        """Return a mask of rows less confident than half of the calibration rows."""
        return unsure_rows(confidence, -np.inf if self.middle is None else self.middle)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Restore what `to_dict` gave, also after JSON made lists of the tuples."""
        try:
            return cls(**state)
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                f"what is expected is damaged ({type(error).__name__}: {error}); "
                "wanted what Expected.to_dict gives"
            ) from error


def _share(name: str, domain: str, seen: Any) -> Seen:
    """Check a share, or a pair of counts; pairs are lists after JSON."""
    seen = float(seen) if isinstance(seen, int | float) else tuple(map(float, seen))
    share = seen if isinstance(seen, float) else seen[0] / max(seen[1], 1)
    if not 0 <= share <= 1:
        raise ValueError(
            f"{name} of {domain} is {seen}; wanted a share between 0 and 1, or "
            "(found, rows)"
        )
    return seen  # pyright: ignore[reportReturnType]


def find_served(domains: np.ndarray, served: Any) -> np.ndarray | None:
    """Return a mask of the rows of these domains; None where `served` is None."""
    if served is None:
        return None
    codes, served = domains.astype(str), np.atleast_1d(served).astype(str)
    for name in served:
        if name not in codes:
            raise ValueError(
                f"served names {name}, which sample_domain does not hold; wanted some "
                f"of {', '.join(np.unique(codes))}"
            )
    return np.isin(codes, served)


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
        which they have a part; others with clusters of the other domains.
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
    unsure: dict[str, Seen] = {name: counted(unsure_rows(confidence, middle))}
    far = details.distance
    if far is None or not np.isfinite(far).all():
        return Expected(middle=middle, unsure=unsure)
    distances = distance_counts({name: far}, {name: far})
    return Expected(middle=middle, unsure=unsure, **distances)


def expect_confidence(
    calibrator: Any, logits: np.ndarray, features: Any, domains: np.ndarray, labels: Any
) -> dict[str, Any]:
    """Return `middle`, `unsure` and, where labels are known, `right` of `Expected`.

    These are of the rows the calibrator was fitted on, each domain by itself.
    """
    confidence, predicted = calibrator.confidence(logits, features)
    confidence = confidence.astype(np.float64)
    middle = float(np.median(confidence))
    domain_rows = {str(name): domains == name for name in np.unique(domains)}
    unsure, right = {}, {}
    for name, own in domain_rows.items():
        unsure[name] = counted(unsure_rows(confidence[own], middle))
        if labels is not None:
            bins = count_bins(confidence[own], (predicted == labels)[own])
            right[name] = bins["bin_correct"], bins["bin_counts"]
    return {"middle": middle, "unsure": unsure, "right": right}


def count_bins(confidence: np.ndarray, correct: np.ndarray) -> dict[str, np.ndarray]:
    """Count rows, confidence and correct predictions in 15 bins of equal width."""
    index = equal_width_index(confidence, N_BINS)
    sums = {"counts": None, "confidence": confidence, "correct": correct}
    return {
        f"bin_{name}": np.bincount(index, weights, N_BINS).astype(float)
        for name, weights in sums.items()
    }


SUMS = ("n_rows", "n_checked", "n_outside", "n_near", "n_unsure", "confidence_sum")
BIN_SUMS = ("bin_counts", "bin_confidence", "bin_correct")
# Names and shapes of the counts.
COUNTS = dict[str, Any].fromkeys(SUMS, ()) | dict.fromkeys(BIN_SUMS, (N_BINS,))


def no_counts() -> dict[str, np.ndarray]:
    """Return the state before the first batch."""
    return {name: np.zeros(shape) for name, shape in COUNTS.items()}


def count_batch(
    details: PredictionDetails,
    labels: Any,
    features: Any,
    expected: Expected,
    regions: Clusters | None,
    classes: Names | None,
) -> dict[str, np.ndarray]:
    """Return the counts of one batch; refuse it before anything is counted."""
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
        # Written so that a distance that overflowed to NaN counts as outside.
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
    """Return the distance of each row to its nearest cluster centre, in radii.

    None where it is not known: no features, or details that hold only "covered" while
    another `reach` is asked for.
    """
    if regions is not None:
        if features is None:
            return None
        width = regions.centers.shape[1]
        return locate(regions, check_features(features, n_rows, width))[1]
    found = details.distance
    if found is None and details.covered is not None and reach == 1:
        found = np.where(details.covered, 1.0, np.inf)
    if found is not None and np.shape(found) != (n_rows,):
        raise ValueError(
            f"details.distance has shape {np.shape(found)}; wanted one per row, "
            f"({n_rows},)"
        )
    return found
