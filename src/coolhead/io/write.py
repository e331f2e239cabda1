"""The only writer of CSV: text that a spreadsheet would compute is neutralised."""

import _thread
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars.exceptions import PolarsError
from polars.io.plugins import register_io_source

from coolhead.io.files import atomic_path, check_output

# Spreadsheets drop leading white space and read full-width signs as plain ones.
COMPUTED = r"^[\t\r\n]|^\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]"
# -1 is a class of many data sets, and what it computes to.
NUMBER = r"^\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$"


def write_csv(frame: pl.DataFrame | pl.LazyFrame, path: Path) -> None:
    """Write a table with an apostrophe before texts and headings such as =1+1, @x.

    Parameters
    ----------
    frame : DataFrame or LazyFrame
        The table. A LazyFrame is written as it is read, in constant memory.
    path : Path
        The file to write.

    Raises
    ------
    polars.exceptions.PolarsError
        If a column holds lists, structs, bytes or durations, which CSV cannot hold.
    """
    _without_formulas(frame).sink_csv(path)


def csv_text(frame: pl.DataFrame, **options: Any) -> str:
    """Return the text that `write_csv` would write, with the options of polars."""
    return _without_formulas(frame).collect().write_csv(**options)


def _without_formulas(frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    kinds = pl.selectors.by_dtype(pl.String, pl.Categorical, pl.Enum)
    texts = kinds.cast(pl.String)
    computed = texts.str.contains(COMPUTED) & ~texts.str.contains(NUMBER)
    shielded = pl.when(computed).then(pl.lit("'") + texts).otherwise(texts)
    frame = frame.lazy().with_columns(shielded.name.keep())
    return frame.rename(lambda name: f"'{name}" if re.match(COMPUTED, name) else name)


ENDINGS = (".parquet", ".arrow", ".csv", ".npy")
# Measured: about twenty row groups are in flight while a file is written, and every
# column of every row group costs 4 kB until it is closed. Row groups are therefore
# small, and tables of many classes get one column of arrays.
MOST_COLUMNS = 100
ELEMENTS_PER_ROW_GROUP = 2**22
ELEMENTS_PER_ROW_GROUP_OF_ARRAYS = 2**21
SECONDS_BETWEEN_SIGNALS, SECONDS_TO_STOP = 0.1, 10.0


class Written(NamedTuple):
    """Calibrated rows on their way to a file.

    Attributes
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Calibrated probabilities.
    columns : dict of str to array-like of shape (n_samples,)
        Columns beside them.
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
            raise OSError(str(error)) from error


def _write_table(sink: Callable[[pl.LazyFrame, Path, int], Any]) -> Callable[..., None]:
    def write(
        blocks: Iterable[Written], path: Path, class_names: tuple[str, ...] | None
    ) -> None:
        remaining = iter(blocks)
        first = next(remaining)
        width = first.probabilities.shape[1]
        names = [f"prob_{name}" for name in class_names or range(width)]
        wide = width > MOST_COLUMNS

        def as_table(block: Written) -> pl.DataFrame:
            content: dict[str, Any] = {"probabilities": block.probabilities}
            if not wide:
                # Columns of a row-ordered array are strided; a table wants them whole.
                transposed = np.ascontiguousarray(block.probabilities.T)
                content = dict(zip(names, transposed, strict=True))
            return pl.DataFrame(content | block.columns)

        start = as_table(first)
        # polars 1 wraps the errors of a source; they are raised unchanged.
        failed: list[Exception] = []
        stopped: list[bool] = []

        def source(*pushed_down: Any) -> Iterator[pl.DataFrame]:
            yield start
            try:
                for block in remaining:
                    if stopped:
                        return  # the file is not wanted any more
                    yield as_table(block)
            except Exception as error:
                failed.append(error)
                raise

        most = ELEMENTS_PER_ROW_GROUP_OF_ARRAYS if wide else ELEMENTS_PER_ROW_GROUP
        group = max(1, most // width)
        frame = register_io_source(source, schema=start.schema)
        try:
            _run_beside(partial(sink, frame, path, group), stopped)
        except PolarsError:
            if failed:
                raise failed[0] from None
            raise

    return write


def _run_beside(work: Callable[[], Any], stopped: list[bool]) -> None:
    """Run in another thread; while polars writes, its own runs no signal handler.

    This thread waits for a plain lock. A handler that raises inside the wait for a
    `Future`, or in `Thread.start`, leaves a lock behind for which the other thread
    would wait for ever.
    """
    outcome: list[BaseException | None] = []
    working = _thread.allocate_lock()
    working.acquire()

    def run() -> None:
        try:
            work()
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)
        working.release()

    try:
        _thread.start_new_thread(run, ())
        # A signal that another thread receives does not end a wait: the main thread
        # must wake by itself to handle it.
        while not outcome:
            working.acquire(timeout=SECONDS_BETWEEN_SIGNALS)
    except BaseException:
        stopped.append(True)
        if not outcome:
            working.acquire(timeout=SECONDS_TO_STOP)
        raise
    if outcome[0] is not None:
        raise outcome[0]


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
        # NumPy pads the header so that a longer first axis fits.
        stream.seek(0)
        _write_header(stream, (n_rows, width), dtype)


def _write_header(stream: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
    header = {
        "shape": shape,
        "fortran_order": False,
        "descr": np.lib.format.dtype_to_descr(dtype),
    }
    np.lib.format.write_array_header_1_0(stream, header)


def _sink_parquet(frame: pl.LazyFrame, path: Path, rows: int) -> None:
    frame.sink_parquet(path, row_group_size=rows, compression_level=1, statistics=False)


WRITERS: dict[str, Callable[..., None]] = {
    ".parquet": _write_table(_sink_parquet),
    ".arrow": _write_table(lambda frame, path, rows: frame.sink_ipc(path)),
    ".csv": _write_table(lambda frame, path, rows: write_csv(frame, path)),
    ".npy": _write_array,
}
