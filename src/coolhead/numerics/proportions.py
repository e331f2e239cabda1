"""How sure one can be of a proportion."""

from typing import Any

import numpy as np


def proportion_error(mean: Any, count: Any) -> np.ndarray:
    """Standard error of proportions, never zero; NaN where the count is zero.

    Computed with one success and one failure added, so that a group whose answers are
    all right does not look certain.
    """
    count = np.where(np.asarray(count) > 0, count, np.nan)
    smoothed = (np.asarray(mean) * count + 1) / (count + 2)
    return np.sqrt(smoothed * (1 - smoothed) / (count + 2))
