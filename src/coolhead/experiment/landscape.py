"""How far the target lies from the calibration data, in numbers and on a map."""

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from coolhead.calibrators.clustered.calibrators import NearestClusterTemperature
from coolhead.experiment.methods import Role
from coolhead.experiment.results import CellResult
from coolhead.experiment.rows import SplitRows
from coolhead.shift import coverage, density_ratio
from coolhead.shift.clusters import Partition

DIAGNOSED_ROWS = 1_500
ROLES: tuple[Role, ...] = ("calibration", "source")
DRAWN_ROWS = {"calibration": 500, "target": 300}


def describe_shift(data: SplitRows, n_clusters: int, result: CellResult) -> None:
    """Add density-ratio diagnostics and the share outside the calibration data."""
    known = _some(data.labelled(("calibration",)).features, DIAGNOSED_ROWS)
    new = _some(data.evaluated.features, DIAGNOSED_ROWS)
    ratio = density_ratio(known, new, random_state=data.random_state)
    clusters = _partition(data, n_clusters).clusters
    numbers = {
        "weight_variance": ratio.variance,
        "renyi_divergence": ratio.divergence,
        "effective_sample_size": ratio.effective_sample_size,
        "n_calibration": len(known),
        "n_target": len(new),
        "discriminator_auroc": ratio.auroc,
        "share_clipped": ratio.share_clipped,
        "unreliable": ratio.unreliable,
        "share_outside": coverage(new, clusters).share_outside,
    }
    numbers |= _compare_variances(data, ratio.variance, len(known))
    for name, value in numbers.items():
        result.add("shift", diagnostic=name, value=float(value))


def _compare_variances(
    data: SplitRows, variance: float, n_known: int
) -> dict[str, float]:
    """Var(w) towards the target from calibration and from source domains.

    That the first is smaller is the claim behind the paper. Both have the same number
    of rows, since the estimate depends on it; of `n_known` calibration rows it is
    known already.
    """
    if data.split.source == data.split.calibration:
        return {}
    new = _some(data.evaluated.features, DIAGNOSED_ROWS)
    known = {role: data.labelled((role,)).features for role in ROLES}
    n_rows = min(DIAGNOSED_ROWS, *map(len, known.values()))

    def found(role: str, features: np.ndarray) -> float:
        if role == "calibration" and n_rows == n_known:
            return variance
        some = _some(features, n_rows)
        return density_ratio(some, new, random_state=data.random_state).variance

    return {f"weight_variance_{role}": found(role, f) for role, f in known.items()}


def draw_map(
    data: SplitRows, n_clusters: int, temperatures: np.ndarray, result: CellResult
) -> None:
    """Add points of the calibration and target features and the cluster centres.

    The plane is that of the two principal components of the calibration features;
    a point carries the temperature of its nearest cluster.
    """
    partition = _partition(data, n_clusters)
    calibration = data.labelled(("calibration",))
    plane = PCA(2, random_state=data.random_state)
    plane.fit(_some(calibration.features, DIAGNOSED_ROWS))
    groups = {"calibration": calibration, "target": data.evaluated}
    for role, rows in groups.items():
        index = _spread(len(rows.labels), DRAWN_ROWS[role])
        features = np.asarray(rows.features[index], np.float64)
        nearest, _ = partition.clusters.assign(features)
        _add_points(
            result,
            role,
            plane.transform(features),
            rows.sample_domain[index],
            nearest,
            temperatures,
        )
    centers = partition.clusters.centers
    numbers = np.arange(len(centers))
    names = np.full(len(centers), "")
    _add_points(
        result, "centre", plane.transform(centers), names, numbers, temperatures
    )


def _partition(data: SplitRows, n_clusters: int) -> Partition:
    """The clusters that the cluster methods were fitted on."""
    plain = NearestClusterTemperature(n_clusters, random_state=data.random_state)
    return plain.partition(data.labelled(("calibration",)))


def _add_points(
    result: CellResult,
    role: str,
    points: np.ndarray,
    domains: np.ndarray,
    clusters: np.ndarray,
    temperatures: np.ndarray,
) -> None:
    for point, domain, cluster in zip(points, domains, clusters, strict=True):
        # Four digits are more than a screen shows and halve the file.
        result.add(
            "map",
            x=_short(point[0]),
            y=_short(point[1]),
            role=role,
            domain=str(domain),
            cluster=int(cluster),
            temperature=_short(temperatures[cluster]),
        )


def _short(value: Any) -> float:
    return float(f"{value:.5g}")


def _spread(n_rows: int, wanted: int) -> np.ndarray:
    """At most `wanted` row numbers, evenly spread."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, wanted)).astype(int))


def _some(rows: np.ndarray, wanted: int) -> np.ndarray:
    return np.asarray(rows[_spread(len(rows), wanted)], np.float32)
