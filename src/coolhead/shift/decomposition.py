"""How much of the divergence lies between clusters, and how much inside them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ClusterDecomposition:
    """d₂ = Σ_j (π_j^T)²/π_j^C · d₂,j, with what clustering leaves of it.

    Attributes
    ----------
    calibration_mass, target_mass : (k,) shares π_j^C and π_j^T of the clusters.
    within : (k,) divergence d₂,j inside each cluster; 1 where there is none, NaN
        where the target has no mass.
    total : d₂ of the whole, the sum above.
    remaining : Σ_j π_j^T d₂,j, what is left when every cluster has its own
        temperature. Usually, not always, below `total`.

    Examples
    --------
    >>> from coolhead.shift import decompose_divergence
    >>> parts = decompose_divergence([0.5, 0.5, 1.5, 1.5], [0, 0, 1, 1])
    >>> parts.calibration_mass, parts.target_mass
    (array([0.5, 0.5]), array([0.25, 0.75]))
    >>> parts.total, parts.remaining    # all of the shift lies between the clusters
    (1.25, 1.0)
    """

    calibration_mass: np.ndarray
    target_mass: np.ndarray
    within: np.ndarray
    total: float
    remaining: float


def decompose_divergence(
    weights: np.ndarray, clusters: np.ndarray, *, mass: np.ndarray | None = None
) -> ClusterDecomposition:
    """Split d₂ of the weights over the clusters of the calibration rows.

    Parameters
    ----------
    weights : (n,) ratios dP_T/dP_C, scaled to mean one here.
    clusters : (n,) cluster of every calibration row.
    mass : (n,) probability of each row under P_C, equal by default.

    Returns
    -------
    ClusterDecomposition, clusters in sorted order.

    Examples
    --------
    >>> from coolhead.shift import decompose_divergence
    >>> parts = decompose_divergence([0.5, 0.5, 1.5, 1.5], [0, 0, 1, 1])
    >>> parts.total, parts.remaining
    (1.25, 1.0)
    """
    _, code = np.unique(clusters, return_inverse=True)
    mass = np.ones(len(code)) if mass is None else np.asarray(mass, float)
    mass = mass / mass.sum()
    weights = np.asarray(weights, float)
    weights = weights / np.sum(mass * weights)
    calibration = np.bincount(code, mass)
    target = np.bincount(code, mass * weights)
    square = np.bincount(code, mass * weights**2)
    within = np.full(len(calibration), np.nan)
    seen = target > 0
    within[seen] = square[seen] * calibration[seen] / target[seen] ** 2
    return ClusterDecomposition(
        calibration_mass=calibration,
        target_mass=target,
        within=within,
        total=float(np.sum(target[seen] ** 2 / calibration[seen] * within[seen])),
        remaining=float(np.sum(target[seen] * within[seen])),
    )
