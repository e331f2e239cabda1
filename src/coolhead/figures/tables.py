"""Rows of a table of a run: given as a frame, or found in the folder of the run."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl


def read_frame(table: Any, name: str) -> pl.DataFrame:
    """The frame itself, or that table of the run whose folder is given."""
    if not isinstance(table, str | PathLike):
        return table
    places = [Path(table, folder, f"{name}.parquet") for folder in ("", "details")]
    found = [path for path in places if path.is_file()]
    if not found:
        raise ValueError(f"{table} holds no {name}.parquet; is it the folder of a run?")
    return pl.read_parquet(found[0])


def of_method(frame: pl.DataFrame, method: str) -> pl.DataFrame:
    """Rows of one method, which must be there."""
    if method not in (known := list(dict.fromkeys(frame["method"]))):
        raise ValueError(f"method is {method!r}; the table holds {', '.join(known)}")
    return frame.filter(pl.col("method") == method)


def wide_means(
    results: Any, by: str, methods: Sequence[str] | None = None, metric="ece_mean"
) -> pl.DataFrame:
    """Means of a metric in per cent: one row per `by`, one column per method."""
    frame = read_frame(results, "results").filter(pl.col("metric") == metric)
    if methods is not None:
        frame = pl.concat([of_method(frame, name) for name in methods])
    means = frame.pivot(
        on="method", index=by, values="value", aggregate_function="mean"
    )
    return means.with_columns(pl.exclude(by).cast(pl.Float64) * 100)
