"""Blocks of rows, checked: an error names the row of the file, not of the block."""

from collections.abc import Iterator
from typing import NamedTuple
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from coolhead.numerics.probabilities import logits_from_probabilities
from coolhead.predictions.opened import Columns, OpenedFile, refuse_damaged

ELEMENTS_PER_BLOCK = 2**21


class Block(NamedTuple):
    """Neighbouring rows of a file; `start` is the number of the first one."""

    start: int
    logits: np.ndarray
    features: np.ndarray | None
    labels: np.ndarray | None
    domains: np.ndarray | None

    def __len__(self) -> int:
        return len(self.logits)


def stream_blocks(
    opened: OpenedFile, *, scores: str = "logits", n_rows: int | None = None
) -> Iterator[Block]:
    """The rows of a file in order, `n_rows` at a time, in constant memory.

    scores : "logits", or "probabilities" where the file has no logits.
    n_rows : rows per block; by default as many as make about two million numbers.
    """
    name = score_column(opened, scores)
    start = 0
    for columns in _raw_blocks(opened, n_rows or block_length(opened)):
        yield _checked_block(opened, columns, name, scores, start)
        start += len(columns[name])
    if start == 0:
        raise ValueError(f"{opened.path} has no rows; wanted at least one")


def _raw_blocks(opened: OpenedFile, n_rows: int) -> Iterator[Columns]:
    try:
        yield from opened.blocks(n_rows)
    except (BadZipFile, ZlibError, EOFError, MemoryError) as error:
        refuse_damaged(opened.path, error)
    except ValueError as error:
        if str(opened.path) in str(error):
            raise
        raise ValueError(f"{opened.path}: {error}") from error


def block_length(opened: OpenedFile) -> int:
    """Rows per block: equal parts, so that the last one is not tiny."""
    width = sum(opened.widths.values())
    most = max(1, ELEMENTS_PER_BLOCK // width)
    if opened.n_rows is None:
        return most
    parts = -(-opened.n_rows // most)
    return -(-opened.n_rows // parts)


def score_column(opened: OpenedFile, scores: str) -> str:
    """Which column of the file holds the scores that were asked for."""
    if scores not in ("logits", "probabilities"):
        raise ValueError(f"input is {scores!r}; wanted 'logits' or 'probabilities'")
    if scores in opened.widths:
        return scores
    if scores == "logits" and "probabilities" in opened.widths:
        raise ValueError(
            f"{opened.path} holds probabilities and no logits; say --input "
            "probabilities"
        )
    if "logits" in opened.widths:
        # Probabilities under the name of logits, and the user said so.
        return "logits"
    listed = ", ".join(opened.widths)
    raise ValueError(f"{opened.path} has no {scores} (columns found: {listed})")


def checked_scores(
    columns: Columns, name: str, scores: str, start: int = 0
) -> np.ndarray:
    """Finite logits (n, k), made from probabilities where those were given."""
    array = columns[name]
    refuse_not_finite(array, name, start)
    if scores == "logits":
        return array
    try:
        return logits_from_probabilities(array)
    except ValueError:
        _refuse_improbable(array, name, start)
        raise


def refuse_not_finite(array: np.ndarray, name: str, start: int) -> None:
    """Refuse NaN (in tables: empty cells) and infinity by their row in the file."""
    if array.dtype.kind != "f":
        return
    finite = np.isfinite(array)
    if finite.all():
        return
    bad = ~finite.reshape(len(array), -1).all(axis=1)
    first = int(np.argmax(bad))
    value = np.asarray(array[first]).ravel()
    kind = "NaN" if np.isnan(value).any() else "infinity"
    raise ValueError(
        f"{name} contains {kind} in row {start + first} (rows count from 0); every "
        "value must be finite"
    )


def _refuse_improbable(array: np.ndarray, name: str, start: int) -> None:
    """Name the first row of the file that is no probability vector."""
    rows = array if array.ndim == 2 else np.column_stack([1 - array, array])
    sums = rows.sum(axis=1, dtype=np.float64)
    slack = 5e-3 if rows.dtype == np.float16 else 1e-4
    wrong = (rows < 0).any(axis=1) | (np.abs(sums - 1) > slack)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{name} row {start + row} is no probability vector (sum {sums[row]:.6g}); "
            "wanted values in [0, 1] that sum to 1"
        )


def _checked_block(
    opened: OpenedFile, columns: Columns, name: str, scores: str, start: int
) -> Block:
    try:
        logits = checked_scores(columns, name, scores, start)
        features = columns.get("features")
        if features is not None:
            refuse_not_finite(features, "features", start)
    except ValueError as error:
        raise ValueError(f"{opened.path}: {error}") from None
    return Block(start, logits, features, columns.get("labels"), columns.get("domains"))
