"""Best offset of a domain, spread between domains, and what few domains borrow."""

from typing import NamedTuple

import numpy as np

from coolhead.numerics.moments import peak_rows, row_moments

LARGEST_OFFSET = 3.0
# A residual beyond this says no more than that domains can be very far off.
LARGEST_RESIDUAL = 3.0


class Offset(NamedTuple):
    """The offset of log T(x) that fits labelled rows best, and its standard error."""

    value: float
    error: float


def best_offset(
    logits: np.ndarray, labels: np.ndarray, log_temperature: np.ndarray
) -> Offset:
    """Minimise the loss of softmax(z / exp(log T + offset)) by Newton's steps."""
    rows = peak_rows(logits, labels)
    offset, bend = 0.0, 0.0
    for _ in range(50):
        moments = row_moments(rows, np.exp(-(log_temperature + offset)))
        # Derivatives in log b = -offset; the curvature alone is always positive.
        slope, bend = -moments.score.sum(), moments.curvature.sum()
        step = np.clip(-slope / max(bend, 1e-9), -0.5, 0.5)
        moved = float(np.clip(offset + step, -LARGEST_OFFSET, LARGEST_OFFSET))
        if abs(moved - offset) < 1e-6:
            break
        offset = moved
    return Offset(offset, float(1 / np.sqrt(max(bend, 1e-9))))


def shrunk_scale(
    errors: np.ndarray, noise: np.ndarray, default: float, worth: float
) -> float:
    """Root mean square of errors beyond their noise, with a default worth some domains.

    errors : (m,) how far off left-out domains were; noise : (m,) standard errors.
    """
    kept = np.clip(errors, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
    beyond = max(float(np.sum(np.square(kept) - np.square(noise))), 0.0)
    total = worth * default**2 + beyond
    return float(np.sqrt(total / (worth + len(errors))))
