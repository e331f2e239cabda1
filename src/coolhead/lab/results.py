"""The files of a run, and how finished cells become tables.

A run is a folder ``runs/NAME``:

``results.parquet``
    Tidy numbers, one row per (classifier, split, seed, method, metric). Columns
    ``experiment, classifier, split, source, calibration, target, seed, method,
    metric, value``. Several domains of one role are joined with ``+``. Rates and
    errors are fractions, not per cent.
``details/*.parquet``
    Bulky extras with the same leading columns up to ``seed``:

    - ``reliability``: method, bin, n, sum_confidence, sum_correct
      (the protocol's equal-width, right-closed bins)
    - ``histogram``: method, bin, low, high, n, n_correct (40 bins of confidence)
    - ``selective``: method, coverage, threshold, accuracy (kept: the most confident)
    - ``temperature``: method, quantile, value (of T over the evaluated rows)
    - ``status``: method, status, n_fallbacks, clipped_share, warnings
    - ``shift``: diagnostic, value (calibration against target features)
    - ``map``: x, y, role, domain, cluster, temperature (principal components of the
      calibration features; role is ``calibration``, ``target`` or ``centre``)
    - ``adaptation``: method, base, batch, n_labels, draw, ece, truth, expected, low,
      high (every draw of a method that adapts to the target, and the base it started
      from: ECE and accuracy on all evaluated rows, expected accuracy with its 90 %
      interval; the last three null for scaling on labels alone, base ``plain``)
    - ``sensitivity``: method, n_clusters, ece (evaluated on all rows)
    - ``ablation``: what (``rows``, ``domains`` or ``bins``), level, method, ece (of
      fits on a share of the rows or another number of domains, or with other bins)
    - ``examples``: rank, id, label, predicted, method, confidence, thumbnail (the
      most confident mistakes before calibration, if there are images; a PNG in base64
      in the row of the uncalibrated classifier)
    - ``notes``: note (what could not be described, and why)
``failures.parquet``
    method (``*`` for the whole cell), error.
``runtimes.parquet``
    method, fit_seconds, predict_seconds. Apart, because times differ from run to
    run and everything above has the same bytes each time.
``run.json``
    Protocol, versions, machine, command, commit, date.
``cells/``, ``classifiers/``
    One file per finished cell, trained classifier and k-means: what a resumed run
    finds.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl

from coolhead.io.files import atomic_path, write_text
from coolhead.io.write import write_csv
from coolhead.report.results import (
    KEY_COLUMNS,
    TABLES,
    CellResult,
    empty_table,
    schema_of,
)
from coolhead.report.tables import RunScores, scores_by_classifier

_IN_FRONT = ("results", "failures", "runtimes")


def write_cell(path: Path, key: dict[str, Any], result: CellResult) -> None:
    """Write a finished cell; the runtimes go to a file of their own, first."""
    tables = dict(result.tables)
    runtimes = {"key": key, "tables": {"runtimes": tables.pop("runtimes")}}
    write_text(runtimes_path(path), json.dumps(runtimes))
    write_text(path, json.dumps({"key": key, "tables": tables}))


def runtimes_path(cell: Path) -> Path:
    """Where the runtimes of a cell lie."""
    return cell.with_suffix(".runtimes.json")


def read_json(path: Path, *keys: str) -> dict[str, Any]:
    """Read a file of a run; one without the tables `keys` is called damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it holds no table")
    missing = [key for key in keys if not isinstance(content.get(key), dict)]
    if missing:
        raise ValueError(f"{path} is damaged: it has no {', '.join(missing)}")
    return content


def read_cell(path: Path) -> dict[str, Any]:
    """Read a cell file: its key and its tables."""
    return read_json(path, "key", "tables")


def assemble(run: Path, cell_paths: list[Path]) -> None:
    """Build the Parquet files of a run from cell files, in the order given."""
    cells = [read_cell(path) for path in cell_paths]
    cells += [read_cell(runtimes_path(path)) for path in cell_paths]
    (run / "details").mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        frame = _frame(name, cells)
        with atomic_path(table_path(run, name)) as temporary:
            frame.write_parquet(temporary)


def table_path(run: str | Path, name: str) -> Path:
    """Where a table of a run lies."""
    folder = Path(run) if name in _IN_FRONT else Path(run) / "details"
    path = folder / f"{name}.parquet"
    # Version 0.2 called this table "arrival".
    old = folder / "arrival.parquet"
    return old if name == "adaptation" and old.is_file() else path


def read_table(run: str | Path, name: str) -> pl.DataFrame:
    """Read one table of a run by the name the schema gives it."""
    path = table_path(run, name)
    if not path.is_file():
        raise ValueError(f"{run} holds no {path.name}; is it the folder of a run?")
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is damaged: {reason}") from None
    missing = [column for column in schema_of(name) if column not in frame.columns]
    if missing:
        raise ValueError(f"{path} is damaged: it has no column {', '.join(missing)}")
    for column, wanted in schema_of(name).items():
        found = frame.schema[column]
        if found != wanted and not (found.is_numeric() and wanted.is_numeric()):
            raise ValueError(f"{path} is damaged: {column} holds {found}, not {wanted}")
    named = [*KEY_COLUMNS, *(["method", "metric"] if name == "results" else [])]
    empty = [column for column in named if frame[column].has_nulls()]
    if empty:
        raise ValueError(f"{path} is damaged: {empty[0]} is empty in some row")
    return frame


def load_scores(run: str | Path) -> dict[str, RunScores]:
    """Scores of a run by classifier."""
    results = read_table(run, "results")
    if results.is_empty():
        raise ValueError(f"{run} holds no results: every cell failed, see failures")
    return scores_by_classifier(results)


def read_or_empty(run: str | Path, name: str) -> pl.DataFrame:
    """A table; one that older runs do not have yet is empty."""
    if name != "results" and not table_path(run, name).is_file():
        return empty_table(name)
    return read_table(run, name)


def write_results_csv(run: str | Path) -> None:
    """The tidy results as CSV, for programs that read no Parquet."""
    frame = read_table(run, "results")
    with atomic_path(Path(run) / "results.csv") as temporary:
        write_csv(frame, temporary)


def _frame(name: str, cells: list[dict[str, Any]]) -> pl.DataFrame:
    rows = [cell["key"] | row for cell in cells for row in cell["tables"].get(name, [])]
    return pl.DataFrame(rows, schema=schema_of(name))
