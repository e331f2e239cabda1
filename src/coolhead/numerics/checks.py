"""Anything that looks like an array, as a NumPy array of real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.blocks import each_block, row_blocks


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


def name_array(values: Any, name: str) -> np.ndarray:
    """Convert names to an array in which missing and nested entries stay objects."""
    values = readable(values, name)
    try:
        array = np.asarray(values)
    except ValueError:  # sequences of different lengths
        return np.fromiter(values, object)
    # NumPy writes NaN in a list of strings as the text "nan".
    written = array.dtype.kind in "US" and not hasattr(values, "__array__")
    if written and array.ndim and not all(isinstance(v, str | bytes) for v in values):
        return np.fromiter(values, object)
    return array.astype(object) if array.dtype.kind == "T" else array


def is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas, which equal not even themselves."""
    return value is None or (
        not isinstance(value, str)
        and str(value) in ("nan", "NaN", "sNaN", "<NA>", "NaT")
    )


def refuse_missing(values: np.ndarray, name: str, wanted: str) -> None:
    """Names and labels that are objects may be missing, which sorting trips over."""
    missing = [row for row, value in enumerate(values) if is_missing(value)]
    if missing:
        raise ValueError(
            f"{name} has no name in row {missing[0]} (found {values[missing[0]]}, "
            f"{len(missing)} such rows); wanted {wanted} in every row"
        )


def refuse_nested(values: np.ndarray, name: str, wanted: str) -> None:
    """Refuse tuples, lists and the like, as a MultiIndex of pandas holds them."""
    for row, value in enumerate(values):
        if np.iterable(value) and not isinstance(value, str | bytes):
            raise ValueError(
                f"{name} holds {repr(value)[:60]} in row {row}; wanted {wanted} in "
                "every row"
            )


# Rows are taken for probabilities where nearly all are: one bad row proves nothing.
MOST_ROWS = 0.95
# However coarsely probabilities are rounded, their sum is not further from one.
LOOSEST_SUM = 0.25
# So few rows may sum to one by chance, if "one" is taken generously.
FEW_ROWS = 4


def sum_tolerance(dtype: np.dtype) -> float:
    """How far a row of unrounded probabilities may miss a sum of one."""
    return 5e-3 if dtype == np.float16 else 1e-4


def rounded_sum_tolerance(values: np.ndarray) -> float:
    """How far rows (n, k) of probabilities, rounded like these, may miss a sum of 1.

    Half precision, also the one with eight bits, shows in the last bits of single
    precision; decimals show as whole numbers of hundredths, thousandths, ...
    """
    exact = sum_tolerance(values.dtype)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, np.float32)
    is_single = bool((single == values).all())
    if is_single:
        used = np.bitwise_or.reduce(single.view(np.uint32), axis=None)
        if not used & 0xFFFF:
            exact = 8e-3  # eight bits were kept, the others perhaps just cut off
        elif not used & 0x1FFF:
            exact = 5e-3  # eleven bits were kept
    noise = np.finfo(np.float32 if is_single else np.float64).eps
    for decimals in range(2, 7):
        steps = values.astype(np.float64) * 10**decimals
        with np.errstate(invalid="ignore"):
            apart = np.abs(steps - np.rint(steps))
        if (apart <= noise * 10**decimals).all():
            worst = values.shape[1] * 0.5 / 10**decimals
            return min(max(exact, 1.001 * worst), LOOSEST_SUM)
    return exact


def refuse_probabilities(array: np.ndarray, name: str) -> None:
    """Refuse arrays nearly all of whose rows lie in [0, 1] and sum to one.

    The sum is judged by the rounding that the values themselves show. This is for rows
    that come together: any single row of logits may sum to one.
    """
    n_rows = len(array)
    if n_rows == 1:
        return
    excess, first, others = np.full(n_rows, np.inf), None, 0
    for block in row_blocks(*array.shape):
        part = array[block]
        alike, distance = _like_probabilities(part)
        excess[block] = np.where(alike, distance, np.inf)
        others += int((~alike).sum())
        if others > (1 - MOST_ROWS) * n_rows:
            return
        if first is None and alike.any():
            first = part[alike]
    if first is None:
        return
    few = n_rows < FEW_ROWS
    slack = sum_tolerance(array.dtype) if few else rounded_sum_tolerance(first)
    if (excess <= slack).mean() >= MOST_ROWS:
        raise ValueError(probabilities_message(name))


def _like_probabilities(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows of a block may be probabilities, and how far their sum is from one."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(part.sum(axis=1, dtype=np.float64) - 1)
        # Written so that NaN, which no comparison holds for, is no probability.
        alike = (part.min(axis=1) >= 0) & (part.max(axis=1) <= 1 + LOOSEST_SUM)
        return alike & (distance <= LOOSEST_SUM), distance


def probabilities_message(name: str) -> str:
    return (
        f"{name} holds probabilities: the rows lie in [0, 1] and sum to 1; wanted "
        "logits (scores before the softmax). Where only probabilities exist, pass "
        "coolhead.logits_from_probabilities(p)"
    )


def check_probabilities(
    probabilities: ArrayLike, name: str = "probabilities", first_row: int = 0
) -> np.ndarray:
    """A finite (n, k) array of rows in [0, 1] that sum to one.

    Rounded probabilities may miss one by as much as their own rounding explains.
    first_row : number of the first row, where the array is a piece of something longer.
    """
    array = real_array(probabilities, name)
    if array.ndim != 2 or 0 in array.shape or array.shape[1] < 2:
        dense = ", one row per pixel or token: coolhead.models.dense_rows makes them"
        raise ValueError(
            f"{name} has shape {array.shape}; wanted (n, k) with k >= 2"
            + (dense if array.ndim > 2 else "")
        )
    for block in row_blocks(*array.shape):
        part = array[block].astype(np.float64)
        wrong = _wrong_probabilities(part, sum_tolerance(array.dtype))
        if wrong.any():
            alike = _like_probabilities(part)[0]
            slack = rounded_sum_tolerance(array[block][alike])
            wrong = _wrong_probabilities(part, slack)
        if wrong.any():
            row = int(np.argmax(wrong))
            number = row + block.start + first_row
            raise ValueError(
                f"{name} row {number} is no probability vector (smallest "
                f"{part[row].min():.4g}, sum {part[row].sum():.6g}); wanted values in "
                "[0, 1] that sum to 1"
            )
    return array


def _wrong_probabilities(part: np.ndarray, slack: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return ~(
            (part >= 0).all(axis=1)
            & (part <= 1 + slack).all(axis=1)
            & (np.abs(part.sum(axis=1) - 1) <= slack)
        )


def logits_from_probabilities(probabilities: ArrayLike) -> np.ndarray:
    """Logits whose softmax gives back `probabilities`: their logarithms.

    Parameters
    ----------
    probabilities : (n, k) rows that sum to one, or (n,) probabilities of class 1.
        Zeros are taken as the smallest normal number, so that every logit is finite.
        Rounded rows may miss a sum of one by their rounding; the softmax makes up for
        it.

    Returns
    -------
    (n, k) array of log-probabilities, which temperature scaling can use as logits:
    the softmax forgets an additive constant per row, and so does every temperature.

    Examples
    --------
    >>> import coolhead as ch
    >>> ch.logits_from_probabilities([[0.5, 0.5], [0.8, 0.2]]).round(2)
    array([[-0.69, -0.69],
           [-0.22, -1.61]])
    """
    array = real_array(probabilities, "probabilities")
    if array.ndim == 1:
        array = np.column_stack([1 - array, array])
    array = check_probabilities(array)
    dtype = np.float64 if array.dtype == np.float64 else np.float32
    logits = array.astype(dtype)
    np.maximum(logits, np.finfo(dtype).tiny, out=logits)
    return np.log(logits, out=logits)


def check_choice(value: Any, name: str, *known: Any) -> None:
    """Refuse a value that is none of a few known ones."""
    if value not in known:
        listed = " or ".join([", ".join(map(repr, known[:-1])), repr(known[-1])])
        raise ValueError(f"{name} is {value!r}; wanted {listed}")


def as_logits(
    logits: ArrayLike, name: str = "logits", *, allow_empty: bool = False
) -> np.ndarray:
    """Shape and type of logits, without a look at the values.

    Binary scores of shape (n,) become the two columns [0, s]. A prediction may be asked
    of no rows at all (`allow_empty`), a fit may not.
    """
    array = real_array(logits, name)
    if array.ndim == 1:
        array = np.column_stack([np.zeros_like(array), array])
    if array.ndim != 2:
        dense = (
            "one row per pixel or token: coolhead.models.dense_rows makes them and "
            "puts results back into their places; of several crops of a row, pass "
            "the mean."
        )
        binary = "or (n,) scores of a binary classifier. Reshape your data."
        raise ValueError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}); wanted (n, k) "
            f"logits, {dense if array.ndim > 2 else binary}"
        )
    if array.shape[0] == 0 and not allow_empty:
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


def check_logits(logits: ArrayLike, name: str = "logits") -> np.ndarray:
    """`as_logits`, refusing NaN, infinity and probabilities, with row numbers."""
    array = as_logits(logits, name)
    check_logit_values(array, name)
    if np.ndim(logits) != 1:
        refuse_probabilities(array, name)
    return array


def check_logit_values(array: np.ndarray, name: str, first_row: int = 0) -> None:
    """Refuse NaN, +infinity, and rows of nothing but -infinity.

    A logit of -infinity is a masked class, of probability exactly zero.
    first_row : number of the first row, where `array` is a piece of something longer.
    """
    if array.dtype.kind in "iub":
        return

    def look(block: slice, _: None) -> None:
        part = array[block]
        if np.isfinite(part).all():
            return
        # The largest is NaN, +inf or -inf in exactly the rows that are refused.
        bad = np.flatnonzero(~np.isfinite(part.max(axis=1)))
        if len(bad):
            rows = bad + block.start
            raise ValueError(bad_logits_message(array, rows, name, first_row))

    each_block(array.shape, look)


def bad_logits_message(
    array: np.ndarray, rows: np.ndarray, name: str, first_row: int = 0
) -> str:
    largest = np.asarray(array[rows[0]]).max()
    rows = rows + first_row
    if np.isneginf(largest):
        return (
            f"{name} is -inf for every class in row {_listed(rows)}; wanted at least "
            "one class that is not masked"
        )
    kind = "NaN" if np.isnan(largest) else "infinity"
    return (
        f"{name} contains {kind} in row {_listed(rows)}; wanted finite values, or "
        "-inf for a masked class"
    )


def masked_label_message(labels: np.ndarray, rows: np.ndarray) -> str:
    return (
        f"labels holds class {labels[rows[0]]} in row {_listed(rows)}, where its logit "
        "is -inf: a masked class has probability zero; wanted one that is not masked"
    )


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
            kind = "NaN" if np.isnan(part[~finite][0]) else "infinity"
            listed = _listed(bad + block.start + first_row)
            raise ValueError(
                f"{name} contains {kind} in row {listed}; every value must be finite"
            )


def _listed(rows: np.ndarray) -> str:
    more = " and more" if len(rows) > 5 else ""
    return ", ".join(str(int(row)) for row in rows[:5]) + more


def missing_features_message(n_rows: int) -> str:
    return (
        "features is missing: this method uses features; wanted an array "
        f"({n_rows}, d), e.g. the classifier's penultimate activations, or a method "
        "without them, such as TemperatureScaling() or --method set-level"
    )


def check_features(
    features: ArrayLike,
    n_rows: int | None,
    n_features: int | None = None,
    name: str = "features",
) -> np.ndarray:
    """A finite (n, d) array with as many rows as the logits (None: any number)."""
    if features is None:
        raise ValueError(missing_features_message(n_rows or 0))
    array = real_array(features, name)
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


def check_domains(
    sample_domain: ArrayLike, n_rows: int, name: str = "sample_domain"
) -> np.ndarray:
    """Check that every row has a domain.

    Parameters
    ----------
    sample_domain : array-like of shape (n_rows,)
        Strings or integers; also dates, booleans or finite numbers.
    n_rows : int
        Number of rows of the logits.
    name : str, default="sample_domain"
        The argument that an error names.

    Returns
    -------
    ndarray of shape (n_rows,)
        Objects have become integers or strings.

    Raises
    ------
    ValueError
        If the shape or the type is wrong, or an entry is missing or nested.
    """
    array, wanted = name_array(sample_domain, name), "a string or an integer"
    if array.shape != (n_rows,):
        kind = name.split("_")[-1].removesuffix("s")
        raise ValueError(
            f"{name} has shape {array.shape}; wanted one {kind} per row, ({n_rows},)"
        )
    if array.dtype.kind == "O":
        refuse_missing(array, name, wanted)
        refuse_nested(array, name, wanted)
        integers = [isinstance(found, int | np.integer) for found in array]
        if any(integers) and not all(integers):
            row = integers.index(True)  # 1 and "1" would become one domain
            raise ValueError(
                f"{name} mixes names and numbers ({array[row]!r} in row {row}); wanted "
                "strings in every row, or integers in every row"
            )
        array = np.array(array.tolist()) if any(integers) else array.astype(str)
    if array.dtype.kind == "f":
        check_finite(array, name)
    if array.dtype.kind in "mM" and np.isnat(array).any():
        refuse_missing(array, name, wanted)
    if array.dtype.kind in "cV":
        raise ValueError(f"{name} has type {array.dtype}; wanted {wanted} in every row")
    return array
