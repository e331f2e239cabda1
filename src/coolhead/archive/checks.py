"""What an archive may hold: every error names the column, the row and the wish."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from coolhead.numerics.arrays import readable
from coolhead.numerics.checks import check_domains, check_finite, check_logit_values
from coolhead.numerics.class_names import are_names, number_names, number_truth
from coolhead.suggest import suggest


def check_matrix(values: Any, name: str) -> np.ndarray:
    """A real (n, d) array in its own type, without a look at the values."""
    array = np.asanyarray(readable(values, name))
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} has type {array.dtype}; wanted real numbers")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; wanted (n, d), not empty")
    return array


def check_values(array: np.ndarray, name: str, first_row: int = 0) -> None:
    """Refuse numbers nobody can calculate with; empty cells of tables are NaN.

    The only look that files and archives take at the values of large arrays.
    """
    check = check_logit_values if name == "logits" and array.ndim == 2 else check_finite
    check(array, name, first_row)


def check_length(length: int, n_rows: int, name: str) -> None:
    if length != n_rows:
        raise ValueError(
            f"{name} has {length} rows, the archive has {n_rows}; wanted the same"
        )


def check_labels(
    labels: Any,
    n_rows: int,
    n_classes: int | None,
    class_names: tuple[str, ...] | None = None,
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """(n,) class indices >= 0, below the number of classes where it is known.

    Labels that are names are looked up in `class_names`, which they bring themselves
    where there are none. Returns the indices and the class names.
    """
    array = np.asarray(readable(labels, "labels"))
    if array.ndim == 1 and are_names(array):
        check_length(len(array), n_rows, "labels")
        return number_names(array, n_classes, class_names)
    if array.dtype.kind == "b":
        array = number_truth(array, class_names)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"labels has shape {array.shape} and type {array.dtype}; wanted one "
            f"integer class index per row, ({n_rows},)"
        )
    check_length(len(array), n_rows, "labels")
    wrong = array < 0
    if n_classes is not None:
        wrong |= array >= n_classes
    if wrong.any():
        row = int(np.argmax(wrong))
        top = "" if n_classes is None else f"..{n_classes - 1}"
        raise ValueError(
            f"labels holds {array[row]} in row {row} ({int(wrong.sum())} such rows); "
            f"wanted 0{top}"
        )
    return array.astype(np.intp, copy=False), class_names


def check_tags(values: Any, n_rows: int, name: str) -> np.ndarray:
    """(n,) integers or strings that name rows or groups of rows."""
    array = decode_bytes(np.asarray(values))
    if array.ndim != 1 or array.dtype.kind not in "iuUOT":
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; wanted one "
            f"integer or string per row, ({n_rows},)"
        )
    check_length(len(array), n_rows, name)
    if array.dtype.kind == "O":
        for row, value in enumerate(array):
            if not isinstance(value, str | int | np.integer):
                raise ValueError(
                    f"{name} holds {value!r} in row {row}; wanted integers or strings"
                )
    return array if array.dtype.kind in "iuU" else array.astype(np.str_)


def encode_domains(
    domains: Any, domain_names: Sequence[str] | None, n_rows: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes (n,) and the names they index.

    Integers are codes when `domain_names` is given and names of their own otherwise.
    No domains at all means one domain, called "all".
    """
    names = None if domain_names is None else check_names(domain_names, "domain_names")
    if domains is None:
        if names is not None and len(names) != 1:
            raise ValueError(
                f"domains is missing, domain_names has {len(names)} names; wanted one "
                "domain per row"
            )
        return np.zeros(n_rows, np.int32), names or ("all",)
    array = decode_bytes(np.asarray(readable(domains, "domains")))
    if array.ndim == 1:
        check_length(len(array), n_rows, "domains")
    array = check_domains(array, n_rows, "domains")
    if array.dtype.kind not in "iuUOT":
        raise ValueError(f"domains has type {array.dtype}; wanted strings or integers")
    if names is None:
        found, codes = np.unique(array, return_inverse=True)
        return codes.astype(np.int32), tuple(str(name) for name in found)
    if array.dtype.kind in "iu":
        return _check_codes(array, names), names
    return _look_up(array, names), names


def _check_codes(codes: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    wrong = (codes < 0) | (codes >= len(names))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"domains holds {codes[row]} in row {row}; wanted 0..{len(names) - 1}, as "
            f"there are {len(names)} domain_names"
        )
    return codes.astype(np.int32)


def _look_up(domains: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    found, first, codes = np.unique(
        domains.astype(np.str_), return_index=True, return_inverse=True
    )
    index = {name: code for code, name in enumerate(names)}
    for name, row in zip(found, first, strict=True):
        if str(name) not in index:
            raise ValueError(
                f"domains holds {str(name)!r} in row {row}, which is not in "
                f"domain_names{suggest(str(name), names)}"
            )
    return np.array([index[str(name)] for name in found], np.int32)[codes]


def check_names(names: Any, argument: str) -> tuple[str, ...]:
    """Distinct names as a tuple of str."""
    if isinstance(names, str):
        raise ValueError(f"{argument} is the string {names!r}; wanted a list of names")
    array = decode_bytes(np.asarray(names))
    listed = tuple(str(name) for name in array.tolist())
    if array.ndim != 1 or not listed:
        raise ValueError(f"{argument} has shape {array.shape}; wanted a list of names")
    doubled, times = Counter(listed).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{argument} holds {doubled!r} twice; wanted each name once")
    return listed


def decode_bytes(array: np.ndarray) -> np.ndarray:
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
