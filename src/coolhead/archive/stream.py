"""Blocks of rows, checked: an error names the row of the file, not of the block."""

import os
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coolhead.archive.checks import check_values
from coolhead.archive.prediction_file import Columns, PredictionFile, naming
from coolhead.numerics.checks import check_choice
from coolhead.numerics.probabilities import (
    check_probabilities,
    logits_from_probabilities,
    probabilities_message,
    refuse_probabilities,
)

BYTES_PER_BLOCK = 2**23
# Measured: a row group is there twice, packed or as read, and as a table.
TIMES_HELD = 2
HELD_SILENTLY, BYTES_PER_GROUP = 2**29, 2**26


class Block(NamedTuple):
    """Neighbouring rows of a file; `start` is the number of the first one.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.archive import open_predictions, stream_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.datasets.simulate_domains([1.0]).save(f"{folder}/some.safetensors")
    ...     file = open_predictions(f"{folder}/some.safetensors")
    ...     for block in stream_blocks(file, n_rows=200):
    ...         print(block.start, block.logits.shape)
    ...
    0 (200, 3)
    200 (100, 3)
    """

    start: int
    logits: np.ndarray
    features: np.ndarray | None
    labels: np.ndarray | None
    domains: np.ndarray | None
    ids: np.ndarray | None
    kept: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.logits)


def stream_blocks(
    file: PredictionFile, *, scores: str = "logits", n_rows: int | None = None
) -> Iterator[Block]:
    """The rows of a file in order, `n_rows` at a time, in constant memory.

    A table is held in the pieces it was written in. Where these are large, a warning
    says so before they are read; where they exceed the machine, they are refused.

    scores : "logits", or "probabilities" where the file has no logits.
    n_rows : rows per block; by default as many as make about eight megabytes.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.archive import open_predictions, stream_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.datasets.simulate_domains([1.0]).save(f"{folder}/some.safetensors")
    ...     file = open_predictions(f"{folder}/some.safetensors")
    ...     [len(block.labels) for block in stream_blocks(file, n_rows=200)]
    ...
    [200, 100]
    """
    name = score_column(file, scores)
    start, suspicious = 0, scores == "logits"
    with naming(file.path):
        _say_what_is_held(file)
        for columns in file.blocks(n_rows or block_length(file)):
            suspicious = suspicious and _look_probable(columns[name])
            yield _checked_block(columns, name, scores, start)
            start += len(columns[name])
        if start == 0:
            raise ValueError(f"{file.path} has no rows; wanted at least one")
        # One row of logits may well sum to one by chance, a file of them does not.
        if suspicious and start > 1:
            raise ValueError(f"{probabilities_message(name)}, or say --input")


def _say_what_is_held(file: PredictionFile) -> None:
    needed = TIMES_HELD * file.held_bytes
    if needed <= HELD_SILENTLY:
        return
    rows = max(1, BYTES_PER_GROUP // max(file.bytes_per_row, 1))
    told = (
        f"{file.path} was written in pieces of up to {file.held_bytes / 1e9:.2g} GB, "
        f"each of which is held whole: about {needed / 1e9:.2g} GB of memory"
    )
    advice = f"a Parquet file with row groups of {rows} rows needs no more than others"
    there = machine_memory()
    if needed > there:
        raise ValueError(f"{told}, of {there / 1e9:.2g} GB that there are; {advice}")
    warnings.warn(f"{told}; {advice}", stacklevel=2)


def machine_memory() -> float:
    """Bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return float("inf")


def block_length(file: PredictionFile) -> int:
    """Rows per block: equal parts, so that the last one is not tiny."""
    most = max(1, BYTES_PER_BLOCK // file.bytes_per_row)
    if file.n_rows is None:
        return most
    parts = -(-file.n_rows // most)
    return -(-file.n_rows // parts)


def score_column(file: PredictionFile, scores: str) -> str:
    """Which column of the file holds the scores that were asked for."""
    check_choice(scores, "input", "logits", "probabilities")
    if scores in file.widths:
        return scores
    if scores == "logits" and "probabilities" in file.widths:
        raise ValueError(
            f"{file.path} holds probabilities and no logits; say --input probabilities"
        )
    if "logits" in file.widths:
        # Probabilities under the name of logits, and the user said so.
        return "logits"
    listed = ", ".join(file.widths)
    raise ValueError(f"{file.path} has no {scores} (columns found: {listed})")


def checked_scores(
    columns: Columns, name: str, scores: str, start: int = 0
) -> np.ndarray:
    """Logits (n, k) that may be used, made from probabilities where those are given."""
    array = columns[name]
    check_values(array, name, start)
    if scores == "logits":
        return array
    try:
        return logits_from_probabilities(array)
    except ValueError:
        # The same refusal, by the row of the file.
        rows = array if array.ndim == 2 else np.column_stack([1 - array, array])
        check_probabilities(rows, name, first_row=start)
        raise


def _look_probable(array: np.ndarray) -> bool:
    if array.ndim != 2 or array.dtype.kind != "f":
        return False
    try:
        refuse_probabilities(array, "")
    except ValueError:
        return True
    return False


def _checked_block(columns: Columns, name: str, scores: str, start: int) -> Block:
    logits = checked_scores(columns, name, scores, start)
    features = columns.get("features")
    if features is not None:
        check_values(features, "features", start)
    others = (columns.get(column) for column in ("labels", "domains", "ids", "kept"))
    return Block(start, logits, features, *others)
