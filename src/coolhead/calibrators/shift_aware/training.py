"""What is remembered of the data the classifier was trained on."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.linalg import eigh

REFERENCE_ROWS = 1_000


@dataclass(frozen=True)
class TrainingReference:
    """What is remembered of the data the classifier was trained on.

    points : (r, d) float32, reference features of unit length.
    center : (d,) mean of the reference features, in their precision;
    scale : their largest deviation from it.
    components : (p, d) float32, principal directions of the reference features.
    n_neighbours : which neighbour's distance counts.
    reach : how far below its row's largest a logit may lie and not count as masked.
    """

    points: np.ndarray
    center: np.ndarray
    scale: float
    components: np.ndarray
    n_neighbours: int
    reach: float = np.inf


def describe_reference(
    reference: np.ndarray,
    *,
    n_components: int = 8,
    n_neighbours: int = 5,
    random_state: Any = 0,
    reach: float = np.inf,
) -> TrainingReference:
    """Centre, principal directions and unit vectors of the reference features, (r, d).

    At most 1,000 rows are kept, drawn with `random_state`.
    """
    rows = thin_rows(len(reference), REFERENCE_ROWS, random_state)
    kept = np.clip(np.asarray(reference[rows], np.float64), -1e150, 1e150)
    center = kept.mean(axis=0)
    # The scale is taken out first: squares of huge features would overflow.
    scale = float(np.abs(kept - center).max()) or 1.0
    return TrainingReference(
        unit_rows(kept),
        center.astype(reference.dtype),
        scale,
        principal_directions((kept - center) / scale, n_components),
        min(n_neighbours, len(kept)),
        reach,
    )


def principal_directions(centred: np.ndarray, count: int) -> np.ndarray:
    """Unit vectors of largest variance, (p, d) float32, p <= `count`.

    Found from the smaller of the two Gram matrices; directions without variance are
    left out.
    """
    n_rows, n_columns = centred.shape
    tall = n_rows >= n_columns
    gram = centred.T @ centred if tall else centred @ centred.T
    last = len(gram) - 1
    first = max(0, last - count + 1)
    variance, vectors = eigh(gram, subset_by_index=[first, last])
    used = variance > 1e-12 * max(float(np.trace(gram)), 1e-300)
    directions = vectors[:, used] if tall else centred.T @ vectors[:, used]
    length = np.sqrt(np.square(directions).sum(axis=0))
    return (directions / length).T[::-1].astype(np.float32)


def thin_rows(n_rows: int, limit: int, random_state: Any) -> np.ndarray:
    """All row numbers, or `limit` of them drawn at random, in random order."""
    generator = np.random.default_rng(random_state)
    return generator.permutation(n_rows)[:limit]


def unit_rows(features: np.ndarray) -> np.ndarray:
    """Rows of length one, float32; rows of zeros stay zero."""
    size = np.abs(features).max(axis=1, keepdims=True)
    scaled = (features / np.where(size > 0, size, 1)).astype(np.float32)
    length = np.sqrt(np.vecdot(scaled, scaled))[:, None]
    return scaled / np.where(length > 0, length, 1)


def fingerprint(reference: TrainingReference) -> bytes:
    """The same for references that describe rows alike."""
    found = blake2b(
        repr((reference.scale, reference.n_neighbours, reference.reach)).encode()
    )
    for array in (reference.points, reference.center, reference.components):
        found.update(array.tobytes())
    return found.digest()
