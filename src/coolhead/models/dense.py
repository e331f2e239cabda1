"""Logits of every pixel or every token as rows, and back."""

from typing import Any, NamedTuple

import numpy as np

from coolhead.numerics.arrays import readable, real_array

IGNORED = -100  # what torch's cross entropy leaves out by default


class DenseRows(NamedTuple):
    """Pixels or tokens as rows.

    logits : (m, k), a row for each place that is kept; labels : (m,) or None.
    kept : (n, ...) bool, the places that have a row: all but those of `ignore_index`.
    class_axis : where the classes stood.
    """

    logits: np.ndarray
    labels: np.ndarray | None
    kept: np.ndarray
    class_axis: int

    def restore(self, values: np.ndarray) -> np.ndarray:
        """Values (m,) or (m, k) of the rows in their places, NaN where none was kept.

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
    class_axis: int | None = None,
    ignore_index: int = IGNORED,
) -> DenseRows:
    """Rows of logits (n, k, h, w) per pixel, or (n, t, k) per token.

    Parameters
    ----------
    logits : more than two dimensions, one of them the classes.
    labels : (n, h, w) or (n, t), of which `ignore_index` is left out.
    class_axis : where the classes are; by default what is left when the shape of the
        labels is taken away; without labels 1 of four dimensions, the last of three.

    Examples
    --------
    >>> import numpy as np
    >>> pixels = dense_rows(np.zeros((2, 5, 8, 8)), np.zeros((2, 8, 8), int))
    >>> pixels.logits.shape, pixels.restore(pixels.logits).shape
    ((128, 5), (2, 5, 8, 8))
    """
    array = real_array(logits, "logits")
    if array.ndim < 3:
        raise ValueError(
            f"logits has shape {array.shape}; wanted (n, k, h, w) per pixel or "
            "(n, t, k) per token; (n, k) are rows already"
        )
    axis = find_class_axis(array.shape, None if labels is None else np.shape(labels))
    axis = axis if class_axis is None else class_axis % array.ndim
    places = np.moveaxis(array, axis, -1)
    if labels is None:
        kept = np.ones(places.shape[:-1], bool)
        return DenseRows(places[kept], None, kept, axis)
    given = np.asarray(readable(labels, "labels"))
    if given.shape != places.shape[:-1]:
        raise ValueError(
            f"labels has shape {given.shape}; wanted {places.shape[:-1]}, one for each "
            f"place of logits {array.shape}"
        )
    kept = given != ignore_index
    return DenseRows(places[kept], given[kept], kept, axis)


def find_class_axis(
    shape: tuple[int, ...], without: tuple[int, ...] | None = None
) -> int:
    """Where the classes are among the dimensions of logits.

    without : the shape of the labels, which is that of the logits without the classes.
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
