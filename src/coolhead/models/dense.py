"""Logits of every pixel or every token as rows, and back."""

from typing import Any, NamedTuple

import numpy as np

from coolhead.models.outputs import check_calibrator
from coolhead.numerics.blocks import computing_dtype, row_blocks
from coolhead.numerics.checks import readable, real_array

IGNORED = -100  # what torch's cross entropy leaves out by default


class DenseRows(NamedTuple):
    """Pixels or tokens as rows.

    Attributes
    ----------
    logits : ndarray of shape (m, n_classes)
        A row for each position that is kept.
    labels : ndarray of shape (m,) or None
        Their labels.
    kept : ndarray of bool
        The positions that have a row: all but those of `ignore_index`.
    class_axis : int
        Axis of the classes.
    features : ndarray of shape (m, n_features) or None
        Features of the same rows.
    """

    logits: np.ndarray
    labels: np.ndarray | None
    kept: np.ndarray
    class_axis: int
    features: np.ndarray | None = None

    def restore(self, values: np.ndarray) -> np.ndarray:
        """Put values (m,) or (m, k) of the rows back, NaN where none was kept.

        Probabilities (m, k) come back in the shape of the logits.
        """
        values = np.asarray(values)
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        placed = np.full((*self.kept.shape, *values.shape[1:]), np.nan, values.dtype)
        placed[self.kept] = values
        return np.moveaxis(placed, -1, self.class_axis) if values.ndim == 2 else placed


def dense_rows(
    logits: Any,
    labels: Any = None,
    *,
    features: Any = None,
    class_axis: int | None = None,
    ignore_index: int = IGNORED,
    most: int | None = None,
    random_state: Any = 0,
) -> DenseRows:
    """Return rows of logits (n, k, h, w) per pixel, or (n, t, k) per token.

    Parameters
    ----------
    logits : array-like with more than two dimensions
        One of the dimensions is that of the classes.
    labels : array-like of shape (n, h, w) or (n, t), default=None
        Positions with the label `ignore_index` are left out.
    features : array-like of shape (n, d, h', w') or (n, t', d), default=None
        Such as the map of a layer. A map may be coarser or finer: a position takes the
        features at the same share of the length.
    class_axis : int, default=None
        Axis of the classes; by default the axis that the labels lack; without labels 1
        of four dimensions, the last of three.
    ignore_index : int, default=-100
        Label of positions to leave out.
    most : int, default=None
        At most so many rows, drawn with `random_state`; a temperature needs thousands
        of pixels, not millions.
    random_state : int or Generator, default=0
        Seed of the draw.

    Returns
    -------
    DenseRows
        The rows and their positions.

    Examples
    --------
    >>> import numpy as np
    >>> pixels = dense_rows(np.zeros((2, 5, 8, 8)), np.zeros((2, 8, 8), int))
    >>> pixels.logits.shape, pixels.restore(pixels.logits).shape
    ((128, 5), (2, 5, 8, 8))
    """
    array, axis = _dense(logits, class_axis, labels)
    positions = np.moveaxis(array, axis, -1)
    shape = positions.shape[:-1]
    given = None if labels is None else np.asarray(readable(labels, "labels"))
    if given is not None and given.shape != shape:
        raise ValueError(
            f"labels has shape {given.shape}; wanted {shape}, one for each position of "
            f"logits {array.shape} (several crops of a row: the mean of their logits)"
        )
    kept = np.ones(shape, bool) if given is None else given != ignore_index
    if most is not None and np.count_nonzero(kept) > most:
        rng = np.random.default_rng(random_state)
        chosen = rng.choice(np.flatnonzero(kept), most, replace=False)
        kept = np.isin(np.arange(kept.size), chosen).reshape(shape)
    own = None if given is None else given[kept]
    if features is None:
        return DenseRows(positions[kept], own, kept, axis)
    found = _features_at(_feature_map(features, shape), shape, np.nonzero(kept))
    return DenseRows(positions[kept], own, kept, axis, found)


def predict_dense(
    calibrator: Any, logits: Any, features: Any = None, *, class_axis: int | None = None
) -> np.ndarray:
    """Return calibrated probabilities of every position, in the shape of the logits.

    Rows and their features exist only a block at a time, so a large map of features is
    never copied as a whole.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted, on `dense_rows` or on any other rows.
    logits : array-like with more than two dimensions
        As for `dense_rows`.
    features : array-like, default=None
        As for `dense_rows`.
    class_axis : int, default=None
        As for `dense_rows`.

    Returns
    -------
    ndarray
        Probabilities, in the shape of the logits.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> pixels = data.logits[:24].T.reshape(1, -1, 4, 6)        # (n, k, h, w)
    >>> predict_dense(cal, pixels).shape == pixels.shape
    True
    """
    check_calibrator(calibrator)
    array, axis = _dense(logits, class_axis)
    positions = np.moveaxis(array, axis, -1)
    shape, n_classes = positions.shape[:-1], positions.shape[-1]
    grid = None if features is None else _feature_map(features, shape)
    width = n_classes + (0 if grid is None else grid.shape[-1])
    found = np.empty(positions.shape, computing_dtype(array))
    for rows in row_blocks(int(np.prod(shape)), width):
        index = np.unravel_index(np.arange(rows.start, rows.stop), shape)
        own = None if grid is None else _features_at(grid, shape, index)
        found[index] = calibrator.predict_proba(positions[index], own)
    return np.moveaxis(found, -1, axis)


def _dense(
    logits: Any, class_axis: int | None, labels: Any = None
) -> tuple[np.ndarray, int]:
    """Return logits of more than two dimensions, and the axis of the classes."""
    array = real_array(logits, "logits")
    if array.ndim < 3:
        raise ValueError(
            f"logits has shape {array.shape}; wanted (n, k, h, w) per pixel or "
            "(n, t, k) per token; (n, k) are rows already"
        )
    axis = find_class_axis(array.shape, None if labels is None else np.shape(labels))
    return array, axis if class_axis is None else class_axis % array.ndim


def _feature_map(features: Any, positions: tuple[int, ...]) -> np.ndarray:
    """Return features with their own dimension last, behind those of the positions."""
    array = real_array(features, "features")
    if array.ndim != len(positions) + 1 or len(array) != positions[0]:
        wanted = "(n, d, h, w)" if len(positions) == 3 else "(n, t, d)"
        raise ValueError(
            f"features has shape {array.shape}; wanted {wanted} with n = "
            f"{positions[0]}, as the logits have"
        )
    return np.moveaxis(array, find_class_axis(array.shape), -1)


def _features_at(
    grid: np.ndarray, positions: tuple[int, ...], index: tuple[np.ndarray, ...]
) -> np.ndarray:
    """Return features (m, d) at the positions `index`, from a grid of any size."""
    sizes = zip(index, grid.shape, positions, strict=False)
    return grid[tuple(at * own // wanted for at, own, wanted in sizes)]


def find_class_axis(
    shape: tuple[int, ...], without: tuple[int, ...] | None = None
) -> int:
    """Return the axis of the classes.

    The shape `without` is that of the labels: of the logits without the classes.
    """
    usual = 1 if len(shape) > 3 else len(shape) - 1
    if without is None:
        return usual
    fits = [
        axis
        for axis in range(1, len(shape))
        if (*shape[:axis], *shape[axis + 1 :]) == tuple(without)
    ]
    # Two dimensions of one length may both be the classes; then what is usual.
    return usual if usual in fits or not fits else fits[0]
