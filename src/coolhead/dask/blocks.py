"""Row blocks of several Dask collections side by side; blocks are never joined."""

import warnings
from collections.abc import Callable
from math import isnan
from typing import Any

import dask
import dask.array as da
import numpy as np

from coolhead.numerics.classes import (
    Names,
    column_names,
    column_order,
    distinct_text,
    encode_beside,
    join_text,
    names_of_text,
    wanted_classes,
)
from coolhead.numerics.weights import weighted_rows

# A column with one row for each block, not for each row.
PER_BLOCK = "before"

Table = dict[str, Any]
"""Dask arrays by name, with the same row blocks; columns in one piece."""


def align(
    logits: Any, *, classes: Any = None, **others: Any
) -> tuple[Table, Names | None]:
    """Return arrays with the row blocks of `logits`; None is left out.

    Takes Dask arrays, Dask dataframes and series, and NumPy arrays beside them. If the
    lengths of the blocks are unknown, as in most dataframes, all arguments must have
    the same blocks. The columns are brought into the order of `classes`, and
    labels become column numbers. Returns the names of the classes, too.
    """
    table = {"logits": _as_array(logits, "logits")}
    if table["logits"].ndim == 1:
        # Scores of a binary classifier: the logits [0, s].
        scores = table["logits"]
        table["logits"] = da.stack([da.zeros_like(scores), scores], axis=1)
        table["scores"] = da.zeros_like(scores, dtype=np.int8)
    table["logits"] = table["logits"].rechunk({1: -1})
    for name, values in others.items():
        if values is not None:
            array = _as_array(values, name, table["logits"].chunks[0])
            table[name] = _same_blocks(name, array, table["logits"])
    return table, _match_classes(table, logits, classes, others.get("labels"))


def _match_classes(table: Table, scores: Any, classes: Any, labels: Any) -> Any:
    """Order the columns, replace labels by column numbers; return the class names."""
    own, n_classes = column_names(scores), table["logits"].shape[1]
    names = wanted_classes(own, classes)
    order = None if names is None else column_order(own, names, n_classes)
    if order is not None:
        table["logits"] = table["logits"][:, order]
    if "labels" not in table:
        return names
    column = {"labels": table["labels"]}
    if table["labels"].dtype.kind not in "iub":
        found = per_block(_distinct_text, column, dtype=object)
        text = join_text(found.compute())
        if text:
            names = names_of_text(
                text, labels, n_classes, names, own=own, counted=classes is None
            )
    kinds: Any = {"dtype": np.intp, "keep_rows": True}
    settings = {"n_classes": n_classes, "own": own, "wanted": names}
    table["labels"] = per_block(
        _encoded, {"labels": table["labels"]}, **kinds, **settings
    )
    return names


def _distinct_text(block: dict[str, np.ndarray]) -> np.ndarray | None:
    # A partition without rows says nothing about the kind of labels.
    labels = block["labels"]
    return distinct_text(labels) if len(labels) else np.empty(0, np.str_)


def _encoded(
    block: dict[str, np.ndarray], n_classes: int, own: Any, wanted: Any
) -> np.ndarray:
    labels = block["labels"]
    return encode_beside(labels, n_classes, len(labels), own, wanted)[0]


def per_block(
    function: Callable[..., Any],
    table: Table,
    shape: tuple[int, ...] = (),
    *,
    dtype: Any = np.float64,
    keep_rows: bool = False,
    **settings: Any,
) -> Any:
    """Call ``function(block: dict of arrays, **settings)`` on every block, lazily.

    The result has one row per block, or with `keep_rows` as many as the block, of
    this shape and dtype. Blocks without rows give zeros. With dtype object the one row
    is any object; the function then gets blocks without rows, too. Unless
    rows are kept, those of weight zero never reach the function.
    """
    inner = tuple(range(1, 1 + len(shape)))
    arguments: list[Any] = []
    for column, array in enumerate(table.values()):
        own = tuple(100 * (column + 1) + axis for axis in range(1, array.ndim))
        arguments += [array, (0, *own)]
    return da.blockwise(
        _on_block,
        (0, *inner),
        *arguments,
        new_axes=dict(zip(inner, shape, strict=True)),
        adjust_chunks=None if keep_rows else {0: lambda n: 1},
        concatenate=False,
        align_arrays=False,
        dtype=dtype,
        meta=np.empty((0,) * (1 + len(shape)), dtype),
        function=function,
        names=tuple(table),
        empty=None if dtype is object else np.zeros((1 - keep_rows, *shape), dtype),
        keep_rows=keep_rows,
        **settings,
    )


def whole(value: Any) -> Any:
    """Wrap a large setting for `per_block`: sent to each worker once, not per block."""
    return dask.delayed(value, traverse=False, pure=True)  # pyright: ignore


def block_lengths(table: Table) -> np.ndarray:
    """Return the number of rows of every block that count, reading one column."""
    known = table["logits"].chunks[0]
    if "weights" not in table and not any(isnan(n) for n in known):
        return np.array(known, np.intp)
    narrow = next((n for n in ("weights", "labels") if n in table), next(iter(table)))
    lengths = per_block(_length, {narrow: table[narrow]}, dtype=np.intp)
    return np.asarray(lengths.compute())


def one_per_block(values: np.ndarray) -> Any:
    """Return the column `PER_BLOCK`: block i gets the row i of (blocks, width)."""
    chunks: Any = (1, values.shape[1])
    return da.from_array(values, chunks=chunks)


def _length(block: dict[str, np.ndarray]) -> np.ndarray:
    return np.array([len(values) for values in block.values()], np.intp)


def _on_block(
    *blocks: Any,
    function: Callable,
    names: tuple[str, ...],
    empty: np.ndarray | None,
    keep_rows: bool,
    **settings: Any,
) -> np.ndarray:
    arrays = [np.asarray(_only(block)) for block in blocks]
    if "weights" in names and not keep_rows:
        counted = weighted_rows(arrays[names.index("weights")])
        if counted is not None:
            arrays = [
                array if name == PER_BLOCK else array[counted]
                for name, array in zip(names, arrays, strict=True)
            ]
    if empty is not None and not len(arrays[0]):
        return empty  # dataframes often have partitions without rows
    found = function(dict(zip(names, arrays, strict=True)), **settings)
    if empty is not None:
        return found
    row = np.empty(1, object)
    row[0] = found
    return row


def _only(block: Any) -> Any:
    """Unwrap a block: it comes in one list for each axis that the result lacks."""
    while isinstance(block, list):
        (block,) = block
    return block


def _as_array(values: Any, name: str, rows: tuple = ()) -> Any:
    if isinstance(values, da.Array):
        array = values
    elif hasattr(values, "to_dask_array"):
        with warnings.catch_warnings():
            # Strings and nullable numbers come as objects; each block is checked.
            warnings.filterwarnings("ignore", message="Dask currently has limited")
            array = values.to_dask_array()
    elif rows:
        plain = np.asarray(values)
        if any(isnan(n) for n in rows) or sum(rows) != len(plain):
            raise ValueError(
                f"{name} is a NumPy array of {len(plain)} rows, the logits have "
                f"{sum(rows)}; wanted the same, or a Dask collection"
            )
        chunks: Any = (rows, *plain.shape[1:])
        array = da.from_array(plain, chunks=chunks)
    else:
        raise TypeError(
            f"{name} is a {type(values).__name__}; wanted a Dask array or dataframe"
        )
    if array.ndim > 2:
        raise ValueError(f"{name} has {array.ndim} dimensions; wanted one or two")
    return array


def _same_blocks(name: str, array: Any, logits: Any) -> Any:
    mine, wanted = array.chunks[0], logits.chunks[0]
    columns = {1: -1} if array.ndim == 2 else {}
    if any(isnan(n) for n in (*mine, *wanted)):
        if len(mine) != len(wanted):
            raise ValueError(
                f"{name} comes in {len(mine)} blocks, the logits in {len(wanted)}, and "
                "their lengths are unknown; wanted the same blocks"
            )
        return array.rechunk(columns) if columns else array
    if sum(mine) != sum(wanted):
        raise ValueError(
            f"{name} has {sum(mine)} rows, the logits have {sum(wanted)}; wanted the "
            "same"
        )
    return array.rechunk({0: wanted, **columns})
