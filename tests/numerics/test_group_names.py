"""Names of groups and domains, and values that are none."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coolhead as ch
from coolhead.numerics.checks import check_domains
from simulate import logits_and_labels

LOGITS, LABELS = logits_and_labels(300, 3, scale=2.0)


def test_integers_in_an_object_array_stay_integers():
    groups = np.array([10, 9, 2] * 100, dtype=object)
    fit = ch.fit_temperature(LOGITS, LABELS, groups=groups)
    np.testing.assert_array_equal(fit.groups, [2, 9, 10])
    plain = ch.fit_temperature(LOGITS, LABELS, groups=groups.astype(int))
    np.testing.assert_array_equal(fit.temperature, plain.temperature)


@pytest.mark.parametrize(
    "missing", [None, float("nan"), pd.NA, pd.NaT], ids=["None", "nan", "NA", "NaT"]
)
def test_a_missing_name_is_refused_with_its_row(missing):
    names = np.array(["a", missing, "b"] * 100, dtype=object)
    with pytest.raises(ValueError, match="groups has no name in row 1"):
        ch.fit_temperature(LOGITS, LABELS, groups=names)
    with pytest.raises(ValueError, match="sample_domain has no name in row 1"):
        ch.TemperatureScaling().fit(LOGITS, LABELS, sample_domain=names)


ROWS = 6
DAYS = pd.Series(pd.to_datetime(["2020-01-01", None, "2020-02-01"] * 2))
TEXTS = ["a", None, "b"] * 2
NUMBERS = [1, None, 2] * 2
MISSING = {
    "datetime64": DAYS.to_numpy(),
    "timedelta64": (DAYS - DAYS[0]).to_numpy(),
    "datetime64 in an object": DAYS.to_numpy().astype(object),
    "pandas datetime": DAYS,
    "pandas index": pd.DatetimeIndex(DAYS),
    "pandas with a time zone": DAYS.dt.tz_localize("UTC"),
    "pandas period": DAYS.dt.to_period("M"),
    "pandas string": pd.Series(TEXTS, dtype="string"),
    "pandas object": pd.Series(TEXTS, dtype=object),
    "pandas category": pd.Series(TEXTS, dtype="category"),
    "pandas Int64": pd.Series(NUMBERS, dtype="Int64"),
    "pandas Float64": pd.Series(NUMBERS, dtype="Float64"),
    "pandas boolean": pd.Series([True, None, False] * 2, dtype="boolean"),
    "polars string": pl.Series(TEXTS),
    "polars category": pl.Series(TEXTS, dtype=pl.Categorical),
    "polars integer": pl.Series(NUMBERS),
    "polars date": pl.Series([date(2020, 1, 1), None, date(2020, 2, 1)] * 2),
    "NumPy string": np.array(TEXTS, np.dtypes.StringDType(na_object=None)),
    "float": np.array([1.0, np.nan, 2.0] * 2),
    "decimal": np.array([Decimal(1), Decimal("NaN"), Decimal(2)] * 2, dtype=object),
    "list with None": TEXTS,
    "list with NaN": ["a", float("nan"), "b"] * 2,
    "list of bytes with NaN": [b"a", float("nan"), b"b"] * 2,
    "list of integers with None": NUMBERS,
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_in_every_type(kind):
    with pytest.raises(ValueError, match=r"sample_domain (has no name|.*NaN) in row 1"):
        check_domains(MISSING[kind], ROWS)
    with pytest.raises(ValueError, match=r"domains .* row 1"):
        ch.DomainArchive(logits=LOGITS[:ROWS], domains=MISSING[kind])


PAIRS = [("a", 1), ("b", 2)] * 3
NESTED = {
    "MultiIndex": pd.MultiIndex.from_tuples(PAIRS),
    "Series of tuples": pd.Series(PAIRS),
    "list of tuples": PAIRS,
    "tuples with a missing value": pd.Series([("a", None), ("b", 2)] * 3),
    "lists of different lengths": [["a"], ["b", "c"]] * 3,
    "arrays of different shapes": [np.zeros((2, 2)), np.zeros((2, 3))] * 3,
    "dictionaries": [{"a": 1}, {"b": 2}] * 3,
    "polars lists": pl.Series([["a"], ["b"]] * 3),
}


@pytest.mark.parametrize("kind", NESTED)
def test_nested_names_are_refused(kind):
    wanted = r"sample_domain holds .* in row 0; wanted a string or an integer"
    with pytest.raises(ValueError, match=f"(?s){wanted}"):
        check_domains(NESTED[kind], ROWS)


@pytest.mark.parametrize("array", [np.ones(ROWS, complex), np.zeros(ROWS, "i4,f4")])
def test_types_that_name_nothing(array):
    with pytest.raises(ValueError, match=r"sample_domain has type .*; wanted a string"):
        check_domains(array, ROWS)


@pytest.mark.parametrize(
    "names",
    [
        ["a", "b", "c"] * 2,
        [b"a", b"b", b"c"] * 2,
        ["a", b"b", "c"] * 2,
        [1, 2, 3] * 2,
        [1.0, 2.0, 3.0] * 2,
        [True, False, True] * 2,
        DAYS.ffill(),
        DAYS.ffill() - DAYS[0],
        pd.interval_range(0, 6),
        pd.Series(["a", "b", "c"] * 2, dtype="category"),
        np.array(["a", "b", "c"] * 2, np.dtypes.StringDType()),
    ],
    ids=repr,
)
def test_names_of_other_types_stay(names):
    found = check_domains(names, ROWS)
    assert len(np.unique(found)) == len(set(names))


def test_a_group_called_nan_is_a_group():
    fit = ch.fit_temperature(LOGITS, LABELS, groups=["nan", "a", "b"] * 100)
    np.testing.assert_array_equal(fit.groups, ["a", "b", "nan"])


def test_masked_entries_are_refused():
    masked = np.ma.masked_array(LOGITS, mask=LOGITS > 3)
    with pytest.raises(ValueError, match="logits has masked entries"):
        ch.fit_temperature(masked, LABELS)
    whole = np.ma.masked_array(LOGITS, mask=False)
    assert ch.fit_temperature(whole, LABELS).status == "converged"
