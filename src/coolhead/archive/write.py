"""Calibrated predictions, written block by block: Parquet, Arrow, CSV or .npy."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars.exceptions import PolarsError
from polars.io.plugins import register_io_source

from coolhead.archive.formulas import without_formulas
from coolhead.files import atomic_path, check_output

ENDINGS = (".parquet", ".arrow", ".csv", ".npy")
# Measured: about twenty row groups are in flight while a file is written, and every
# column of every row group costs 4 kB until it is closed. Row groups are therefore
# small, and tables of many classes get one column of arrays.
MOST_COLUMNS = 100
ELEMENTS_PER_ROW_GROUP = 2**22
ELEMENTS_PER_ROW_GROUP_OF_ARRAYS = 2**21


class Written(NamedTuple):
    """Calibrated rows on their way to a file.

    probabilities : (n, k); columns : name -> (n,) beside them.
    """

    probabilities: np.ndarray
    columns: dict[str, Any]


def write_blocks(
    blocks: Iterable[Written],
    path: str | os.PathLike,
    class_names: tuple[str, ...] | None = None,
) -> None:
    """Write the blocks in order; the file appears whole or not at all.

    Tables have the columns `prob_*` (up to 100 classes; beyond that one column
    `probabilities` of arrays) and those of the blocks; .npy has the probabilities.
    """
    path = Path(path)
    check_output(path, endings=ENDINGS)
    with atomic_path(path) as temporary:
        try:
            WRITERS[path.suffix](blocks, temporary, class_names)
        except PolarsError as error:
            raise OSError(f"cannot write {path}: {_one_line(error)}") from error
        except OSError as error:
            reason = error.strerror or _one_line(error)
            raise OSError(f"cannot write {path}: {reason}") from error


def _write_table(sink: Callable[[pl.LazyFrame, Path, int], Any]) -> Callable[..., None]:
    def write(
        blocks: Iterable[Written], path: Path, class_names: tuple[str, ...] | None
    ) -> None:
        remaining = iter(blocks)
        first = next(remaining)
        width = first.probabilities.shape[1]
        as_table = _table_maker(width, class_names)
        start = as_table(first)

        # polars 1 wraps what goes wrong in a source; who reads wants it as it was.
        failed: list[Exception] = []

        def source(*pushed_down: Any) -> Iterator[pl.DataFrame]:
            yield start
            try:
                yield from map(as_table, remaining)
            except Exception as error:
                failed.append(error)
                raise

        wide = width > MOST_COLUMNS
        most = ELEMENTS_PER_ROW_GROUP_OF_ARRAYS if wide else ELEMENTS_PER_ROW_GROUP
        group = max(1, most // width)
        try:
            sink(register_io_source(source, schema=start.schema), path, group)
        except PolarsError:
            if failed:
                raise failed[0] from None
            raise

    return write


def _table_maker(
    width: int, class_names: tuple[str, ...] | None
) -> Callable[[Written], pl.DataFrame]:
    names = [f"prob_{name}" for name in class_names or range(width)]

    def as_table(block: Written) -> pl.DataFrame:
        if width > MOST_COLUMNS:
            content: dict[str, Any] = {"probabilities": block.probabilities}
        else:
            # Columns of a row-ordered array are strided; a table wants them whole.
            transposed = np.ascontiguousarray(block.probabilities.T)
            content = dict(zip(names, transposed, strict=True))
        return pl.DataFrame(content | block.columns)

    return as_table


def _write_array(
    blocks: Iterable[Written], path: Path, class_names: tuple[str, ...] | None
) -> None:
    n_rows, width, dtype = 0, 0, np.dtype(np.float32)
    with open(path, "r+b") as stream:
        for block in blocks:
            if n_rows == 0:
                width, dtype = block.probabilities.shape[1], block.probabilities.dtype
                _write_header(stream, (0, width), dtype)
            stream.write(np.ascontiguousarray(block.probabilities).data)
            n_rows += len(block.probabilities)
        # NumPy leaves room in the header for a longer first axis.
        stream.seek(0)
        _write_header(stream, (n_rows, width), dtype)


def _write_header(stream: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
    header = {
        "shape": shape,
        "fortran_order": False,
        "descr": np.lib.format.dtype_to_descr(dtype),
    }
    np.lib.format.write_array_header_1_0(stream, header)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _sink_parquet(frame: pl.LazyFrame, path: Path, rows: int) -> None:
    frame.sink_parquet(path, row_group_size=rows, compression_level=1, statistics=False)


WRITERS: dict[str, Callable[..., None]] = {
    ".parquet": _write_table(_sink_parquet),
    ".arrow": _write_table(lambda frame, path, rows: frame.sink_ipc(path)),
    ".csv": _write_table(
        lambda frame, path, rows: without_formulas(frame).sink_csv(path)
    ),
    ".npy": _write_array,
}
