"""Which kind a prediction file is: told by its first bytes, not by its name."""

import mmap
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np

from coolhead.io.archive import DomainArchive, check_columns, check_values
from coolhead.io.files import check_input
from coolhead.io.predictions import (
    Columns,
    PredictionFile,
    check_class_names,
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
    path : .npz, .npy, a folder of .npy files, an archive of `DomainArchive.save`,
        Parquet, Arrow or CSV; .jsonl, or a folder of them, of multiple choice.
    class_names : names of the classes in the order wanted. Columns with names are
        brought into it; columns without are taken to be in it.
    keep : further columns of a table that its blocks shall hold as they are.

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
        check_class_names(file)
        file = with_classes(file, class_names)
    return file


def _open(path: Path, keep: Sequence[str]) -> PredictionFile:
    file = _open_arrays(path)
    if file is None:
        return _open_table(path, keep)
    if keep:
        raise ValueError(
            f"{path} is no table, so it has no column {keep[0]!r} to keep; wanted a "
            "Parquet, Arrow or CSV file"
        )
    return file


def _open_arrays(path: Path) -> PredictionFile | None:
    """A file of arrays; None for what may be a table."""
    from coolhead.io.arrays import open_folder, open_npy, open_npz
    from coolhead.io.options import open_options
    from coolhead.io.safetensors import open_safetensors

    if path.suffix == ".jsonl" or (path.is_dir() and any(path.glob("*.jsonl"))):
        return open_options(path)
    if path.is_dir():
        return open_folder(path)
    with open(path, "rb") as stream:
        start = stream.read(9)
    if not start:
        raise ValueError(f"{path} is empty (0 bytes); wanted {KINDS}")
    if start[:2] == b"PK":
        _refuse_torch(path)
        return open_npz(path)
    if start[:6] == b"\x93NUMPY":
        return open_npy(path)
    if start[8:9] == b"{":
        return open_safetensors(path)
    if start[0] == 0x80 and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise ValueError(
            f"{path} looks like a pickle, which may run code when it is read and is "
            f"never loaded; wanted {KINDS}"
        )
    return None


def _refuse_torch(path: Path) -> None:
    """What torch.save writes is a zip archive, too."""
    try:
        with ZipFile(path) as archive:
            names = archive.namelist()
    except BadZipFile:
        return  # told by whoever reads it
    if any(name.endswith("/data.pkl") for name in names):
        raise ValueError(
            f"{path} was written by torch.save and holds a pickle, which may run code "
            f"when it is read and is never loaded; wanted {KINDS}: "
            "safetensors.torch.save_file({'logits': ..., 'labels': ...}, "
            f"'{path.stem}.safetensors')"
        )


def _open_table(path: Path, keep: Sequence[str]) -> PredictionFile:
    from coolhead.io.tables import open_table

    with open(path, "rb") as stream:
        start = stream.read(9)
    if start[:4] == b"PAR1":
        return open_table(path, "parquet", keep)
    if start[:6] == b"ARROW1":
        return open_table(path, "arrow", keep)
    if path.suffix in (".csv", ".tsv", ".txt") and b"\0" not in start:
        return open_table(path, "csv", keep)
    raise ValueError(f"{path} is of no known kind, or is damaged; wanted {KINDS}")


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
    """The rows of a file in order, `n_rows` at a time, in constant memory.

    A table is held in the pieces it was written in. Where these are large, a warning
    says so before they are read; where they exceed the machine, they are refused.

    scores : "logits", or "probabilities" where the file has no logits.
    n_rows : rows per block; by default as many as make about eight megabytes.

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
    """How many rows to keep: no more than tell enough, no more than is affordable."""
    affordable = max(LEAST_ROWS, MOST_BYTES // max(bytes_per_row, 1))
    return min(MOST_ROWS, affordable)


class _Part(NamedTuple):
    """Rows that stay so far, each with the number it drew."""

    drawn: np.ndarray
    rows: np.ndarray
    logits: np.ndarray
    features: np.ndarray | None

    def take(self, mask: np.ndarray) -> "_Part":
        features = None if self.features is None else self.features[mask]
        return _Part(self.drawn[mask], self.rows[mask], self.logits[mask], features)


def sample_blocks(
    blocks: Iterable[Block], most: int, keep: Sequence[int] = ()
) -> Sample:
    """At most `most` random rows of the blocks, and those of `keep` in any case.

    Every row draws a number and the smallest stay: the same rows for the same file,
    however it is cut into blocks, with at most twice as many in memory, and a block.
    """
    generator = np.random.default_rng(0)
    kept: list[_Part] = []
    limit, n_rows = np.inf, 0
    for block in blocks:
        rows = block.start + np.arange(len(block))
        drawn = generator.random(len(block))
        drawn[np.isin(rows, keep)] = -1.0
        part = _Part(drawn, rows, block.logits, block.features)
        kept.append(part.take(drawn < limit))
        n_rows += len(block)
        if sum(len(part.rows) for part in kept) > 2 * most + len(keep):
            kept, limit = _smallest(kept, most)
    kept, _ = _smallest(kept, most)
    features = [part.features for part in kept if part.features is not None]
    return Sample(
        np.concatenate([part.rows for part in kept]),
        np.concatenate([part.logits for part in kept]),
        np.concatenate(features) if features else None,
        n_rows,
    )


def _smallest(kept: list[_Part], most: int) -> tuple[list[_Part], float]:
    """Those with the `most` smallest numbers, and what a number must be below."""
    drawn = np.concatenate([part.drawn for part in kept])
    count = most + int((drawn < 0).sum())
    if len(drawn) <= count:
        return kept, np.inf
    limit = float(np.partition(drawn, count)[count])
    return [part.take(part.drawn < limit) for part in kept], limit


def give_back_pages(*arrays: Any) -> None:
    """Let the system take the pages of arrays that are mapped to be read alone.

    They are read again if needed.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    for array in arrays:
        while array is not None and not isinstance(array, mmap.mmap):
            array = getattr(array, "base", None)
        # What was written to a private copy of pages is nowhere else.
        if array is not None and memoryview(array).readonly:
            array.madvise(mmap.MADV_DONTNEED)


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
    path : a file written by `DomainArchive.save`; an .npz file or a folder of .npy
        files with the arrays `logits`, `features`, `labels`, `domains` (names, or
        codes into `domain_names`), `groups`, `ids`, `class_names`; a Parquet, Arrow or
        CSV table with the columns `logit_*`, `feature_*`, `label`, `domain`, `group`,
        `id`; JSON lines of multiple choice, as lm-evaluation-harness logs them, whose
        rows have their own number of options. Pickled objects are refused.
    input : "logits", or "probabilities" where there are no logits; then one of them
        must be there. By default a file may hold features alone.
    labelled : leave out the rows without a label (-1, or an empty cell) and refuse a
        file that has no others.
    domains : names of the domains wanted; all by default.
    check : read logits and features once, in small blocks, to refuse NaN and infinity.
        Without it a mapped file opens at once, whatever its size.
    class_names : names of the classes in the order wanted. Columns with names are
        brought into it; columns without are taken to be in it. By default the names of
        the columns or, without any, the sorted labels.

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
    name = _score_column(file, input)
    with naming(file.path):
        _refuse_unread(file, labelled)
        columns = file.load()
        if labelled:
            columns = _labelled_rows(columns)
        if name is not None and input == "probabilities":
            columns["logits"] = checked_scores(columns, name, input)
        archive = DomainArchive._from_columns(**_checked(file, columns))
        if labelled or domains is not None:
            archive = archive.select(*(domains or _not_empty(archive)))
        if check and file.mapped and len(archive) == file.n_rows:
            _check_by_reading(file)
        elif check:
            archive._check_values("logits", "features")
    return archive


def _score_column(file: PredictionFile, input: str | None) -> str | None:
    """None where a file of features alone will do."""
    alone = "features" in file.widths and "probabilities" not in file.widths
    if input is None and alone:
        return None
    return score_column(file, input or "logits")


def _refuse_unread(file: PredictionFile, labelled: bool) -> None:
    """What can be told before a small file unpacks to a lot."""
    if labelled and "labels" not in file.widths:
        raise ValueError(
            f"{file.path} has no labels (columns found: {', '.join(file.widths)}); "
            "wanted an array labels, or a column label"
        )
    size, there = (file.n_rows or 0) * file.bytes_per_row, machine_memory()
    if not file.mapped and size > there:
        raise ValueError(
            f"{file.path} unpacks to {size / 1e9:.2g} GB, of {there / 1e9:.2g} GB of "
            "memory that there are; wanted fewer rows, or a file that is not packed"
        )


def _labelled_rows(columns: Columns) -> Columns:
    """Rows with a label; untouched where that is all of them."""
    keep = columns["labels"] != -1
    if not keep.any():
        raise ValueError("no row has a label; wanted labelled rows")
    if keep.all():
        return columns
    return {name: array[keep] for name, array in columns.items()}


def _checked(file: PredictionFile, columns: Columns) -> dict[str, Any]:
    columns = {name: c for name, c in columns.items() if name != "probabilities"}
    return check_columns(
        **columns,
        class_names=file.class_names,
        domain_names=file.domain_names,
        metadata=file.metadata,
    )


def _not_empty(archive: DomainArchive) -> list[str]:
    return [name for name, n_rows in archive.domain_sizes().items() if n_rows]


def _check_by_reading(file: PredictionFile) -> None:
    """Block by block from the file, so that its pages do not fill the memory."""
    start = 0
    for columns in file.blocks(max(1, BYTES_PER_LOOK // file.bytes_per_row)):
        for name in columns.keys() & {"logits", "features"}:
            check_values(columns[name], name, start)
        start += len(next(iter(columns.values())))
