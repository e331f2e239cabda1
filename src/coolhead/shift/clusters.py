"""Features that enter a comparison of two sets of rows."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from coolhead.numerics.blocks import row_blocks, thread_pools
from coolhead.numerics.checks import check_choice, check_features


def feature_rows(
    values: Any, name: str, width: int | None = None, other: str = "features"
) -> np.ndarray:
    """A finite (n, d) array with n, d > 0, from an array or an archive.

    width : wanted number of columns, that of the argument called `other`.
    """
    values = getattr(values, "features", values)
    if values is None:
        raise ValueError(f"{name} is missing; wanted features (n, d)")
    n_rows = len(values) if np.ndim(values) else 0
    if np.ndim(values) != 2 or not n_rows:
        raise ValueError(
            f"{name} must have shape (n, d) with n, d > 0, found {np.shape(values)}"
        )
    array = check_features(values, n_rows, name=name)
    if width is not None and array.shape[1] != width:
        raise ValueError(
            f"{name} has {array.shape[1]} columns, {other} has {width}; wanted the "
            "same number of columns in both"
        )
    return array


RADIUS_QUANTILE = 0.99
MANY_COLUMNS, REHEARSED = 256, 32
REGION_ROWS = 5_000
SMALLEST_REGION = 5
FURTHEST = 1e150


@dataclass(frozen=True)
class Clusters:
    """Cluster centres and the scaling under which distances to them are measured.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
        In float64, in scaled space.
    radii : ndarray of shape (n_clusters,)
        The 99 % quantile of the members' distances to their centre.
    scaling : {None, "standardize", "l2"}
        "standardize" subtracts `shift` and divides by `scale`; "l2" scales rows to
        unit length.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> clusters = ch.shift.find_regions(data.features, n_clusters=2)
    >>> clusters.centers.shape, clusters.radii.shape
    ((2, 4), (2,))
    """

    centers: np.ndarray
    radii: np.ndarray
    scaling: str | None
    shift: Any
    scale: Any

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Scaled float64 copy of `features`."""
        return _scaled(features, np.float64, self.scaling, self.shift, self.scale)

    def assign(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Index of the nearest centre and the distance to it, (n,) each."""
        nearest = np.empty(len(features), np.intp)
        distance = np.empty(len(features))
        # Seen from their middle, centres far from the origin keep their digits.
        middle = self.centers.mean(axis=0)
        centers = self.centers - middle
        norms = np.vecdot(centers, centers)
        for rows in row_blocks(*features.shape):
            block = self.transform(features[rows])
            block -= middle
            # Squares of what lies further away would overflow.
            np.clip(block, -FURTHEST, FURTHEST, out=block)
            squared = norms - 2 * block @ centers.T
            nearest[rows] = squared.argmin(axis=1)
            smallest = squared.min(axis=1) + np.vecdot(block, block)
            distance[rows] = np.sqrt(np.maximum(smallest, 0))
        return nearest, distance


def locate(clusters: Any, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest cluster and the distance to its centre over its radius, (n,) each.

    A row is covered where that distance is at most one. A ball of radius zero
    (identical members) holds its centre and nothing else.
    """
    nearest, distance = clusters.assign(features)
    radii = np.asarray(clusters.radii)[nearest]
    with np.errstate(divide="ignore", invalid="ignore"):
        return nearest, np.where(distance > 0, distance / radii, 0.0)


@dataclass(frozen=True)
class Partition:
    """Clusters together with the cluster of each row they were made from."""

    clusters: Clusters
    assignment: np.ndarray
    n_merged: int


def partition_features(
    features: np.ndarray,
    n_clusters: int,
    *,
    n_init: int = 10,
    max_iter: int = 300,
    random_state: int | np.random.RandomState | None = 0,
    scaling: str | None = None,
) -> Partition:
    """k-means (Lloyd, k-means++) on `features`, (n, d).

    Where there are fewer distinct points than clusters, equal centres are merged and
    the number of clusters is lowered.
    """
    whole = isinstance(n_clusters, (int, np.integer)) and n_clusters is not True
    if not whole or n_clusters < 1:
        raise ValueError(f"n_clusters is {n_clusters!r}; wanted an integer >= 1")
    shift, scale = _scaling_of(features, scaling)
    # Single precision is enough to find the clusters, in half the time and memory.
    scaled = _scaled(features, features.dtype, scaling, shift, scale)
    limit = np.sqrt(np.finfo(scaled.dtype).max / max(scaled.size, 1)) / 4
    if scaled.size and not np.abs(scaled).max() < limit:
        np.clip(scaled, -limit, limit, out=scaled)
    settings = {"max_iter": max_iter, "random_state": random_state, "copy_x": False}
    # Threads add up the members of a cluster in whatever order they are done.
    one = thread_pools().limit(limits=1, user_api="openmp")
    with one, warnings.catch_warnings():
        # Fewer distinct points than clusters: handled below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = _fit_kmeans(scaled, min(n_clusters, len(scaled)), n_init, settings)
    centers = _distinct_centers(model.cluster_centers_, np.asarray(model.labels_))
    draft = Clusters(centers, np.zeros(len(centers)), scaling, shift, scale)
    nearest, distance = draft.assign(features)
    # Centres a rounding error apart may leave one of them without a member.
    used, assignment = np.unique(nearest, return_inverse=True)
    centers = centers[used]
    radii = [
        np.quantile(distance[assignment == j], RADIUS_QUANTILE)
        for j in range(len(centers))
    ]
    clusters = Clusters(centers, np.array(radii), scaling, shift, scale)
    return Partition(clusters, assignment, n_clusters - len(centers))


def _fit_kmeans(
    rows: np.ndarray, n_clusters: int, n_init: int, settings: dict[str, Any]
) -> KMeans:
    """The best of `n_init` starts; many columns are rehearsed in few components.

    Steps in a few principal components cost little and pass over the noise of the
    others: the partition that wins there and then goes on in all columns is found in
    half the time or less; `benchmarks/cluster_cost.py` compares its inertia.
    """
    starts: Any = {"n_init": n_init}
    if n_init > 1 and rows.shape[1] >= MANY_COLUMNS and len(rows) > REHEARSED:
        seed = settings["random_state"]
        reduced = PCA(REHEARSED, svd_solver="randomized", random_state=seed)
        rehearsed = KMeans(n_clusters, **starts, **settings)
        nearest = np.asarray(rehearsed.fit(reduced.fit_transform(rows)).labels_)
        kept = np.unique(nearest)
        centers = np.stack([rows[nearest == j].mean(axis=0) for j in kept])
        n_clusters, starts = len(kept), {"n_init": 1, "init": centers}
    return KMeans(n_clusters, **starts, **settings).fit(rows)


def find_regions(
    features: np.ndarray,
    *,
    n_clusters: int = 8,
    scaling: str | None = None,
    max_rows: int = REGION_ROWS,
    random_state: int = 0,
) -> Clusters:
    """Cover features (n, d) with a few balls: one rough k-means, of a sample.

    Fewer distinct rows than clusters give fewer balls. Clusters of fewer than five
    rows are left out, because their radius would be close to zero.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0, 1.0])
    >>> ch.shift.find_regions(data.features, n_clusters=3).centers.shape
    (3, 4)
    """
    if len(features) > max_rows:
        rows = np.random.default_rng(random_state).permutation(len(features))
        features = features[np.sort(rows[:max_rows])]
    found = partition_features(
        features, n_clusters, n_init=1, scaling=scaling, random_state=random_state
    )
    kept = np.bincount(found.assignment) >= SMALLEST_REGION
    if not kept.any():
        return found.clusters
    whole = found.clusters
    return replace(whole, centers=whole.centers[kept], radii=whole.radii[kept])


def _distinct_centers(centers: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Centres of the clusters that have members, each once, in first-seen order."""
    used = centers[np.unique(nearest)].astype(np.float64)
    _, first = np.unique(used, axis=0, return_index=True)
    return used[np.sort(first)]


def _scaling_of(
    features: np.ndarray, scaling: str | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    check_choice(scaling, "scaling", None, "standardize", "l2")
    if scaling != "standardize":
        return None, None
    spread = features.std(axis=0, dtype=np.float64)
    return features.mean(axis=0, dtype=np.float64), np.where(spread > 0, spread, 1.0)


def _scaled(
    features: np.ndarray,
    dtype: Any,
    scaling: str | None,
    shift: Any,
    scale: Any,
) -> np.ndarray:
    copy = features.astype(dtype)
    if scaling == "standardize":
        copy -= shift.astype(dtype)
        copy /= scale.astype(dtype)
    elif scaling == "l2":
        length = np.sqrt(np.vecdot(copy, copy))
        copy /= np.where(length > 0, length, 1)[:, None]
    return copy


@dataclass(frozen=True)
class Coverage:
    """Where the rows of a batch lie relative to the calibration data.

    Attributes
    ----------
    share_outside : float
        Share of rows beyond the radius; about 0.01 without any shift.
    relative_distance : ndarray of shape (n_samples,)
        Distance to the nearest centre over that radius.
    nearest : ndarray of shape (n_samples,)
        Index of the nearest cluster.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> found = ch.shift.coverage(data.features[300:] + 9, data.features[:300])
    >>> found.share_outside, found.nearest.shape
    (1.0, (300,))
    """

    share_outside: float
    relative_distance: np.ndarray
    nearest: np.ndarray

    @property
    def outside(self) -> np.ndarray:
        """(n,) whether each row lies outside."""
        return self.relative_distance > 1

    def __str__(self) -> str:
        return (
            f"{self.share_outside:.1%} of {len(self.nearest)} rows lie outside the "
            f"calibration data ({1 - RADIUS_QUANTILE:.0%} expected without shift); "
            f"median relative distance {np.median(self.relative_distance):.2f}"
        )


def coverage(
    batch: Any, calibration: Any, *, n_clusters: int = 8, random_state: int = 0
) -> Coverage:
    """Measure how far a batch lies outside the calibration data.

    Parameters
    ----------
    batch : array-like of shape (n_samples, n_features) or DomainArchive
        Features of new rows.
    calibration : Calibrator, Clusters, array-like or DomainArchive
        A fitted calibrator that uses features, its `clusters_`, or features to find
        regions in.
    n_clusters, random_state : int
        Used only when `calibration` are features.

    Returns
    -------
    Coverage

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> here, there = data.features[:300], data.features[300:] + 9
    >>> ch.shift.coverage(here, here).share_outside < 0.05
    True
    >>> ch.shift.coverage(there, here).share_outside
    1.0
    """
    if hasattr(calibration, "coverage"):
        return calibration.coverage(batch)
    regions = calibration
    if not hasattr(regions, "radii"):
        regions = find_regions(
            feature_rows(calibration, "calibration"),
            n_clusters=n_clusters,
            random_state=random_state,
        )
    centers = getattr(regions, "centers", None)
    width = None if centers is None else centers.shape[1]
    batch = feature_rows(batch, "batch", width, "calibration")
    nearest, relative = locate(regions, batch)
    return Coverage(float(np.mean(relative > 1)), relative, nearest)
