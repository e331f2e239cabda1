"""Calibrated predictions of Dask collections, lazily, block by block."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coolhead.dask.blocks import Table, align, per_block, whole
from coolhead.numerics.blocks import computing_dtype


def temperature(calibrator: Any, logits: Any, features: Any = None) -> Any:
    """Temperature of each row, a Dask array (n,)."""
    table = query(calibrator, logits, features)
    return per_block(_temperature, table, keep_rows=True, calibrator=whole(calibrator))


def predict_proba(calibrator: Any, logits: Any, features: Any = None) -> Any:
    """Calibrated probabilities, a Dask array (n, k) with the logits' row blocks."""
    table = query(calibrator, logits, features)
    return per_block(
        _probabilities,
        table,
        (table["logits"].shape[1],),
        dtype=computing_dtype(table["logits"]),
        keep_rows=True,
        calibrator=whole(calibrator),
    )


def confidence(calibrator: Any, logits: Any, features: Any = None) -> tuple[Any, Any]:
    """Calibrated confidence and predicted class, Dask arrays (n,) each.

    Compute both in one call, ``dask.compute(confidence, predicted)``, to read the data
    once.
    """
    table = query(calibrator, logits, features)
    both = per_block(
        _confidence, table, (2,), keep_rows=True, calibrator=whole(calibrator)
    )
    dtype = computing_dtype(table["logits"])
    return both[:, 0].astype(dtype), both[:, 1].astype(np.intp)


def query(calibrator: Any, logits: Any, features: Any, **others: Any) -> Table:
    """A table of what the calibrator needs to predict, and of other columns."""
    check_is_fitted(calibrator)
    uses = getattr(calibrator, "uses_features", features is not None)
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


def _temperature(block: dict[str, np.ndarray], calibrator: Any) -> np.ndarray:
    return calibrator.temperature(*arguments(block))


def _probabilities(block: dict[str, np.ndarray], calibrator: Any) -> np.ndarray:
    return calibrator.predict_proba(*arguments(block))


def _confidence(block: dict[str, np.ndarray], calibrator: Any) -> np.ndarray:
    return np.column_stack(calibrator.confidence(*arguments(block)))
