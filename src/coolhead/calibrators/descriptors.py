"""What is remembered of the data the classifier was trained on."""

from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.linalg import eigh

from coolhead.calibrators.data import canonical_order
from coolhead.numerics.blocks import block_buffer, each_block, row_blocks, row_sums
from coolhead.numerics.checks import check_finite
from coolhead.numerics.moments import REACH, Rows

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
    reach: float = np.inf,
) -> TrainingReference:
    """Centre, principal directions and unit vectors of the reference features, (r, d).

    At most 1,000 rows are kept, evenly spaced in an order that depends on the rows
    alone: the distances to two random samples differ by up to a third.
    """
    count = min(len(reference), REFERENCE_ROWS)
    places = (np.arange(count) + 0.5) * len(reference) / max(count, 1)
    rows = canonical_order(reference)[places.astype(np.intp)]
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


SMALLEST_DISTANCE = 1e-6
NEIGHBOURS_PER_BLOCK = 2**21
FURTHEST = 1e6


Descriptor = Callable[[np.ndarray, np.ndarray, TrainingReference], np.ndarray]


def neighbour_distance(
    logits: np.ndarray, features: np.ndarray, reference: TrainingReference
) -> np.ndarray:
    """Log of the cosine distance to the k-th nearest reference point, (n,)."""
    distance = np.empty(len(features))
    rank = reference.n_neighbours
    step = max(1, NEIGHBOURS_PER_BLOCK // len(reference.points))
    for start in range(0, len(features), step):
        rows = slice(start, start + step)
        directions = unit_rows(features[rows])
        alike = directions @ reference.points.T
        nearest = np.partition(alike, -rank, axis=1)[:, -rank:][:, :1]
        found = reference.points[(alike == nearest).argmax(axis=1)]
        distance[rows] = _cosine_distance(directions, found)
    return np.log(np.maximum(distance, SMALLEST_DISTANCE))


def _cosine_distance(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """1 - cosine of rows of length one or zero, pair by pair, (n,).

    Single precision finds the neighbour; 1 minus its rounded cosine would keep few
    digits of a small distance. Half the squared difference keeps them, but takes a row
    of zeros, whose cosine is zero, for one of length one.
    """
    apart = rows.astype(np.float64) - others
    of_zeros = 2 - rows.any(axis=1) - others.any(axis=1).astype(int)
    return 0.5 * (np.vecdot(apart, apart) + of_zeros)


def feature_length(
    logits: np.ndarray, features: np.ndarray, reference: TrainingReference
) -> np.ndarray:
    """Log of the distance to the centre of the reference features, (n,)."""
    squares = np.empty(len(features))
    for rows in row_blocks(*features.shape):
        apart = _from_center(features, reference, rows)
        squares[rows] = np.vecdot(apart, apart)
    return 0.5 * np.log(np.maximum(squares, np.finfo(np.float64).tiny))


def logit_peak(
    logits: np.ndarray, features: np.ndarray, reference: TrainingReference
) -> np.ndarray:
    """Log of (largest logit - mean of those not masked), (n,)."""
    return np.log(_once(_peaks, logits, reference.reach)[0])


def logit_margin(
    logits: np.ndarray, features: np.ndarray, reference: TrainingReference
) -> np.ndarray:
    """(Largest - second largest logit) over (largest - mean logit), (n,)."""
    height, margin = _once(_peaks, logits, reference.reach)
    return margin / height


def principal_components(
    logits: np.ndarray, features: np.ndarray, reference: TrainingReference
) -> np.ndarray:
    """Coordinates along the reference features' principal directions, (n, p)."""
    coordinates = np.empty((len(features), len(reference.components)))
    for rows in row_blocks(*features.shape):
        apart = _from_center(features, reference, rows)
        coordinates[rows] = apart @ reference.components.T
    return coordinates


def _from_center(
    features: np.ndarray, reference: TrainingReference, rows: slice
) -> np.ndarray:
    """Offsets from the centre in units of the scale, cut off far outside."""
    if rows.start == 0 and rows.stop == len(features):
        # One block holds them all, and the next descriptor asks for them again.
        return _once(_offsets, features, reference)
    return _offsets(features[rows], reference)


def _offsets(features: np.ndarray, reference: TrainingReference) -> np.ndarray:
    with np.errstate(over="ignore"):
        apart = features - reference.center
        apart /= reference.scale
    np.maximum(apart, -FURTHEST, out=apart)
    return np.minimum(apart, FURTHEST, out=apart)


# Default descriptors of `ShiftAwareTemperature`.
DEFAULT = (
    "neighbour_distance",
    "feature_length",
    "logit_peak",
    "logit_margin",
    "principal_components",
)

DESCRIPTORS: dict[str, Descriptor] = {
    function.__name__: function
    for function in (
        neighbour_distance,
        feature_length,
        logit_peak,
        logit_margin,
        principal_components,
    )
}


def describe(
    descriptors: Sequence[str | Descriptor],
    logits: np.ndarray | Rows,
    features: np.ndarray,
    reference: TrainingReference,
    known: dict[Hashable, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Columns of all descriptors, (n, p), and the penalty of each column, (p,).

    A descriptor of q columns gets the penalty q² for each: together they can then
    move the temperature about as far as a descriptor of one column.

    logits : (n, k), or the rows that would have to copy them.
    known : columns of these rows that were found before; those found now are added.
        Leaving out a domain keeps the source, and so the reference, as it was.
    """
    whose = None if known is None else fingerprint(reference)
    known = {} if known is None else known
    token = _FOUND.set({})
    try:
        for descriptor in descriptors:
            if (descriptor, whose) not in known:
                array = logits.logits if isinstance(logits, Rows) else logits
                found = _column(_named(descriptor), array, features, reference)
                known[descriptor, whose] = found
    finally:
        _FOUND.reset(token)
    columns = [known[descriptor, whose] for descriptor in descriptors]
    widths = np.array([block.shape[1] for block in columns])
    stacked = np.concatenate(columns, axis=1)
    if not np.isfinite(stacked).all():
        for descriptor, block in zip(descriptors, columns, strict=True):
            check_finite(block, _name(_named(descriptor)))
    return stacked, np.repeat(np.square(widths, dtype=np.float64), widths)


def _column(
    descriptor: Descriptor,
    logits: np.ndarray,
    features: np.ndarray,
    reference: TrainingReference,
) -> np.ndarray:
    """One descriptor as an (n, p) array."""
    values = np.asarray(descriptor(logits, features, reference), np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != len(logits):
        raise ValueError(
            f"{_name(descriptor)} returned shape {values.shape}; wanted "
            f"({len(logits)},) or ({len(logits)}, p)"
        )
    return values


def _name(descriptor: Descriptor) -> str:
    return getattr(descriptor, "__name__", "descriptor")


# What was found during one call of `describe`, for descriptors that need the same.
_FOUND: ContextVar[dict | None] = ContextVar("found", default=None)


def _once(function: Callable, rows: np.ndarray, beside: Any) -> Any:
    """`function(rows, beside)`, or what it gave before in the same `describe`."""
    found = _FOUND.get()
    if found is None:
        return function(rows, beside)
    key = function, id(rows), id(beside)
    if key not in found:
        found[key] = function(rows, beside)
    return found[key]


def _named(descriptor: str | Descriptor) -> Descriptor:
    if not isinstance(descriptor, str):
        return descriptor
    if descriptor not in DESCRIPTORS:
        raise ValueError(
            f"descriptors names {descriptor!r}; wanted a function or one of "
            f"{', '.join(DESCRIPTORS)}"
        )
    return DESCRIPTORS[descriptor]


def _peaks(logits: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Largest minus mean and largest minus second largest logit, (n,) float64 each.

    Masked classes, further than `reach` below the largest, do not count. A row with one
    class left is certain at every temperature; both are then what is typical of rows.
    """
    height, margin = np.empty((2, len(logits)))
    reach = min(reach, 1e149)

    def work(rows: slice, buffer: np.ndarray) -> None:
        block, drops = logits[rows], buffer[: rows.stop - rows.start]
        # Differences of numbers near the largest double would overflow.
        if block.dtype.itemsize > 4:
            block = np.clip(block, -1e150, 1e150)
        each, top = np.arange(len(block)), block.argmax(axis=1)
        with np.errstate(over="ignore"):
            np.subtract(block[each, top, None], block, out=drops, dtype=drops.dtype)
            height[rows] = row_sums(drops) / drops.shape[1]
        if drops.max() > reach:
            useful = drops <= reach
            count = np.maximum(useful.sum(axis=1), 1)
            height[rows] = np.where(useful, drops, 0).sum(axis=1, dtype=float) / count
        drops[each, top] = np.inf
        margin[rows] = drops.min(axis=1)

    each_block(logits.shape, work, partial(block_buffer, logits))
    alone = margin > reach
    height = np.maximum(height, np.finfo(np.float32).tiny)
    usual = reach / REACH
    return np.where(alone, usual, height), np.where(alone, usual, margin)
