"""Beside the probabilities of a row: its temperature, its cluster, its coverage."""

from typing import Any, NamedTuple

import numpy as np

from coolhead.shift.clusters import locate


class PredictionDetails(NamedTuple):
    """What a calibrator knows about each row.

    Attributes
    ----------
    probabilities : (n, k) calibrated.
    temperature : (n,); None for methods that change the scores otherwise.
    cluster : (n,) nearest cluster of the calibration features; None without clusters.
    covered : (n,) True within the radius that holds 99 % of that cluster's members;
        False says that nothing like this row was calibrated. None without clusters.
    distance : (n,) distance to the centre of that cluster over that radius.
    """

    probabilities: np.ndarray
    temperature: np.ndarray | None
    cluster: np.ndarray | None
    covered: np.ndarray | None
    distance: np.ndarray | None = None


def find_clusters(calibrator: Any) -> Any | None:
    """The clusters of a calibrator or of its first member that has some, else None."""
    own = getattr(calibrator, "clusters_", None)
    if own is not None:
        return own
    parts = [*getattr(calibrator, "members_", ())]
    return next((found for part in parts if (found := find_clusters(part))), None)


def describe_rows(
    calibrator: Any, probabilities: np.ndarray, temperature: np.ndarray, features: Any
) -> PredictionDetails:
    """Add cluster and coverage to the probabilities and temperatures of rows."""
    clusters = find_clusters(calibrator)
    if clusters is None or features is None:
        return PredictionDetails(probabilities, temperature, None, None)
    nearest, distance = locate(clusters, features)
    covered = distance <= 1
    return PredictionDetails(probabilities, temperature, nearest, covered, distance)
