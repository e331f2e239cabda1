"""Anything that looks like an array, as a NumPy array of real numbers."""

from typing import Any

import numpy as np


def real_array(values: Any, name: str) -> np.ndarray:
    """A real NumPy array, not copied unless it holds integers or objects."""
    if hasattr(values, "toarray"):
        raise TypeError(
            f"{name} is a sparse container, but dense data is required; use .toarray()"
        )
    array = np.asarray(readable(values, name))
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


def readable(values: Any, name: str) -> Any:
    """What NumPy can read: tensors off their device and without their gradient.

    NumPy's masked entries are refused: what lies below a mask must never be used.
    """
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has masked entries, whose values are unknown; wanted an array "
            "without a mask, e.g. values.filled(...)"
        )
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    # NumPy knows no bfloat16; single precision holds every one of its numbers.
    return tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor


def is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas, which equal not even themselves."""
    return value is None or (
        not isinstance(value, str) and str(value) in ("nan", "<NA>", "NaT")
    )


def refuse_missing(values: np.ndarray, name: str, wanted: str) -> None:
    """Names and labels that are objects may be missing, which sorting trips over."""
    missing = [row for row, value in enumerate(values) if is_missing(value)]
    if missing:
        raise ValueError(
            f"{name} has no name in row {missing[0]} (found {values[missing[0]]}, "
            f"{len(missing)} such rows); wanted {wanted} in every row"
        )
