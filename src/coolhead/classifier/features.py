"""Features out of a table as people have it: gaps, categories, text, dates."""

import datetime
from collections.abc import Callable
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from coolhead.models.reading import check_leaves, leaves_of
from coolhead.numerics.checks import check_features, is_missing

DAY = 86_400.0


class Column(NamedTuple):
    """One column of a table.

    values : (n,) float64 with NaN for what is missing where `is_number`, else an
        array of str with None.
    """

    name: str
    values: np.ndarray
    is_number: bool


class TablePreparation(TransformerMixin, BaseEstimator):
    """Finite numbers (n, d) out of a frame or array of anything.

    Numbers, truth values and dates (as days): the median in place of what is missing
    or infinite, a further column that says where, all with mean 0 and variance 1.
    Everything else: one column of 0 and 1 for each of the most frequent values, one for
    all others; a missing value is a value of its own. The tools are scikit-learn's.

    Parameters
    ----------
    max_categories : columns at most for one column that holds no numbers.

    Attributes
    ----------
    names_, is_number_ : of the columns of the table.
    numbers_, categories_ : the fitted tools, None where there are no such columns.
    """

    names_: list[str]
    is_number_: list[bool]
    numbers_: Any
    categories_: Any

    def __init__(self, max_categories: int = 20):
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians, scales and the frequent values."""
        columns = read_columns(X)
        self.names_ = [column.name for column in columns]
        self.is_number_ = [column.is_number for column in columns]
        self.numbers_ = make_pipeline(
            SimpleImputer(
                strategy="median", add_indicator=True, keep_empty_features=True
            ),
            StandardScaler(),
        )
        self.categories_ = OneHotEncoder(
            max_categories=self.max_categories,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        for tool, wanted in (("numbers_", True), ("categories_", False)):
            part = _matrix(columns, wanted)
            setattr(self, tool, None if part is None else getattr(self, tool).fit(part))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Finite features (n, d), numbers first."""
        found = _in_fit_order(_columns(X), self.names_, named=hasattr(X, "columns"))
        if len(found) != len(self.names_):
            raise ValueError(
                f"X has {len(found)} columns; wanted {len(self.names_)} as in fit: "
                f"{', '.join(self.names_[:5])}, ..."
            )
        pairs = zip(found, self.is_number_, strict=True)
        columns = [_read(name, values, kind) for (name, values), kind in pairs]
        tools = ((self.numbers_, True), (self.categories_, False))
        parts = [
            tool.transform(_matrix(columns, wanted))
            for tool, wanted in tools
            if tool is not None
        ]
        return np.concatenate(parts, axis=1)


def is_plain(X: Any) -> bool:
    """Whether X holds finite numbers only, and can be a calibrator's features."""
    if hasattr(X, "columns"):
        parts = [X[name] for name in X.columns]
        return all(not _is_category(part) and _is_finite(part) for part in parts)
    array = np.asarray(X)
    # Whoever checks features says what is wrong with other shapes and complex numbers.
    return array.ndim != 2 or array.dtype.kind == "c" or _is_finite(array)


def _is_finite(values: Any) -> bool:
    array = np.asarray(values)
    if array.dtype.kind == "O":
        return all(isinstance(v, Real) and isfinite(v) for v in array.flat)
    return array.dtype.kind in "fiub" and bool(np.isfinite(array).all())


def read_columns(X: Any) -> list[Column]:
    """The columns of a frame or a two-dimensional array."""
    return [_read(name, values) for name, values in _columns(X)]


def _columns(X: Any) -> list[tuple[str, Any]]:
    if hasattr(X, "columns"):
        return [(str(name), X[name]) for name in X.columns]
    # NumPy would turn the numbers of a mixed list into text.
    array = np.asarray(X, dtype=object if isinstance(X, list) else None)
    if array.ndim != 2:
        raise ValueError(f"X has shape {array.shape}; wanted a table, (n, columns)")
    return [(str(number), array[:, number]) for number in range(array.shape[1])]


def _in_fit_order(
    found: list[tuple[str, Any]], names: list[str], *, named: bool
) -> list[tuple[str, Any]]:
    """Columns of a frame in the order of the fit; by place where one has no names."""
    numbers = [str(number) for number in range(len(names))]
    index = dict(found)
    if not named or names == numbers or list(index) == list(numbers):
        return found
    missing = [name for name in names if name not in index]
    if missing:
        raise ValueError(
            f"X has no column {missing[0]} (columns found: "
            f"{', '.join(list(index)[:5])}); wanted {', '.join(names[:5])}, as in fit"
        )
    return [(name, index[name]) for name in names]


def _read(name: str, values: Any, is_number: bool | None = None) -> Column:
    """One column; `is_number` is what it was in fit."""
    array = np.asarray(values)
    numbers = None
    if is_number or (is_number is None and not _is_category(values)):
        numbers = _as_numbers(array)
    if numbers is not None:
        return Column(name, np.where(np.isfinite(numbers), numbers, np.nan), True)
    if is_number:
        raise ValueError(
            f"column {name} of X holds {array.dtype}, in fit it held numbers; wanted "
            "numbers again"
        )
    return Column(name, _as_text(array), False)


def _is_category(values: Any) -> bool:
    """Categories may be numbered, and are still no numbers."""
    return str(getattr(values, "dtype", "")).startswith(("category", "Categ", "Enum"))


def _as_numbers(array: np.ndarray) -> np.ndarray | None:
    """Numbers, truth values and days; None where a value is neither."""
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    if array.dtype.kind in "mM":
        unit = "timedelta64[s]" if array.dtype.kind == "m" else "datetime64[s]"
        seconds = array.astype(unit)
        days = seconds.astype(np.int64) / DAY
        return np.where(np.isnat(seconds), np.nan, days)
    if array.dtype.kind != "O":
        return None
    numbers = [_number(value) for value in array]
    if None in numbers:
        return None
    # A column of nothing says nothing about its kind; as numbers it costs one column.
    return np.array(numbers, np.float64)


def _number(value: Any) -> float | None:
    if is_missing(value):
        return np.nan
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, datetime.datetime):
        return value.timestamp() / DAY
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days)
    return None


def _as_text(array: np.ndarray) -> np.ndarray:
    texts = [None if is_missing(value) else str(value) for value in array.tolist()]
    return np.array(texts, dtype=object)


def _matrix(columns: list[Column], is_number: bool) -> np.ndarray | None:
    parts = [column.values for column in columns if column.is_number == is_number]
    return np.column_stack(parts) if parts else None


LEAF_DIMENSIONS = 16


def prepare_features(features: str | Callable | None, estimator: Any, X: Any) -> Any:
    """What can be learned, and refused, before the first estimator is fitted.

    Returns the fitted preparation of a table, None where there is none (yet).
    """
    if callable(features):
        return None
    if features == "leaves":
        check_leaves(estimator)
        return None
    if features == "table":
        _refuse_sparse(X)
        return TablePreparation().fit(X)
    if features is not None:
        _pipeline_until(estimator, features)
        return None
    _refuse_sparse(X)
    if is_plain(X):
        dense_features(X)
        return None
    return TablePreparation().fit(X)


def prepare_leaves(estimator: Any, X: Any) -> Any:
    """Trees that put rows into the same leaves put them near each other."""
    leaves = leaves_of(estimator, X)
    one_hot = OneHotEncoder(handle_unknown="ignore").fit(leaves)
    n_leaves = sum(map(len, one_hot.categories_))
    width = max(1, min(LEAF_DIMENSIONS, n_leaves - 1))
    return make_pipeline(one_hot, TruncatedSVD(width, random_state=0)).fit(leaves)


def estimator_features(
    estimator: Any, X: Any, features: str | Callable | None, preparation: Any
) -> np.ndarray:
    """Finite features (n, d) of rows of X."""
    if callable(features):
        return dense_features(features(estimator, X))
    if features == "leaves":
        return preparation.transform(leaves_of(estimator, X))
    if preparation is not None:
        return preparation.transform(X)
    if features is None:
        return dense_features(_by_name(X, estimator))
    return dense_features(_pipeline_until(estimator, features).transform(X))


def _by_name(X: Any, estimator: Any) -> Any:
    """Columns of a frame in the order of the estimator's fit, where it knows them.

    A pipeline that picks columns by name takes them in any order.
    """
    names = list(getattr(estimator, "feature_names_in_", ()))
    found = list(getattr(X, "columns", ()))
    moved = names != found and set(names) <= set(found)
    return X[names] if names and moved else X


def dense_features(found: Any) -> np.ndarray:
    """A finite (n, d) array; anything else is refused with what to do instead."""
    remedy = (
        "give features='table', which prepares any table, the name of a pipeline step "
        "or a function that makes them, or take a calibrator without features, such as "
        "TemperatureScaling()"
    )
    _refuse_sparse(found)
    try:
        return check_features(found, None, name="X")
    except (ValueError, TypeError) as error:
        told = f"{error} These would be the features of the calibrator: {remedy}"
        raise type(error)(told) from error


def _refuse_sparse(found: Any) -> None:
    if hasattr(found, "toarray"):
        raise ValueError(
            "the features of this calibrator would be a sparse matrix; wanted a dense "
            "(n, d) array: give features= the name of a pipeline step or a function "
            "that makes one, or take a calibrator without features, such as "
            "TemperatureScaling()"
        )


def _pipeline_until(estimator: Any, name: str) -> Any:
    """The steps of a pipeline up to the one of that name."""
    pipeline = getattr(estimator, "estimator", estimator)  # inside a FrozenEstimator
    steps = getattr(pipeline, "named_steps", None)
    if steps is None or name not in steps:
        raise ValueError(
            f"features is {name!r}; wanted 'table', 'leaves', or the name of a "
            "pipeline step"
            + (f", one of {list(steps)}" if steps else ", but there is no pipeline")
        )
    return pipeline[: list(steps).index(name) + 1]
