"""Calibrated predictions of Dask collections, lazily, block by block."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coolhead.dask.blocks import Table, align, per_block, whole
from coolhead.models.kinds import check_calibrator
from coolhead.numerics.blocks import computing_dtype


def temperature(calibrator: Any, logits: Any, features: Any = None) -> Any:
    """Temperature of each row, a Dask array (n,).

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> ch.dask.temperature(cal, logits)[:2].compute().round(1)
    array([2.1, 2.1])
    """
    check_calibrator(calibrator, temperature=True)
    return _ask(calibrator, "temperature", query(calibrator, logits, features))


def predict_proba(calibrator: Any, logits: Any, features: Any = None) -> Any:
    """Calibrated probabilities, a Dask array (n, k) with the logits' row blocks.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> ch.dask.predict_proba(cal, logits).numblocks
    (3, 1)
    """
    table = query(calibrator, logits, features)
    dtype, width = computing_dtype(table["logits"]), table["logits"].shape[1]
    return _ask(calibrator, "predict_proba", table, (width,), dtype)


def confidence(calibrator: Any, logits: Any, features: Any = None) -> tuple[Any, Any]:
    """Calibrated confidence and predicted class, Dask arrays (n,) each.

    Compute both in one call, ``dask.compute(confidence, predicted)``, to read the data
    once.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> confidence, predicted = dask.compute(*ch.dask.confidence(cal, logits))
    >>> confidence.shape, predicted.shape
    ((300,), (300,))
    """
    table = query(calibrator, logits, features)
    both = _ask(calibrator, "confidence", table, (2,))
    dtype = computing_dtype(table["logits"])
    return both[:, 0].astype(dtype), both[:, 1].astype(np.intp)


def query(calibrator: Any, logits: Any, features: Any, **others: Any) -> Table:
    """A table of what the calibrator needs to predict, and of other columns."""
    check_is_fitted(check_calibrator(calibrator))
    uses = calibrator.uses_features
    if uses and features is None:
        raise ValueError(
            f"features is missing: {type(calibrator).__name__} uses features"
        )
    table = align(logits, features=features if uses else None, **others)
    found = table["logits"].shape[1]
    if found != calibrator.n_classes_:
        raise ValueError(
            f"logits has {found} columns; wanted {calibrator.n_classes_}, as in fit"
        )
    return table


def arguments(block: dict[str, np.ndarray]) -> tuple[np.ndarray, Any]:
    """What a calibrator's methods are called with; scores are given as scores."""
    logits = block["logits"]
    return logits[:, 1] if "scores" in block else logits, block.get("features")


def _ask(
    calibrator: Any,
    method: str,
    table: Table,
    shape: tuple[int, ...] = (),
    dtype: Any = np.float64,
) -> Any:
    """What a method of the calibrator says of every row, lazily."""
    calibrator = whole(calibrator)
    settings = {"keep_rows": True, "calibrator": calibrator, "method": method}
    return per_block(_answers, table, shape, dtype=dtype, **settings)


def _answers(block: dict[str, np.ndarray], calibrator: Any, method: str) -> np.ndarray:
    found = getattr(calibrator, method)(*arguments(block))
    return np.column_stack(found) if isinstance(found, tuple) else found
