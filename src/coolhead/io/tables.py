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

SINGLES = {"label": "labels", "domain": "domains", "id": "ids"}
PREFIXES = {"logits": "logit_", "probabilities": "prob_", "features": "feature_"}


def open_table(path: Path, kind: str, keep: Sequence[str] = ()) -> PredictionFile:
    """Open a table; the number of rows of a CSV file shows only at its end.

    Parameters
    ----------
    path : Path
        The table.
    kind : {"parquet", "arrow", "csv"}
        Its format.
    keep : sequence of str, default=()
        Names of further columns that blocks hold unchanged, under "kept".
    """
    with _readable(path):
        frame, schema, held = _scan(path, kind)
        n_rows = None if kind == "csv" else frame.select(pl.len()).collect().item()
    _refuse_repeated(path, schema)
    groups = {name: _members(path, schema, name) for name in PREFIXES}
    groups = {name: members for name, members in groups.items() if members}
    singles = {column: name for name, column in SINGLES.items() if name in schema}
    if not groups:
        listed = ", ".join(schema.names()[:8]) or "none"
        raise ValueError(
            f"{path} has no columns logit_*, prob_* or feature_*; columns found: "
            f"{listed}{', ...' if len(schema) > 8 else ''}"
        )
    used = [*(m for ms in groups.values() for m in ms), *singles.values()]
    for name in keep:
        if name not in schema:
            raise ValueError(f"{path} has no column {name!r}{suggest(name, schema)}")
    kept = [name for name in keep if name not in used]
    texts = frame.select(pl.col("label").cast(pl.String).fill_null("").unique())
    frame = frame.select([*used, *kept])
    widths = {name: _width(schema, ms) for name, ms in groups.items()}
    widths |= dict.fromkeys(singles, 1)

    def arrays(part: pl.DataFrame) -> Columns:
        columns: Columns = {
            name: _matrix(part, name, ms) for name, ms in groups.items()
        }
        for column, name in singles.items():
            columns[column] = (_labels if name == "label" else _names)(part[name])
        return columns | {"kept": part.select(kept).to_dict()} if kept else columns

    def blocks(step: int) -> Iterator[Columns]:
        settings: Any = {"maintain_order": True, "lazy": True}
        with _readable(path):
            for batch in frame.collect_batches(chunk_size=step, **settings):
                if batch.height:
                    yield arrays(batch)

    def load() -> Columns:
        with _readable(path):
            return arrays(frame.collect())

    def label_names() -> set[str]:
        with _readable(path):
            return set(texts.collect().to_series())

    return PredictionFile(
        path,
        n_rows,
        widths,
        blocks,
        load,
        class_names=_class_names(groups, schema),
        bytes_per_row=8 * sum(widths.values()),
        held_bytes=held,
        label_names=label_names if _is_text(schema.get("label")) else None,
        truth=schema.get("label") == pl.Boolean,
        by_name=True,
    )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise every error of polars as one of a damaged file."""
    try:
        yield
    # The parser of Arrow files panics on some forged ones.
    except (PolarsError, PanicException) as error:
        refuse_damaged(path, error)


def _scan(path: Path, kind: str) -> tuple[pl.LazyFrame, pl.Schema, int]:
    """Return a table, its columns, and how many bytes of it are held at least."""
    if kind == "parquet":
        frame = pl.scan_parquet(path, glob=False)
        schema = frame.collect_schema()
        try:
            return frame, schema, check_pages(path)
        except ValueError as error:
            refuse_damaged(path, error)
    if kind == "arrow":
        # Its batches may be of any size, and polars keeps them.
        frame = pl.scan_ipc(path, glob=False)
        return frame, frame.collect_schema(), path.stat().st_size
    separator = "\t" if path.suffix == ".tsv" else ","
    read = partial(pl.scan_csv, path, glob=False, separator=separator)
    found = read(infer_schema_length=100).collect_schema()
    types: dict[str, Any] = {
        name: pl.Float64 for name in found if name.startswith(tuple(PREFIXES.values()))
    }
    # Types are fixed before reading: a later row must not change them.
    types |= {name: pl.String for name in ("domain", "id") if name in found}
    frame = read(schema_overrides=types)
    return frame, frame.collect_schema(), 0


def _refuse_repeated(path: Path, schema: pl.Schema) -> None:
    """polars gives the second of two columns of the same name another name."""
    for column in schema:
        name = re.sub("_duplicated_[0-9]+$", "", column)
        known = name in SINGLES or name.startswith(tuple(PREFIXES.values()))
        if name != column and name in schema and known:
            raise ValueError(f"{path} has the column {name} twice; wanted it once")


def _members(path: Path, schema: pl.Schema, name: str) -> list[str]:
    """Return the columns of one array, by number or else in their order."""
    prefix = PREFIXES[name]
    members = [column for column in schema if column.startswith(prefix)]
    if not members and name in schema:
        return [name]
    suffixes = [column.removeprefix(prefix) for column in members]
    if not members or not all(re.fullmatch("[0-9]+", text) for text in suffixes):
        return members
    numbers = sorted(int(text) for text in suffixes)
    start = min(numbers[0], 1)
    # Counted, not listed: a column may be called logit_999999999.
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
    """Return the names behind the prefix of the columns, or those of an Enum."""
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


def _names(series: pl.Series) -> np.ndarray:
    if series.name == "id":
        # Integers stay integers; a sample may have no name.
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


def _labels(series: pl.Series) -> np.ndarray:
    """Return labels unchanged; "" or -1 for empty cells, which are unlabelled rows."""
    if _is_text(series.dtype):
        return series.cast(pl.String).fill_null("").to_numpy().astype(np.str_)
    if series.dtype == pl.Boolean:
        return series.to_numpy()  # of objects where cells are empty
    whole = series.dtype.is_float() and (series.drop_nulls() % 1 == 0).all()
    if whole or series.dtype == pl.Null:
        series = series.cast(pl.Int64)
    if not series.dtype.is_integer():
        raise ValueError(
            f"the column label has type {series.dtype}; wanted class numbers 0, 1, ..."
        )
    return series.fill_null(-1).to_numpy()
