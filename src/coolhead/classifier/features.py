"""Features out of a table as people have it: gaps, categories, text, dates."""

import datetime
from collections.abc import Callable
from math import isfinite
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import _safe_indexing

from coolhead.models.reading import check_leaves, leaves_of
from coolhead.numerics.checks import check_features, is_missing

DAY = 86_400.0


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
        columns = _columns(X)
        self.names_ = list(columns)
        found = [
            None if _is_category(values) else _as_numbers(values)
            for values in columns.values()
        ]
        self.is_number_ = [numbers is not None for numbers in found]
        numbers, texts = self._matrices(columns)
        self.numbers_ = self.categories_ = None
        if numbers is not None:
            gaps = SimpleImputer(
                strategy="median", add_indicator=True, keep_empty_features=True
            )
            self.numbers_ = make_pipeline(gaps, StandardScaler()).fit(numbers)
        if texts is not None:
            self.categories_ = OneHotEncoder(
                max_categories=self.max_categories,
                handle_unknown="infrequent_if_exist",
                sparse_output=False,
            ).fit(texts)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Finite features (n, d), numbers first."""
        columns, names = _columns(X), self.names_
        numbered = [str(number) for number in range(len(names))]
        if hasattr(X, "columns") and numbered not in (names, list(columns)):
            missing = [name for name in names if name not in columns]
            if missing:
                raise ValueError(
                    f"X has no column {missing[0]} (columns found: "
                    f"{', '.join(list(columns)[:5])}); wanted {', '.join(names[:5])}, "
                    "as in fit"
                )
            columns = {name: columns[name] for name in names}
        if len(columns) != len(names):
            raise ValueError(
                f"X has {len(columns)} columns; wanted {len(names)} as in fit: "
                f"{', '.join(names[:5])}, ..."
            )
        numbers, texts = self._matrices(columns)
        pairs = (self.numbers_, numbers), (self.categories_, texts)
        parts = [tool.transform(part) for tool, part in pairs if part is not None]
        return np.concatenate(parts, axis=1)

    def _matrices(self, columns: dict[str, Any]) -> list[np.ndarray | None]:
        """Columns of numbers, and those of text; None where there are none."""
        parts: tuple[list, list] = [], []
        for (name, values), is_number in zip(
            columns.items(), self.is_number_, strict=True
        ):
            found = _as_numbers(values) if is_number else _as_text(values)
            if found is None:
                raise ValueError(
                    f"column {name} of X holds {np.asarray(values).dtype}, in fit it "
                    "held numbers; wanted numbers again"
                )
            parts[not is_number].append(found)
        return [np.column_stack(part) if part else None for part in parts]


def is_plain(X: Any) -> bool:
    """Whether X holds finite numbers only, and can be a calibrator's features."""
    if any(_is_category(X[name]) for name in getattr(X, "columns", ())):
        return False
    array = np.asarray(X)
    # The check of features explains other shapes and complex numbers.
    if array.ndim != 2 or array.dtype.kind == "c":
        return True
    if array.dtype.kind == "O":
        return all(isinstance(v, Real) and isfinite(v) for v in array.flat)
    return array.dtype.kind in "fiub" and bool(np.isfinite(array).all())


def split_column(X: Any, name: str) -> tuple[Any, Any]:
    """Return a frame without the column of this name, and the column."""
    names: list[Any] = list(getattr(X, "columns", ()))
    if names.count(name) != 1:
        listed = ", ".join(map(str, names[:5])) or f"none: it is a {type(X).__name__}"
        raise ValueError(
            f"sample_domain is {name!r}, the name of {names.count(name)} columns of X "
            f"(columns found: {listed}); wanted the name of one column, or the domain "
            "of each row"
        )
    return without_column(X, name), X[name]


def without_column(X: Any, name: str | None) -> Any:
    """Return a frame without the column of this name; anything else as it is."""
    names = list(getattr(X, "columns", ()))
    kept = [place for place, found in enumerate(names) if found != name]
    return X if len(kept) == len(names) else _safe_indexing(X, kept, axis=1)


def _columns(X: Any) -> dict[str, Any]:
    """The columns of a frame or a two-dimensional array by name."""
    if hasattr(X, "columns"):
        return {str(name): X[name] for name in X.columns}
    # NumPy would turn the numbers of a mixed list into text.
    array = np.asarray(X, dtype=object if isinstance(X, list) else None)
    if array.ndim != 2:
        raise ValueError(f"X has shape {array.shape}; wanted a table, (n, columns)")
    return {str(number): array[:, number] for number in range(array.shape[1])}


def _is_category(values: Any) -> bool:
    """Categories may be numbered, and are still no numbers."""
    return str(getattr(values, "dtype", "")).startswith(("category", "Categ", "Enum"))


def _as_numbers(values: Any) -> np.ndarray | None:
    """Numbers, truth values and days, NaN in gaps; None where a value is neither."""
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        unit = "timedelta64[s]" if array.dtype.kind == "m" else "datetime64[s]"
        seconds = array.astype(unit)
        days = seconds.astype(np.int64) / DAY
        return np.where(np.isnat(seconds), np.nan, days)
    if array.dtype.kind == "O":
        # A column of gaps alone may be of any kind; as numbers it costs one column.
        numbers = [_number(value) for value in array]
        if None in numbers:
            return None
        array = np.array(numbers)
    if array.dtype.kind not in "fiub":
        return None
    return np.where(np.isfinite(array), array, np.nan).astype(np.float64)


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


def _as_text(values: Any) -> np.ndarray:
    texts = np.asarray(values).tolist()
    return np.array([None if is_missing(t) else str(t) for t in texts], dtype=object)


LEAF_DIMENSIONS = 16


def prepare_features(features: str | Callable | None, estimator: Any, X: Any) -> Any:
    """What can be learned, and refused, before the first estimator is fitted.

    Returns the fitted preparation of a table, None where there is none (yet).
    """
    if features == "leaves":
        check_leaves(estimator)
    elif isinstance(features, str) and features != "table":
        _pipeline_until(estimator, features)
    elif not callable(features):
        _refuse_sparse(X)
        if features == "table" or not is_plain(X):
            return TablePreparation().fit(X)
        dense_features(X)
    return None


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
        message = f"{error} These would be the features of the calibrator: {remedy}"
        raise type(error)(message) from error


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
