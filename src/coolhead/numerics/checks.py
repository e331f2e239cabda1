"""What may enter: every error names the argument, what was found, what is wanted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.arrays import readable, real_array, refuse_missing
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.class_names import are_names, number_names, number_truth
from coolhead.numerics.probabilities import refuse_probabilities
from coolhead.numerics.threads import each_block


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
    if array.ndim > 2:
        crops = ", or mean_of_crops of (n, crops, k)" if array.ndim == 3 else ""
        raise ValueError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}); wanted (n, k) "
            "logits, one row per pixel or token: coolhead.models.dense_rows makes them "
            f"and puts results back into their places{crops}."
        )
    if array.ndim != 2:
        raise ValueError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}); wanted (n, k) "
            "logits, or (n,) scores of a binary classifier. "
            "Reshape your data, e.g. with array.reshape(1, -1) for a single sample."
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
            rows = bad + block.start
            raise ValueError(not_finite_message(array, rows, name, first_row))


def not_finite_message(
    array: np.ndarray, rows: np.ndarray, name: str, first_row: int = 0
) -> str:
    values = np.asarray(array[rows[0]]).ravel()
    found = values[~np.isfinite(values)][0]
    kind = "NaN" if np.isnan(found) else "infinity"
    listed = _listed(rows + first_row)
    return f"{name} contains {kind} in row {listed}; every value must be finite"


def _listed(rows: np.ndarray) -> str:
    more = " and more" if len(rows) > 5 else ""
    return ", ".join(str(int(row)) for row in rows[:5]) + more


def check_labels(
    labels: ArrayLike,
    n_classes: int,
    n_rows: int,
    class_names: Sequence[str] | None = None,
) -> np.ndarray:
    """Class indices in 0..k-1, one per row of the logits.

    Labels may be names: of `class_names` or, without, in sorted order, as in
    scikit-learn.
    """
    array = np.asarray(readable(labels, "labels"))
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
    if are_names(array):
        return number_names(array, n_classes, class_names)[0]
    if array.dtype.kind == "b":
        return number_truth(array, class_names)
    if array.dtype.kind == "O" and _are_integers(array):
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


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Finite weights >= 0 that are not all zero, or None."""
    if sample_weight is None:
        return None
    array = real_array(sample_weight, "sample_weight").astype(np.float64, copy=False)
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
    # Only proportions count, and sums of such numbers would be no numbers.
    extreme = not 1e-150 < array.max() < 1e150
    return array / array.max() if extreme else array


def check_domains(
    sample_domain: ArrayLike, n_rows: int, name: str = "sample_domain"
) -> np.ndarray:
    """One domain (string or integer) per row."""
    array = np.asarray(readable(sample_domain, name))
    if array.shape != (n_rows,):
        kind = name.split("_")[-1].removesuffix("s")
        raise ValueError(
            f"{name} has shape {array.shape}; wanted one {kind} per row, ({n_rows},)"
        )
    if array.dtype.kind == "O":
        refuse_missing(array, name, "a string or an integer")
        integers = _are_integers(array)
        if not integers:
            _refuse_mixed(array, name)
        array = np.array(array.tolist()) if integers else array.astype(str)
    if array.dtype.kind == "f":
        check_finite(array, name)
    return array


def _are_integers(array: np.ndarray) -> bool:
    return all(isinstance(found, int | np.integer) for found in array)


def _refuse_mixed(array: np.ndarray, name: str) -> None:
    """The integer 1 and the name "1" would become one domain."""
    numbers = [row for row, v in enumerate(array) if isinstance(v, int | np.integer)]
    if numbers:
        raise ValueError(
            f"{name} mixes names and numbers ({array[numbers[0]]!r} in row "
            f"{numbers[0]}); wanted strings in every row, or integers in every row"
        )
