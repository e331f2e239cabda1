"""Prediction files of every kind: opened, streamed in blocks, or read whole."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np

from coolhead.io.archive import MATRICES, DomainArchive, check_codes, check_values
from coolhead.io.files import check_input
from coolhead.io.predictions import (
    Columns,
    PredictionFile,
    check_class_count,
    naming,
    with_classes,
)
from coolhead.numerics.checks import (
    check_choice,
    check_probabilities,
    logits_from_probabilities,
    probabilities_message,
    refuse_probabilities,
)

KINDS = ".npz, .npy, a folder of .npy, .safetensors, .parquet, .arrow, .csv or .jsonl"


def open_predictions(
    path: str | os.PathLike,
    class_names: Sequence[str] | None = None,
    *,
    keep: Sequence[str] = (),
) -> PredictionFile:
    """Open a file of predictions without reading its values.

    Parameters
    ----------
    path : str or PathLike
        .npz, .npy, a folder of .npy files, an archive of `DomainArchive.save`, Parquet,
        Arrow or CSV; .jsonl, or a folder of them, of multiple choice.
    class_names : sequence of str, default=None
        Names of the classes in the order wanted. Columns with names are brought into
        it; columns without are taken to be in it.
    keep : sequence of str, default=()
        Further columns of a table that its blocks hold unchanged.

    Returns
    -------
    PredictionFile
        The layout of the file.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.io import open_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.datasets.simulate_domains([1.0]).save(f"{folder}/some.safetensors")
    ...     file = open_predictions(f"{folder}/some.safetensors")
    ...     print(file.n_rows, file.widths["logits"], file.widths["features"])
    ...
    300 3 4
    """
    path = check_input(path, KINDS)
    with naming(path):
        file = _open(path, keep)
        if file.n_rows == 0:
            raise ValueError(f"{path} has no rows; wanted at least one")
        for scores in ("logits", "probabilities"):
            check_class_count(file.class_names, file.widths.get(scores), scores)
        file = with_classes(file, class_names)
    return file


def _open(path: Path, keep: Sequence[str]) -> PredictionFile:
    """Open a file as its first bytes, and only then its name, say."""
    from coolhead.io import arrays
    from coolhead.io.options import open_options
    from coolhead.io.safetensors import open_safetensors

    opener: Callable[[Path], PredictionFile] | None = None
    start = b""
    if path.suffix == ".jsonl" or (path.is_dir() and any(path.glob("*.jsonl"))):
        opener = open_options
    elif path.is_dir():
        opener = arrays.open_folder
    else:
        with open(path, "rb") as stream:
            start = stream.read(9)
        if not start:
            raise ValueError(f"{path} is empty (0 bytes); wanted {KINDS}")
        # Its first bytes are the size of its header, which may be those of a pickle.
        tensors = start[8:9] == b"{"
        if not (tensors and not any(start[3:8])):
            _refuse_pickle(path, start)
        if start[:2] == b"PK":
            opener = arrays.open_npz
        elif start[:6] == b"\x93NUMPY":
            opener = arrays.open_npy
        elif tensors:
            opener = open_safetensors
    if opener is None:
        return _open_table(path, start, keep)
    if keep:
        raise ValueError(
            f"{path} is no table, so it has no column {keep[0]!r} to keep; wanted a "
            "Parquet, Arrow or CSV file"
        )
    return opener(path)


def _refuse_pickle(path: Path, start: bytes) -> None:
    """Refuse pickles, also inside the zip archives that torch.save writes."""
    if start[0] == 0x80 and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise ValueError(
            f"{path} looks like a pickle, which may run code when it is read and is "
            f"never loaded; wanted {KINDS}"
        )
    names: list[str] = []
    if start[:2] == b"PK":
        with suppress(BadZipFile), ZipFile(path) as archive:
            names = archive.namelist()
    if any(name.endswith("/data.pkl") for name in names):
        raise ValueError(
            f"{path} was written by torch.save and holds a pickle, which may run code "
            f"when it is read and is never loaded; wanted {KINDS}: "
            "safetensors.torch.save_file({'logits': ..., 'labels': ...}, "
            f"'{path.stem}.safetensors')"
        )


def _open_table(path: Path, start: bytes, keep: Sequence[str]) -> PredictionFile:
    from coolhead.io.tables import open_table

    if start[:4] == b"PAR1":
        return open_table(path, "parquet", keep)
    if start[:6] == b"ARROW1":
        return open_table(path, "arrow", keep)
    if path.suffix in (".csv", ".tsv", ".txt") and b"\0" not in start:
        return open_table(path, "csv", keep)
    raise ValueError(f"{path} is of no known kind, or is damaged; wanted {KINDS}")


BYTES_PER_BLOCK = 2**23
# Measured: a piece of a file is held twice, packed or as read, and as arrays.
TIMES_HELD = 2


class Block(NamedTuple):
    """Neighbouring rows of a file; `start` is the number of the first one.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.io import open_predictions, stream_blocks
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
    """Yield the rows of a file in order, `n_rows` at a time.

    Memory is constant, but an .npz file is held whole, and a table in the pieces it was
    written in; pieces larger than the memory of the machine are refused.

    Parameters
    ----------
    file : PredictionFile
        What `open_predictions` returned.
    scores : {"logits", "probabilities"}, default="logits"
        "probabilities" if the file has no logits.
    n_rows : int, default=None
        Rows per block; by default as many as make about eight megabytes.

    Yields
    ------
    Block
        Neighbouring rows.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.io import open_predictions, stream_blocks
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
        _refuse_too_large(file.path, TIMES_HELD * file.held_bytes)
        for columns in file.blocks(n_rows or block_length(file)):
            suspicious = suspicious and _look_probable(columns[name])
            yield _checked_block(file, columns, name, scores, start)
            start += len(columns[name])
        if start == 0:
            raise ValueError(f"{file.path} has no rows; wanted at least one")
        # One row of logits may well sum to one by chance, a file of them does not.
        if suspicious and start > 1:
            raise ValueError(f"{probabilities_message(name)}, or say --input")


def _refuse_too_large(path: Path, needed: int) -> None:
    """Refuse a file that takes more memory than the machine has."""
    there = machine_memory()
    if needed > there:
        raise ValueError(
            f"{path} unpacks to {needed / 1e9:.2g} GB, of {there / 1e9:.2g} GB of "
            "memory that there are; wanted fewer rows, or, to stream them, a Parquet "
            "file with small row groups"
        )


def machine_memory() -> float:
    """Return the bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return float("inf")


def block_length(file: PredictionFile) -> int:
    """Return the rows per block: equal parts, so that the last one is not tiny."""
    most = max(1, BYTES_PER_BLOCK // file.bytes_per_row)
    if file.n_rows is None:
        return most
    parts = -(-file.n_rows // most)
    return -(-file.n_rows // parts)


def score_column(file: PredictionFile, scores: str) -> str:
    """Return the column of the file that holds the scores asked for."""
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
    """Return checked logits (n, k), made from probabilities if those are given."""
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


def _checked_block(
    file: PredictionFile, columns: Columns, name: str, scores: str, start: int
) -> Block:
    logits = checked_scores(columns, name, scores, start)
    features, domains = columns.get("features"), columns.get("domains")
    if features is not None:
        check_values(features, "features", start)
    names = file.domain_names
    if names is not None and domains is not None and domains.dtype.kind in "iu":
        domains = np.array(names, np.str_)[check_codes(domains, names)]
    labels, ids, kept = (columns.get(column) for column in ("labels", "ids", "kept"))
    return Block(start, logits, features, labels, domains, ids, kept)


MOST_ROWS = 100_000
MOST_BYTES = 2**27
LEAST_ROWS = 2_000


class Sample(NamedTuple):
    """Rows of a file: their numbers there, ascending, and of how many they are."""

    rows: np.ndarray
    logits: np.ndarray
    features: np.ndarray | None
    n_rows: int


def sample_length(bytes_per_row: int) -> int:
    """Return the number of rows to keep: as many as help, within the memory."""
    affordable = max(LEAST_ROWS, MOST_BYTES // max(bytes_per_row, 1))
    return min(MOST_ROWS, affordable)


def sample_blocks(
    blocks: Iterable[Block], most: int, keep: Sequence[int] = ()
) -> Sample:
    """Return at most `most` random rows of the blocks, and those of `keep` always.

    Every row draws a number and the smallest stay: the same rows for the same file,
    however it is cut into blocks, with at most twice as many in memory, and a block.
    """
    generator = np.random.default_rng(0)
    parts: list[dict[str, np.ndarray]] = []
    limit, n_rows = np.inf, 0
    for block in blocks:
        rows = block.start + np.arange(len(block))
        drawn = generator.random(len(block))
        drawn[np.isin(rows, keep)] = -1.0
        part = {"drawn": drawn, "rows": rows, "logits": block.logits}
        if block.features is not None:
            part["features"] = block.features
        parts.append({name: column[drawn < limit] for name, column in part.items()})
        n_rows += len(block)
        if sum(len(part["rows"]) for part in parts) > 2 * most + len(keep):
            parts, limit = _smallest(parts, most)
    parts, _ = _smallest(parts, most)
    columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    return Sample(columns["rows"], columns["logits"], columns.get("features"), n_rows)


def _smallest(
    parts: list[dict[str, np.ndarray]], most: int
) -> tuple[list[dict[str, np.ndarray]], float]:
    """Keep the rows with the `most` smallest numbers, and the limit of later ones."""
    drawn = np.concatenate([part["drawn"] for part in parts])
    count = most + int((drawn < 0).sum())
    if len(drawn) <= count:
        return parts, np.inf
    limit = float(np.partition(drawn, count)[count])
    return [
        {name: column[part["drawn"] < limit] for name, column in part.items()}
        for part in parts
    ], limit


BYTES_PER_LOOK = 2**20


def load_archive(
    path: str | os.PathLike,
    *,
    input: str | None = None,
    labelled: bool = False,
    domains: Sequence[str] | None = None,
    check: bool = True,
    class_names: Sequence[str] | None = None,
) -> DomainArchive:
    """Read a file of any kind; what can be mapped into memory is not read into it.

    Parameters
    ----------
    path : str or PathLike
        A file written by `DomainArchive.save`; an .npz file or a folder of .npy files
        with the arrays `logits`, `features`, `labels`, `domains` (names, or codes into
        `domain_names`), `groups`, `ids`, `class_names`; a Parquet, Arrow or CSV table
        with the columns `logit_*`, `feature_*`, `label`, `domain`, `id`; JSON lines of
        multiple choice, as lm-evaluation-harness logs them, whose rows have their own
        number of options. Pickled objects are refused.
    input : {"logits", "probabilities"}, default=None
        What the scores are: "probabilities" if there are no logits. One of them must
        then be there; by default a file may hold features alone.
    labelled : bool, default=False
        Leave out the rows without a label (-1, or an empty cell) and refuse a file
        that has no others.
    domains : sequence of str, default=None
        Names of the domains wanted; all by default.
    check : bool, default=True
        Read logits and features once, in small blocks, to refuse NaN and infinity.
        Without it a mapped file opens at once, whatever its size.
    class_names : sequence of str, default=None
        Names of the classes in the order wanted. Columns with names are brought into
        it; columns without are taken to be in it. By default the names of the columns
        or, without any, the sorted labels.

    Returns
    -------
    DomainArchive
        The rows of the file.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.datasets.simulate_domains().save(f"{folder}/some.safetensors")
    ...     data = ch.load_archive(f"{folder}/some.safetensors", domains=["site-3"])
    ...     print(len(data), data.n_classes, data.domain_names)
    ...
    300 3 ('site-3',)
    """
    file = open_predictions(path, class_names)
    alone = "features" in file.widths and "probabilities" not in file.widths
    name = None
    if input is not None or not alone:
        name = score_column(file, input or "logits")
    with naming(file.path):
        if labelled and "labels" not in file.widths:
            raise ValueError(
                f"{file.path} has no labels (columns found: {', '.join(file.widths)}); "
                "wanted an array labels, or a column label"
            )
        if not file.mapped:
            _refuse_too_large(file.path, (file.n_rows or 0) * file.bytes_per_row)
        columns = file.load()
        if labelled:
            columns = _labelled_rows(columns)
        if name is not None and input == "probabilities":
            columns["logits"] = checked_scores(columns, name, input)
        columns.pop("probabilities", None)
        archive = DomainArchive(
            **columns,
            class_names=file.class_names,
            domain_names=file.domain_names,
            metadata=file.metadata,
            check=False,
        )
        if labelled or domains is not None:
            sizes = archive.domain_sizes()
            archive = archive.select(*(domains or [d for d, n in sizes.items() if n]))
        if check and file.mapped and len(archive) == file.n_rows:
            _check_by_reading(file)
        elif check:
            archive.check_values()
    return archive


def _labelled_rows(columns: Columns) -> Columns:
    """Return the rows with a label; untouched if that is all of them."""
    keep = columns["labels"] != -1
    if not keep.any():
        raise ValueError("no row has a label; wanted labelled rows")
    if keep.all():
        return columns
    return {name: array[keep] for name, array in columns.items()}


def _check_by_reading(file: PredictionFile) -> None:
    """Check values block by block, so that pages of the file do not fill the memory."""
    start = 0
    for columns in file.blocks(max(1, BYTES_PER_LOOK // file.bytes_per_row)):
        for name in columns.keys() & set(MATRICES):
            check_values(columns[name], name, start)
        start += len(next(iter(columns.values())))
