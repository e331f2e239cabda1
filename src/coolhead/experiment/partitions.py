"""k-means once per set of features: shared by methods, and by cells through a folder.

Splits that calibrate on the same domains meet the same features when classifiers leave
them unchanged; the second cell then finds the clusters of the first.
"""

import hashlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from coolhead.files import atomic_path
from coolhead.shift.clusters import (
    Clusters,
    Partition,
    partition_features,
    warn_of_merging,
)


def find_partition(
    features: np.ndarray, n_clusters: int, *, folder: Path | None, **settings: Any
) -> Partition:
    """The k-means partition of `features`, read from `folder` if it is there.

    settings : of `partition_features`; only plain distances are kept in the folder.
    """
    if folder is None or settings.get("scaling") is not None:
        return partition_features(features, n_clusters, **settings)
    path = folder / f"{_key(features, n_clusters, settings)}.npz"
    found = _load(path) if path.is_file() else None
    if found is not None:
        if found.n_merged:
            warn_of_merging(n_clusters, len(features), found)
        return found
    computed = partition_features(features, n_clusters, **settings)
    _save(computed, path)
    # What other cells will read, to the last bit.
    return _load(path) or computed


def _key(features: np.ndarray, n_clusters: int, settings: dict[str, Any]) -> str:
    features = np.ascontiguousarray(features)
    named = f"{features.dtype}{features.shape}{n_clusters},{sorted(settings.items())}"
    digest = hashlib.sha256(named.encode())
    digest.update(features.tobytes())
    return digest.hexdigest()[:32]


def _save(partition: Partition, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.savez(
            file,
            centers=partition.clusters.centers,
            radii=partition.clusters.radii,
            assignment=partition.assignment,
            n_merged=partition.n_merged,
        )


def _load(path: Path) -> Partition | None:
    """The partition of a file, or None if the file is damaged."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            clusters = Clusters(stored["centers"], stored["radii"], None, None, None)
            return Partition(clusters, stored["assignment"], int(stored["n_merged"]))
    except (ValueError, OSError, EOFError, KeyError, BadZipFile, ZlibError):
        return None
