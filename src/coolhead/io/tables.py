"""Tables with named columns: Parquet, Arrow and CSV, in batches.

Columns `logit_*` or `prob_*`, `feature_*`, `label` and `domain`; a Parquet or Arrow
file may also hold `logits`, `probabilities` or `features` as one column of arrays,
and any table an `id`.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError

from coolhead.io.parquet_pages import check_pages
from coolhead.io.predictions import Columns, PredictionFile, refuse_damaged
from coolhead.plugins import suggest

BYTES_PER_PIECE = 2**24
SINGLES = {"label": "labels", "domain": "domains", "id": "ids"}
PREFIXES = {"logits": "logit_", "probabilities": "prob_", "features": "feature_"}


def open_table(path: Path, kind: str, keep: Sequence[str] = ()) -> PredictionFile:
    """A table, whose number of rows a CSV file tells only at its end.

    keep : names of further columns that blocks hold as they are, under "kept".
    """
    with _readable(path):
        frame, schema, held = _scan(path, kind)
        n_rows = None if kind == "csv" else frame.select(pl.len()).collect().item()
    _refuse_repeated(path, schema)
    groups = {name: _members(path, schema, name) for name in PREFIXES}
    groups = {name: members for name, members in groups.items() if members}
    class_names = _class_names(groups, schema)
    singles = {column: name for name, column in SINGLES.items() if name in schema}
    if not groups:
        listed = ", ".join(schema.names()[:8]) or "none"
        raise ValueError(
            f"{path} has no columns logit_*, prob_* or feature_*; columns found: "
            f"{listed}{', ...' if len(schema) > 8 else ''}"
        )
    label_names = None
    if _is_text(schema.get("label")):
        label_names = partial(_distinct, frame, path)
    used = [*(m for ms in groups.values() for m in ms), *singles.values()]
    for name in keep:
        if name not in schema:
            raise ValueError(f"{path} has no column {name!r}{suggest(name, schema)}")
    kept = [name for name in keep if name not in used]
    used += kept
    frame = frame.select(used)
    widths = {name: _width(schema, ms) for name, ms in groups.items()}
    widths |= dict.fromkeys(singles, 1)
    if kind == "arrow" and n_rows is not None:
        # Its batches may be of any size, and polars keeps them.
        held = n_rows * sum(_width_in_bytes(kind) for kind in schema.dtypes())
    batches = partial(frame.collect_batches, maintain_order=True, lazy=True)
    if kind == "csv":
        batches = partial(_csv_batches, path, schema, used)
    arrays = partial(_arrays, groups=groups, singles=singles, kept=kept)

    def blocks(step: int) -> Iterator[Columns]:
        with _readable(path):
            for batch in batches(chunk_size=step):
                if batch.height:
                    yield arrays(batch)

    def load() -> Columns:
        with _readable(path):
            return arrays(frame.collect())

    return PredictionFile(
        path,
        n_rows,
        widths,
        blocks,
        load,
        class_names=class_names,
        bytes_per_row=8 * sum(widths.values()),
        held_bytes=held,
        label_names=label_names,
        truth=schema.get("label") == pl.Boolean,
        by_name=True,
    )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What polars cannot read is a damaged file."""
    try:
        yield
    # The parser of Arrow files panics on some forged ones.
    except (PolarsError, PanicException) as error:
        refuse_damaged(path, error)


def _scan(path: Path, kind: str) -> tuple[pl.LazyFrame, pl.Schema, int]:
    """A table, its columns, and how many bytes of it are read at a time at least."""
    if kind == "parquet":
        frame = pl.scan_parquet(path, glob=False)
        schema = frame.collect_schema()
        try:
            return frame, schema, check_pages(path)
        except ValueError as error:
            refuse_damaged(path, error)
    if kind == "arrow":
        frame = pl.scan_ipc(path, glob=False)
        return frame, frame.collect_schema(), 0
    read = partial(pl.scan_csv, path, glob=False, separator=_separator(path))
    found = read(infer_schema_length=100).collect_schema()
    types: dict[str, Any] = {
        name: pl.Float64 for name in found if name.startswith(tuple(PREFIXES.values()))
    }
    # Types are fixed before reading: a later row must not change them.
    types |= {name: pl.String for name in ("domain", "id") if name in found}
    frame = read(schema_overrides=types)
    return frame, frame.collect_schema(), 0


def _separator(path: Path) -> str:
    return "\t" if path.suffix == ".tsv" else ","


def _csv_batches(
    path: Path, schema: pl.Schema, columns: list[str], *, chunk_size: int
) -> Iterator[pl.DataFrame]:
    """Tables of at most `chunk_size` rows, from pieces of text cut between lines.

    A reader that maps the file would count all of it as memory of this process.
    """
    read = partial(pl.read_csv, schema_overrides=dict(schema), columns=columns)
    with open(path, "rb") as stream:
        header, kept = stream.readline(), b""
        ahead = stream.read(BYTES_PER_PIECE)
        while ahead:
            kept += ahead
            ahead = stream.read(BYTES_PER_PIECE)
            end = kept.rfind(b"\n") + 1 if ahead else len(kept)
            # An odd number of quotes means that the cut is inside a quoted cell.
            inside = ahead and kept.count(b'"', 0, end) % 2
            if inside or not kept[:end].strip():
                continue
            table = read(header + kept[:end], separator=_separator(path))
            yield from table.iter_slices(chunk_size)
            kept = kept[end:]


def _refuse_repeated(path: Path, schema: pl.Schema) -> None:
    """polars gives the second of two columns of the same name another name."""
    for column in schema:
        name = re.sub("_duplicated_[0-9]+$", "", column)
        known = name in SINGLES or name.startswith(tuple(PREFIXES.values()))
        if name != column and name in schema and known:
            raise ValueError(f"{path} has the column {name} twice; wanted it once")


def _members(path: Path, schema: pl.Schema, name: str) -> list[str]:
    """The columns of one array in their order: by number, or as they stand."""
    prefix = PREFIXES[name]
    members = [column for column in schema if column.startswith(prefix)]
    if not members and name in schema:
        return [name]
    suffixes = [column.removeprefix(prefix) for column in members]
    if not members or not all(re.fullmatch("[0-9]+", text) for text in suffixes):
        return members
    numbers = sorted(int(text) for text in suffixes)
    start = min(numbers[0], 1)
    # Counted, not listed: a column may well be called logit_999999999.
    wanted = next((n for n, found in enumerate(numbers, start) if n != found), None)
    if wanted is not None:
        raise ValueError(
            f"{path}: the column {prefix}{wanted} is missing (there are {members[0]} "
            f"to {members[-1]}); wanted {prefix}0, {prefix}1, ... without a gap"
        )
    return sorted(members, key=lambda column: int(column.removeprefix(prefix)))


def _class_names(
    groups: dict[str, list[str]], schema: pl.Schema
) -> tuple[str, ...] | None:
    """Names of the classes: behind the prefix of the columns, or those of an Enum."""
    for name in ("logits", "probabilities"):
        columns = groups.get(name, [])
        if len(columns) > 1:
            return tuple(column.removeprefix(PREFIXES[name]) for column in columns)
        label = schema.get("label")
        if columns and isinstance(label, pl.Enum):
            listed = tuple(label.categories)
            return listed if len(listed) == _width(schema, columns) else None
    return None


def _width(schema: pl.Schema, members: list[str]) -> int:
    kind = schema[members[0]]
    if len(members) == 1 and isinstance(kind, pl.Array):
        return int(kind.shape[0])
    return len(members)


def _width_in_bytes(kind: Any) -> int:
    """Of one cell; of texts and lists, whose length nobody knows, a pointer."""
    if isinstance(kind, pl.Array):
        return kind.shape[0] * _width_in_bytes(kind.inner)
    # By name: polars before 1.36 has no half precision.
    return {"Float32": 4, "Float16": 2}.get(str(kind), 8)


def _arrays(
    frame: pl.DataFrame,
    groups: dict[str, list[str]],
    singles: dict[str, str],
    kept: Sequence[str],
) -> Columns:
    columns: Columns = {name: _matrix(frame, name, ms) for name, ms in groups.items()}
    if "labels" in singles:
        columns["labels"] = _labels(frame[singles["labels"]])
    for column in singles.keys() - {"labels"}:
        columns[column] = _names(frame[singles[column]])
    return columns | {"kept": frame.select(kept).to_dict()} if kept else columns


def _names(series: pl.Series) -> np.ndarray:
    if series.name == "id":
        # Integers stay integers; a sample may well have no name.
        if series.dtype.is_integer() and not series.null_count():
            return series.to_numpy()
        series = series.cast(pl.String).fill_null("")
    if series.null_count():
        raise ValueError("the column domain has empty cells; wanted a name per row")
    return series.cast(pl.String).to_numpy().astype(np.str_)


def _matrix(frame: pl.DataFrame, name: str, members: list[str]) -> np.ndarray:
    part = frame.select(members)
    nested = len(members) == 1 and part.dtypes[0].is_nested()
    if nested:
        return _from_arrays(part.to_series(), name)
    wrong = [column for column in members if not part[column].dtype.is_numeric()]
    if wrong:
        raise ValueError(
            f"the column {wrong[0]} has type {part[wrong[0]].dtype}; wanted numbers"
        )
    # Row order keeps each row together; empty cells become NaN and are refused later.
    return part.to_numpy(order="c")


def _from_arrays(series: pl.Series, name: str) -> np.ndarray:
    if isinstance(series.dtype, pl.List):
        lengths = series.list.len().unique()
        if len(lengths) != 1 or lengths[0] is None:
            raise ValueError(f"the column {name} holds lists of different lengths")
        series = series.list.to_array(int(lengths[0]))
    array = series.to_numpy()
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(f"the column {name} holds {series.dtype}; wanted numbers")
    return array


def _is_text(kind: Any) -> bool:
    return kind in (pl.String, pl.Categorical, pl.Enum)


def _distinct(frame: pl.LazyFrame, path: Path) -> set[str]:
    """The different labels of a whole table, "" for empty cells."""
    texts = pl.col("label").cast(pl.String).fill_null("")
    with _readable(path):
        return set(frame.select(texts.unique()).collect().to_series())


def _labels(series: pl.Series) -> np.ndarray:
    """Labels as they are; "" or -1 for empty cells, which are unlabelled rows."""
    if _is_text(series.dtype):
        return series.cast(pl.String).fill_null("").to_numpy().astype(np.str_)
    if series.dtype == pl.Boolean:
        return series.to_numpy()  # of objects where cells are empty
    if series.dtype.is_float() and (series.drop_nulls() % 1 == 0).all():
        series = series.cast(pl.Int64)
    if series.dtype == pl.Null:
        series = series.cast(pl.Int64)
    if not series.dtype.is_integer():
        raise ValueError(
            f"the column label has type {series.dtype}; wanted class numbers 0, 1, ..."
        )
    return series.fill_null(-1).to_numpy()
