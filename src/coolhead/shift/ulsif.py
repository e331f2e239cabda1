"""Unconstrained least-squares importance fitting (uLSIF).

The ratio is modelled as a non-negative sum of Gaussian kernels at target rows, and
chosen to minimise E_C[w²]/2 - E_T[w], which has a closed form.
"""

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.metrics.pairwise import euclidean_distances

WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4)
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)


def least_squares_ratio(
    rows: np.ndarray,
    calibration: np.ndarray,
    target: np.ndarray,
    *,
    n_kernels: int = 100,
    n_folds: int = 3,
    random_state: int = 0,
) -> np.ndarray:
    """Return dP_target/dP_calibration at `rows`, (n,), not yet scaled to mean one.

    Kernel width (relative to the median distance) and penalty are chosen by
    cross-validation of the objective itself.
    """
    rng = np.random.default_rng(random_state)
    chosen = rng.permutation(len(target))[:n_kernels]
    centers = target[chosen]
    unit = _median_distance(target, centers)
    folds = (
        rng.permutation(len(calibration)) % n_folds,
        rng.permutation(len(target)) % n_folds,
    )
    squares = [
        euclidean_distances(part, centers, squared=True)
        for part in (calibration, target)
    ]
    candidates = []
    for width in WIDTHS:
        kernels = [np.exp(-square / (2 * (width * unit) ** 2)) for square in squares]
        for penalty in PENALTIES:
            score = np.mean(
                [_held_out(kernels, folds, f, penalty) for f in range(n_folds)]
            )
            candidates.append((score, width, penalty))
    _, width, penalty = min(candidates)
    scale = 2 * (width * unit) ** 2
    known, new = (np.exp(-square / scale) for square in squares)
    amounts = _solve(known, new, penalty)
    return np.exp(-euclidean_distances(rows, centers, squared=True) / scale) @ amounts


def _solve(calibration: np.ndarray, target: np.ndarray, penalty: float) -> np.ndarray:
    second = calibration.T @ calibration / len(calibration)
    second[np.diag_indices_from(second)] += penalty
    # A density ratio is not negative; the closed form has to be told.
    return np.maximum(np.linalg.solve(second, target.mean(axis=0)), 0)


def _held_out(kernels: list, folds: tuple, fold: int, penalty: float) -> float:
    known = [kernel[part != fold] for kernel, part in zip(kernels, folds, strict=True)]
    new = [kernel[part == fold] for kernel, part in zip(kernels, folds, strict=True)]
    amounts = _solve(known[0], known[1], penalty)
    first, second = (kernel @ amounts for kernel in new)
    return float(np.mean(first**2) / 2 - np.mean(second))


def _median_distance(rows: np.ndarray, centers: np.ndarray) -> float:
    distances = np.sqrt(euclidean_distances(rows[:1000], centers, squared=True))
    median = float(np.median(distances))
    if median > 0:
        return median
    _, nearest = pairwise_distances_argmin_min(rows, centers)
    return float(nearest.max()) or 1.0
