"""Calibration error without bins: densities of confidence by a kernel (KDE-ECE)."""

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.vectors import correctness_and_confidence

GRID = np.linspace(-0.6, 1.6, 2**14)


def kernel_calibration_error(
    labels: ArrayLike, probabilities: ArrayLike, *, bandwidth: float | None = None
) -> float:
    """Mean |confidence - accuracy(confidence)| with kernel estimates of both.

    With f the density of confidence and f1 that of the rows answered correctly,
    accuracy(c) = min(1, accuracy * f1(c) / f(c)), and the error is the integral of
    |c - accuracy(c)| f(c) over [0, 1] divided by that of f. The densities are sums
    of triweight kernels on a fine grid, the data mirrored at 0 and 1.

    Parameters
    ----------
    labels, probabilities : as for `expected_calibration_error`
    bandwidth : standard deviation of the kernel; by default the standard deviation
        of the confidences answered correctly times (2 n)^(-1/5)

    Examples
    --------
    >>> import numpy as np
    >>> from coolhead.metrics import kernel_calibration_error
    >>> sure = np.linspace(0.5, 1, 400)
    >>> right = np.arange(400) % 2 == 0    # right half of the time
    >>> round(kernel_calibration_error(right, sure), 2)
    0.25
    """
    correct, confidence = correctness_and_confidence(labels, probabilities)
    hits = confidence[correct.astype(bool)]
    if bandwidth is None:
        bandwidth = _default_bandwidth(hits, len(confidence))
    if not 0 < bandwidth < np.inf:
        raise ValueError(f"bandwidth is {bandwidth}; wanted a finite number > 0")
    inside = (GRID > 0) & (GRID < 1)
    points = GRID[inside]
    density = _density(confidence, bandwidth)[inside]
    hit_density = _density(hits, bandwidth)[inside] if len(hits) else 0 * density
    visible = density > 1e-6
    accuracy = np.zeros_like(points)
    share = len(hits) / len(confidence)
    np.divide(share * hit_density, density, out=accuracy, where=visible)
    error = np.abs(points - np.minimum(accuracy, 1)) * density * visible
    return float(np.trapezoid(error, points) / np.trapezoid(density, points))


def _default_bandwidth(hits: np.ndarray, n_rows: int) -> float:
    spread = float(np.std(hits)) if len(hits) else 0.0
    if spread < 1e-12:
        raise ValueError(
            "bandwidth cannot be chosen: the rows answered correctly have "
            f"{len(np.unique(hits))} distinct confidence(s), wanted at least 2; "
            "pass a number as bandwidth"
        )
    return spread * (2 * n_rows) ** -0.2


def _density(values: np.ndarray, bandwidth: float) -> np.ndarray:
    """Density of `values`, each mirrored at the nearer end of [0, 1], on the grid."""
    mirrored = np.concatenate([values, np.where(values < 0.5, -values, 2 - values)])
    step = GRID[1] - GRID[0]
    position = (mirrored - GRID[0]) / step
    left = position.astype(np.intp)
    share = position - left
    mass = np.bincount(left, 1 - share, len(GRID))
    mass += np.bincount(left + 1, share, len(GRID))
    # The triweight kernel on [-1, 1] has variance 1/9.
    reach = int(np.ceil(3 * bandwidth / step))
    offset = np.arange(-reach, reach + 1) * step / (3 * bandwidth)
    kernel = np.maximum(1 - offset**2, 0) ** 3
    kernel *= 35 / 32 / (3 * bandwidth)
    # Mirroring doubled the rows, so dividing by n gives density one inside [0, 1].
    length = len(mass) + len(kernel) - 1
    spectrum = np.fft.rfft(mass, length) * np.fft.rfft(kernel, length)
    density = np.fft.irfft(spectrum, length)[reach : reach + len(mass)]
    return np.maximum(density, 0) / len(values)
