"""Blocks of rows, checked: an error names the row of the file, not of the block."""

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
        for columns in file.blocks(n_rows or block_length(file)):
            suspicious = suspicious and _look_probable(columns[name])
            yield _checked_block(columns, name, scores, start)
            start += len(columns[name])
        if start == 0:
            raise ValueError(f"{file.path} has no rows; wanted at least one")
        # One row of logits may well sum to one by chance, a file of them does not.
        if suspicious and start > 1:
            raise ValueError(f"{probabilities_message(name)}, or say --input")


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
