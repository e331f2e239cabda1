"""Spreadsheets compute nothing of a CSV file, whatever the type of its columns."""

import csv
import datetime
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import coolhead
from coolhead.io.write import Written, write_blocks
from coolhead.lab import results
from coolhead.report.tables import Table, render_table

COMPUTED = ["=HYPERLINK(1)", "+cmd|calc", "-1+1", "@x", "\tx", "\rx", "\n=1", " =1"]
COMPUTED += ["\N{FULLWIDTH EQUALS SIGN}1+1", "\N{FULLWIDTH COMMERCIAL AT}x", "-", "=-1"]
PLAIN = ["x", "", "-1", "+1.5e3", " -2", "a=b", "'=1"]
TEXTS = [*COMPUTED, *PLAIN]
SHIELDED = [*(f"'{text}" for text in COMPUTED), *PLAIN]
DAY = datetime.datetime(2020, 1, 2, 3, 4, 5)

TEXT_TYPES = [pl.String, pl.Categorical, pl.Enum(TEXTS)]
NUMBERS = [pl.Boolean, pl.Decimal(10, 2), pl.Float32, pl.Float64, pl.Int8, pl.Int64]
NUMBERS += [pl.UInt8, pl.UInt64]
TIMES = [pl.Date, pl.Datetime, pl.Datetime(time_zone="UTC"), pl.Time]
REFUSED = {
    "list": pl.Series([["=1"]]),
    "array": pl.Series([["=1"]], dtype=pl.Array(pl.String, 1)),
    "struct": pl.Series([{"a": "=1"}]),
    "binary": pl.Series([b"=1"]),
    "duration": pl.Series([datetime.timedelta(days=-1)]),
}


def by_apply(column, folder, monkeypatch):
    probabilities = np.full((len(column), 2), 0.5)
    write_blocks([Written(probabilities, {"found": column})], folder / "o.csv")


def table_of(column):
    """Two columns: readers skip an empty cell that is alone in its line."""
    return pl.DataFrame([column, pl.Series("row", range(len(column)))])


def by_results(column, folder, monkeypatch):
    monkeypatch.setattr(results, "read_table", lambda *_: table_of(column))
    results.write_results_csv(folder)
    (folder / "results.csv").rename(folder / "o.csv")


def by_tables(column, folder, monkeypatch):
    text = render_table(Table("t", "T", table_of(column)), "csv")
    (folder / "o.csv").write_text(text, newline="")


writers = pytest.mark.parametrize("write", [by_apply, by_results, by_tables])


def written(write, column, folder, monkeypatch):
    write(column.alias("found"), folder, monkeypatch)
    with open(folder / "o.csv", newline="") as file:
        return [line["found"] for line in csv.DictReader(file)]


@writers
@pytest.mark.parametrize("kind", TEXT_TYPES, ids=lambda kind: str(kind)[:11])
def test_texts_are_neutralised(write, kind, tmp_path, monkeypatch):
    column = pl.Series([*TEXTS, None]).cast(kind)
    found = written(write, column, tmp_path, monkeypatch)
    assert found == [*SHIELDED, ""]


@writers
@pytest.mark.parametrize("kind", [*NUMBERS, *TIMES], ids=str)
def test_numbers_and_times_stay(write, kind, tmp_path, monkeypatch):
    values = [0, 1] if kind not in TIMES else [DAY, DAY]
    if kind == pl.Time:
        values = [DAY.time()] * 2
    column = pl.Series(values).cast(kind)
    signed = kind.is_numeric() and kind not in (pl.UInt8, pl.UInt64)
    column = -column if signed else column
    found = written(write, column, tmp_path, monkeypatch)
    assert not any(text.startswith("'") for text in found)
    assert not signed or float(found[1]) == -1


@writers
@pytest.mark.parametrize("kind", REFUSED)
def test_other_types_are_refused(write, kind, tmp_path, monkeypatch):
    with pytest.raises((OSError, pl.exceptions.PolarsError), match="CSV"):
        written(write, REFUSED[kind], tmp_path, monkeypatch)
    assert not list(tmp_path.iterdir())


def test_headings_are_neutralised(tmp_path):
    columns = {"=1+1": np.zeros(1), "-1": np.zeros(1)}
    write_blocks([Written(np.full((1, 2), 0.5), columns)], tmp_path / "o.csv")
    header = (tmp_path / "o.csv").read_text().splitlines()[0]
    assert header == "prob_0,prob_1,'=1+1,'-1"


def test_there_is_one_writer():
    calls = r"\.(write_csv|sink_csv|to_csv|savetxt)\(|csv\.writer|DictWriter"
    source = Path(coolhead.__file__).parent
    users = [
        path for path in source.rglob("*.py") if re.search(calls, path.read_text())
    ]
    assert users == [source / "io" / "write.py"]
