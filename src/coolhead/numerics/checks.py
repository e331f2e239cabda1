"""What may enter: every error names the argument, what was found, what is wanted."""

from typing import Any

import numpy as np

from coolhead.numerics.blocks import row_blocks


def sum_tolerance(dtype: np.dtype) -> float:
    """How far a row of rounded probabilities may miss a sum of one."""
    return 5e-3 if dtype == np.float16 else 1e-4


def as_logits(logits: Any, name: str = "logits") -> np.ndarray:
    """Shape and type of logits, without a look at the values.

    Binary scores of shape (n,) become the two columns [0, s].
    """
    array = _real_array(logits, name)
    if array.ndim == 1:
        array = np.column_stack([np.zeros_like(array), array])
    if array.ndim != 2:
        raise ValueError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}); wanted (n, k) "
            "logits, or (n,) scores of a binary classifier. "
            "Reshape your data, e.g. with array.reshape(1, -1) for a single sample."
        )
    if array.shape[0] == 0:
        raise ValueError(
            f"{name} is empty: found 0 sample(s) (shape={array.shape}) while a minimum "
            "of 1 is required."
        )
    if array.shape[1] < 2:
        raise ValueError(
            f"{name} has {array.shape[1]} feature(s) (shape={array.shape}) while a "
            "minimum of 2 is required: one column per class. Scores of a binary "
            "classifier are given as a one-dimensional array."
        )
    return array


def check_logits(logits: Any, name: str = "logits") -> np.ndarray:
    """`as_logits`, refusing NaN, infinity and probabilities, with row numbers."""
    array = as_logits(logits, name)
    check_finite(array, name)
    if np.ndim(logits) != 1:
        refuse_probabilities(array, name)
    return array


def check_finite(array: np.ndarray, name: str, first_row: int = 0) -> None:
    """Refuse NaN and infinity, naming the first rows that hold them.

    first_row : number of the first row, where `array` is a piece of something longer.
    """
    if array.dtype.kind in "iub":
        return
    for block in row_blocks(len(array), array.shape[1] if array.ndim > 1 else 1):
        part = array[block]
        finite = np.isfinite(part)
        if not finite.all():
            bad = np.flatnonzero(~finite.reshape(len(part), -1).all(axis=1))
            rows = bad + block.start
            raise ValueError(not_finite_message(array, rows, name, first_row))


def not_finite_message(
    array: np.ndarray, rows: np.ndarray, name: str, first_row: int = 0
) -> str:
    values = np.asarray(array[rows[0]]).ravel()
    found = values[~np.isfinite(values)][0]
    kind = "NaN" if np.isnan(found) else "infinity"
    more = " and more" if len(rows) > 5 else ""
    listed = ", ".join(str(int(row) + first_row) for row in rows[:5])
    return f"{name} contains {kind} in row {listed}{more}; every value must be finite"


def refuse_probabilities(array: np.ndarray, name: str) -> None:
    """Refuse arrays all of whose rows lie in [0, 1] and sum to one."""
    for block in row_blocks(*array.shape):
        part = array[block]
        # Written so that NaN, which no comparison holds for, is no probability.
        if not (part.min() >= 0 and part.max() <= 1):
            return
        excess = np.abs(part.sum(axis=1, dtype=np.float64) - 1).max()
        if not excess <= sum_tolerance(array.dtype):
            return
    raise ValueError(probabilities_message(name))


def probabilities_message(name: str) -> str:
    return (
        f"{name} holds probabilities: every row lies in [0, 1] and sums to 1; wanted "
        "logits (scores before the softmax). Where only probabilities exist, pass "
        "coolhead.logits_from_probabilities(p)"
    )


def check_labels(labels: Any, n_classes: int, n_rows: int) -> np.ndarray:
    """Class indices in 0..k-1, one per row of the logits."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"labels has shape {array.shape}; wanted one class index per row, "
            f"({n_rows},)"
        )
    if len(array) != n_rows:
        raise ValueError(
            f"labels has {len(array)} entries; wanted one label per row, {n_rows}"
        )
    if array.dtype.kind == "b":
        array = array.astype(np.intp)
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"labels has type {array.dtype} (Unknown label type); wanted integers "
            f"0..{n_classes - 1}, column numbers of the logits"
        )
    wrong = np.flatnonzero((array < 0) | (array >= n_classes))
    if len(wrong):
        raise ValueError(
            f"labels holds {array[wrong[0]]} in row {wrong[0]} ({len(wrong)} such "
            f"rows); wanted 0..{n_classes - 1}, as there are {n_classes} columns"
        )
    return array.astype(np.intp, copy=False)


def missing_features_message(n_rows: int) -> str:
    return (
        "features is missing: this method uses features; wanted an array "
        f"({n_rows}, d), e.g. the classifier's penultimate activations"
    )


def check_features(
    features: Any,
    n_rows: int | None,
    n_features: int | None = None,
    name: str = "features",
) -> np.ndarray:
    """A finite (n, d) array with as many rows as the logits (None: any number)."""
    if features is None:
        raise ValueError(missing_features_message(n_rows or 0))
    array = _real_array(features, name)
    if array.ndim != 2 or array.shape[1] == 0:
        wanted = "n" if n_rows is None else n_rows
        raise ValueError(
            f"{name} has shape {array.shape}; wanted ({wanted}, d). Found "
            f"{array.shape[1]} feature(s) (shape={array.shape}) while a minimum of 1 "
            "is required."
            if array.ndim == 2
            else f"{name} has shape {array.shape}; wanted ({wanted}, d)"
        )
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(
            f"{name} has {len(array)} rows, the logits have {n_rows}; wanted the same"
        )
    if n_features is not None and array.shape[1] != n_features:
        found = f"{name} has {array.shape[1]} columns"
        if name != "features":
            raise ValueError(f"{found}, features has {n_features}; wanted the same")
        raise ValueError(f"{found}; wanted {n_features}, as in fit")
    check_finite(array, name)
    # float16 would overflow in distances; float32 and float64 stay as they are.
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return array


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Finite weights >= 0 that are not all zero, or None."""
    if sample_weight is None:
        return None
    array = _real_array(sample_weight, "sample_weight").astype(np.float64, copy=False)
    if array.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {array.shape}; wanted one weight per row, "
            f"({n_rows},)"
        )
    check_finite(array, "sample_weight")
    negative = np.flatnonzero(array < 0)
    if len(negative):
        raise ValueError(
            f"sample_weight holds {array[negative[0]]} in row {negative[0]}; wanted "
            "weights >= 0"
        )
    if not array.any():
        raise ValueError("sample_weight is zero in every row; wanted one weight > 0")
    return array


def check_domains(
    sample_domain: Any, n_rows: int, name: str = "sample_domain"
) -> np.ndarray:
    """One domain (string or integer) per row."""
    array = np.asarray(sample_domain)
    if array.shape != (n_rows,):
        kind = name.split("_")[-1].removesuffix("s")
        raise ValueError(
            f"{name} has shape {array.shape}; wanted one {kind} per row, ({n_rows},)"
        )
    if array.dtype.kind == "O":
        missing = [row for row, found in enumerate(array) if _is_missing(found)]
        if missing:
            raise ValueError(
                f"{name} has no name in row {missing[0]} (found {array[missing[0]]}); "
                "wanted a string or an integer in every row"
            )
        integers = all(isinstance(found, (int, np.integer)) for found in array)
        array = np.array(array.tolist()) if integers else array.astype(str)
    if array.dtype.kind == "f":
        check_finite(array, name)
    return array


def _is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas, which equal not even themselves."""
    return value is None or (
        not isinstance(value, str) and str(value) in ("nan", "<NA>", "NaT")
    )


def check_probabilities(
    probabilities: Any, name: str = "probabilities", first_row: int = 0
) -> np.ndarray:
    """A finite (n, k) array of rows in [0, 1] that sum to one."""
    array = _real_array(probabilities, name)
    if array.ndim != 2 or 0 in array.shape or array.shape[1] < 2:
        raise ValueError(f"{name} has shape {array.shape}; wanted (n, k) with k >= 2")
    for block in row_blocks(*array.shape):
        part = array[block].astype(np.float64)
        slack = sum_tolerance(array.dtype)
        with np.errstate(invalid="ignore"):
            wrong = ~(
                (part >= 0).all(axis=1)
                & (part <= 1 + slack).all(axis=1)
                & (np.abs(part.sum(axis=1) - 1) <= slack)
            )
        if wrong.any():
            row = int(np.argmax(wrong))
            number = row + block.start + first_row
            raise ValueError(
                f"{name} row {number} is no probability vector (smallest "
                f"{part[row].min():.4g}, sum {part[row].sum():.6g}); wanted values in "
                "[0, 1] that sum to 1"
            )
    return array


def logits_from_probabilities(probabilities: Any) -> np.ndarray:
    """Logits whose softmax gives back `probabilities`: their logarithms.

    Parameters
    ----------
    probabilities : (n, k) rows that sum to one, or (n,) probabilities of class 1.
        Zeros are taken as the smallest normal number, so that every logit is finite.

    Returns
    -------
    (n, k) array of log-probabilities, which temperature scaling can use as logits:
    the softmax forgets an additive constant per row, and so does every temperature.
    """
    array = _real_array(probabilities, "probabilities")
    if array.ndim == 1:
        array = np.column_stack([1 - array, array])
    array = check_probabilities(array)
    dtype = np.float64 if array.dtype == np.float64 else np.float32
    logits = array.astype(dtype)
    np.maximum(logits, np.finfo(dtype).tiny, out=logits)
    return np.log(logits, out=logits)


def _real_array(values: Any, name: str) -> np.ndarray:
    """A real NumPy array, not copied unless it holds integers or objects."""
    if hasattr(values, "toarray"):
        raise TypeError(
            f"{name} is a sparse container, but dense data is required; use .toarray()"
        )
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has masked entries, whose values are unknown; wanted an array "
            "without a mask, e.g. values.filled(0.0)"
        )
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has type {array.dtype}")
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{name} has type {array.dtype} ({error}); wanted real numbers"
            ) from error
    return array
