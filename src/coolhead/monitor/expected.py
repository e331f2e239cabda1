"""What the calibration domains show, so that a new one can be compared with them."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from coolhead.calibrators.base import PredictionDetails
from coolhead.calibrators.domains import find_domains, leave_one_out
from coolhead.metrics.bins import equal_width_index
from coolhead.numerics.blocks import row_blocks
from coolhead.shift.clusters import REGION_ROWS, Clusters, find_regions, locate

N_BINS = 15
RANDOM_FOLDS = 5
# Where a left-out domain shows more than this, rows must lie further out to count:
# a share near one would leave no room for news.
LARGEST_SHARE = 0.25
# The same row in another batch may get another last digit.
ROUNDING = 1e-6

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
            for domain, seen in getattr(self, name).items():
                share = seen if isinstance(seen, float) else seen[0] / max(seen[1], 1)
                if not 0 <= share <= 1:
                    raise ValueError(
                        f"{name} of {domain} is {seen}; wanted a share between 0 and "
                        "1, or (found, rows)"
                    )

    def is_unsure(self, confidence: np.ndarray) -> np.ndarray:
        """(n,) True for rows less sure than half of the calibration rows."""
        middle = -np.inf if self.middle is None else self.middle
        return confidence < middle - ROUNDING

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, also after JSON made lists of the tuples."""
        try:
            return cls._of(state)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"what is expected is damaged ({type(error).__name__}: {error}); "
                "wanted what Expected.to_dict gives"
            ) from error

    @classmethod
    def _of(cls, state: dict[str, Any]) -> Self:
        shares: dict[str, Any] = {
            name: {
                domain: float(seen) if isinstance(seen, (int, float)) else _pair(seen)
                for domain, seen in state[name].items()
            }
            for name in SHARES
        }
        right = {
            domain: (_bins(correct), _bins(rows))
            for domain, (correct, rows) in state["right"].items()
        }
        middle = None if state["middle"] is None else float(state["middle"])
        radii = {name: float(state[name]) for name in ("reach", "near")}
        return cls(**radii, middle=middle, right=right, **shares)


def _pair(seen: Any) -> tuple[float, float]:
    found, rows = seen
    return float(found), float(rows)


def _bins(values: Any) -> list[float]:
    if len(values) != N_BINS:
        raise ValueError(f"right has {len(values)} bins; wanted {N_BINS}")
    return [float(value) for value in values]


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
    """What `Expected` says of distances, for clusters found like `clusters`.

    features, domains : (n, d) and (n,) of the calibration rows.
    served : (n,) True for rows of domains that are expected again. They are compared
        with clusters in which they have a part; others as strangers to all clusters.
    """
    if len(features) < 2:
        return {}
    settings: Any = {"n_clusters": len(clusters.centers), "scaling": clusters.scaling}
    if served is None:
        apart = left_out_distances(features, domains, **settings)
        served = np.ones(len(features), bool)
    else:
        apart = {
            str(name): held_out_distances(features, domains == name, **settings)
            for name in np.unique(domains[served])
        }
    # Order statistics, not means of two: then the comparison with new rows is exact
    # although these rows chose the limits.
    furthest = [
        np.quantile(distance, 1 - LARGEST_SHARE, method="higher")
        for distance in apart.values()
    ]
    reach = max(1.0, *furthest)
    if not apart or not np.isfinite(reach):
        return {}  # domains of identical rows: every other row is infinitely far
    own, domains = locate(clusters, features[served])[1], domains[served]
    within = {str(name): own[domains == name] for name in np.unique(domains)}
    near = min(
        np.quantile(distance, LARGEST_SHARE, method="lower")
        for distance in within.values()
    )
    return {
        "reach": float(reach),
        "outside": {name: _counted(d > reach) for name, d in apart.items()},
        "near": float(near),
        "inside": {name: _counted(d < near) for name, d in within.items()},
    }


def expect_moved(name: str, details: PredictionDetails) -> Expected:
    """What a calibrator that was moved to a domain expects: what it said there.

    Other domains were seen through another temperature, and nearer or further away.
    """
    sure = details.probabilities.max(axis=1).astype(np.float64)
    middle = float(np.median(sure))
    unsure = {name: _counted(Expected(middle=middle).is_unsure(sure))}
    shown: dict[str, Any] = {"middle": middle, "unsure": unsure}
    far = details.distance
    if far is not None and np.isfinite(far).all():
        reach = max(1.0, float(np.quantile(far, 1 - LARGEST_SHARE, method="higher")))
        near = float(np.quantile(far, LARGEST_SHARE, method="lower"))
        shown |= {"reach": reach, "outside": {name: _counted(far > reach)}}
        shown |= {"near": near, "inside": {name: _counted(far < near)}}
    return Expected(**shown)


def _counted(mask: np.ndarray) -> tuple[float, float]:
    return float(np.count_nonzero(mask)), float(len(mask))


def left_out_distances(
    features: np.ndarray, domains: np.ndarray, **settings: Any
) -> dict[str, np.ndarray]:
    """How many radii each domain lies from clusters found in the other domains.

    settings : of `find_regions`. At most 5000 rows of each domain are measured. Fewer
    than two domains cannot be left out: then each fifth of the rows, drawn at random,
    is.
    """
    rng = np.random.default_rng(0)
    found = {}
    for fold in leave_one_out(find_domains(domains, None)):
        own = rng.permutation(np.flatnonzero(fold.outside))[:REGION_ROWS]
        regions = find_regions(features[fold.inside], **settings)
        found[fold.name] = locate(regions, features[own])[1]
    if found:
        return found
    everyone = np.ones(len(features), bool)
    distance = held_out_distances(features, everyone, **settings)
    return {"rows left out at random": distance}


def held_out_distances(
    features: np.ndarray, own: np.ndarray, **settings: Any
) -> np.ndarray:
    """How many radii rows lie from clusters found without them, but with their like.

    own : (n,) True for the rows to measure; each fifth of them, drawn at random, is
        left out once, at most 5000 of it measured. settings : of `find_regions`.
    """
    rng = np.random.default_rng(0)
    distances = []
    for part in np.array_split(rng.permutation(np.flatnonzero(own)), RANDOM_FOLDS):
        rest = np.delete(features, part, axis=0)
        if len(part) and len(rest):
            regions = find_regions(rest, **settings)
            distances.append(locate(regions, features[part[:REGION_ROWS]])[1])
    return np.concatenate(distances)


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
    ask = Expected(middle=middle)
    unsure, right = {}, {}
    for name in np.unique(domains):
        own = domains == name
        unsure[str(name)] = _counted(ask.is_unsure(confidence[own]))
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
