"""Unlabelled rows of the target, and how far features may lie from each other."""

from typing import Any, NamedTuple

import numpy as np

from coolhead.numerics.checks import check_features, check_logits

# Squares of what is larger leave the range of float64 once they are added up.
LARGEST_FEATURE = 1e100


class Target(NamedTuple):
    """Unlabelled rows of the target: features (m, d) and, if known, logits (m, k)."""

    features: np.ndarray
    logits: np.ndarray | None


def check_target(
    features: Any, logits: Any, width: int | None, n_classes: int
) -> Target | None:
    """The target's rows in arrays that fit the labelled ones, None where none are."""
    if features is None:
        if logits is not None:
            raise ValueError(
                "target_logits is given without target_features; wanted both"
            )
        return None
    name = "target_features"
    features = within_reach(check_features(features, None, width, name), name)
    if logits is None:
        return Target(features, None)
    logits = check_logits(logits, "target_logits")
    if logits.shape[1] != n_classes:
        raise ValueError(
            f"target_logits has {logits.shape[1]} columns; wanted {n_classes}, as "
            "logits has"
        )
    if len(logits) != len(features):
        raise ValueError(
            f"target_logits has {len(logits)} rows, target_features {len(features)}; "
            "wanted the same rows"
        )
    return Target(features, logits)


def within_reach(features: np.ndarray, name: str) -> np.ndarray:
    """At least one row, and none so far away that no distance to it is a number."""
    if len(features) == 0:
        raise ValueError(f"{name} has 0 rows; wanted at least one")
    if features.dtype == np.float64:
        largest = max(features.max(), -features.min())
        if largest > LARGEST_FEATURE:
            raise ValueError(
                f"{name} holds {largest:.3g} (in absolute value); wanted at most "
                f"{LARGEST_FEATURE:.0e}"
            )
    return features
