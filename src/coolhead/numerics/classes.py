"""Classes: which column of the scores is which class, and which class a label is.

This module is the one owner of class names. Calibrators, metrics, archives, the
wrapper, `NewDomain`, the monitor, Dask and the command line call it; no other module
sorts, counts or matches the names of classes.

The rules, for scores with k columns:

- Columns have names in a frame (the prefixes ``logit_`` and ``prob_`` are removed), or
  by an explicit `classes`. Numbers that only count the columns are no names.
- A label is matched to a column by its name. An integer is the number of a column as
  given, unless the names are integers, too.
- String labels beside unnamed columns are sorted as scikit-learn does, if there are k
  of them. They are refused where the order as text and the order by number differ
  ("10" before "2", "class_10" before "class_2"), because scikit-learn's columns are in
  the former, other tools' in the latter. A categorical that is ordered, or in an order
  of its own, decides.
- A float without a fraction is the integer: 1.0 is called "1".
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from coolhead.numerics.checks import is_missing, readable, refuse_missing

PREFIXES = ("logit_", "prob_")
# Names that polars gives to the columns of an array.
COUNTED = re.compile("column_([0-9]+)")
NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")
UNLABELLED = -1
TRUTH = ({"false": 0, "true": 1}, {"no": 0, "yes": 1})

Names = tuple[str, ...]


def match_rows(
    scores: Any,
    labels: Any,
    classes: Any,
    check: Callable[[Any], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, Names | None]:
    """Check scores and labels and bring them into one order of classes.

    Parameters
    ----------
    scores : array-like or frame of shape (n_samples, n_classes)
    labels : array-like of shape (n_samples,)
    classes : sequence or None
        Names of the classes in the order wanted.
    check : callable
        Makes a checked array of the scores.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_classes)
    codes : ndarray of shape (n_samples,)
    names : tuple of str or None
    """
    array, own = check(scores), column_names(scores)
    n_rows, n_classes = array.shape
    if own is None and classes is None:
        return array, *encode_labels(labels, n_classes, n_rows)
    array, names = order_columns(array, scores, classes)
    codes, names = encode_beside(
        labels, n_classes, n_rows, own, names, counted=classes is None
    )
    return array, codes, names


def order_columns(
    array: np.ndarray, scores: Any, classes: Any = None
) -> tuple[np.ndarray, Names | None]:
    """Return the array with its columns in the order of `classes`, and their names.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_classes)
        The checked values of `scores`.
    scores : array-like or frame
        As given by the user; a frame knows the names of its columns.
    classes : sequence or None
        Names in the order wanted, of a fit or of the user. None keeps the order.
    """
    own = column_names(scores)
    wanted = wanted_classes(own, classes)
    if wanted is None:
        return array, None
    order = column_order(own, wanted, array.shape[1])
    return (array if order is None else array[:, order]), wanted


def wanted_classes(names: Names | None, classes: Any) -> Names | None:
    """Return the order that columns with these names are brought into.

    By default they stay where they are, unless their names are their numbers.
    """
    if classes is not None:
        return check_names(classes, "classes")
    numbers = tuple(map(str, range(len(names or ()))))
    return numbers if names and set(names) == set(numbers) else names


def column_order(
    names: Names | None, wanted: Names, n_classes: int
) -> list[int] | None:
    """Return which column each wanted class is in; None where they are in place.

    Columns without names, or with numbers that count them, are taken as they stand.
    """
    if len(wanted) != n_classes:
        raise ValueError(
            f"classes has {len(wanted)} names, the scores have {n_classes} columns; "
            "wanted the same"
        )
    if names is None or names == wanted:
        return None
    if set(names) == set(wanted):
        return [names.index(name) for name in wanted]
    numbers = wanted_classes(names, None)
    if is_numbered(numbers or ()) and not _all_integers(wanted):
        return column_order(names, numbers or (), n_classes)
    if is_numbered(wanted) and not _all_integers(names):
        return None
    _refuse_repeated(names, "the names of the columns")
    unknown = tuple(name for name in names if name not in wanted)
    why = f" ({_listed(unknown)} is no class)" if unknown else ""
    raise ValueError(
        f"the columns are named {_listed(names)}, the classes are {_listed(wanted)}"
        f"{why}; wanted the same names in any order, or columns without names"
    )


def column_names(scores: Any) -> Names | None:
    """Return the class names that the columns of a frame carry, None without any.

    Default names, by which pandas and polars count the columns of an array, are none.
    """
    # The columns of an Arrow table are its values.
    found = getattr(scores, "column_names", getattr(scores, "columns", None))
    if found is None:
        return None
    names = tuple(class_text(name) for name in found)
    counted = [COUNTED.fullmatch(name) for name in names]
    if all(counted):
        names = tuple(match[1] for match in counted if match)
        found = list(map(int, names))
    if list(found) == list(range(len(names))):
        return None
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in names):
            names = tuple(name.removeprefix(prefix) for name in names)
    _refuse_repeated(names, "the names of the columns")
    return names


def restore_columns(array: np.ndarray, names: Names | None, classes: Any) -> Any:
    """Undo `order_columns`: a frame with the columns as they were given.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_classes)
        In the order of `classes`.
    names : tuple of str or None
        Names of the columns as given; None leaves the array as it is.
    classes : sequence or None
        As for `order_columns`.
    """
    wanted = wanted_classes(names, classes)
    if names is None or wanted is None:
        return array
    import pandas

    order = column_order(names, wanted, array.shape[1]) or range(len(names))
    return pandas.DataFrame(array[:, np.argsort(order)], columns=list(names))


def check_names(names: Any, argument: str) -> Names:
    """Return distinct names as a tuple of str."""
    if isinstance(names, str):
        raise ValueError(f"{argument} is the string {names!r}; wanted a list of names")
    array = decode_bytes(np.asarray(readable(names, argument)))
    listed = tuple(class_text(name) for name in array.ravel().tolist())
    if array.ndim != 1 or not listed:
        raise ValueError(f"{argument} has shape {array.shape}; wanted a list of names")
    _refuse_repeated(listed, argument)
    return listed


def class_text(value: Any) -> str:
    """Return the name of a class: nullable integers of pandas become floats."""
    return str(int(value) if isinstance(value, float) and value % 1 == 0 else value)


def encode_labels(
    labels: Any,
    n_classes: int | None,
    n_rows: int,
    names: Sequence[str] | None = None,
    *,
    unlabelled: bool = False,
    numbers: bool = False,
    counted: bool = False,
    rows: np.ndarray | None = None,
) -> tuple[np.ndarray, Names | None]:
    """Return the column number of each label, and the names of the classes.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Integers, strings, booleans or a categorical.
    n_classes : int or None
        Number of columns; None where there are no scores.
    n_rows : int
    names : sequence of str or None
        Names of the columns.
    unlabelled : bool, default=False
        Accept rows without a label (-1, an empty string, a missing value) and return
        -1 for them.
    numbers : bool, default=False
        Take integers for column numbers even where the names are integers.
    counted : bool, default=False
        Sort labels that are words where the names only count the columns, as if the
        columns had none. By default such labels are refused.
    rows : ndarray of shape (n_samples,), default=None
        Numbers of the rows for messages; by default they count from zero.

    Returns
    -------
    codes : ndarray of shape (n_samples,)
    names : tuple of str or None
        Found in the labels where the columns had none.
    """
    array = _label_array(labels, n_rows)
    known = None if names is None else tuple(map(str, names))
    if numbers and array.dtype.kind in "iu":
        absent = (array == UNLABELLED) & unlabelled
        codes = _check_range(np.where(absent, 0, array), n_classes, rows)
        return np.where(absent, UNLABELLED, codes), known
    if not unlabelled:
        return _encode(array, labels, n_classes, known, rows, counted)
    absent = _without_label(array, known)
    codes = np.full(n_rows, UNLABELLED, np.intp)
    if not absent.all():
        kept = np.array(array[~absent].tolist()) if absent.any() else array
        if kept.dtype.kind == "f" and (kept % 1 == 0).all():
            kept = kept.astype(np.intp)  # missing values make floats of integers
        rows = np.arange(n_rows) if rows is None else rows
        codes[~absent], known = _encode(
            kept, labels, n_classes, known, rows[~absent], counted
        )
    return codes, known


def encode_beside(
    labels: Any,
    n_classes: int | None,
    n_rows: int,
    names: Names | None,
    wanted: Names | None,
    **settings: Any,
) -> tuple[np.ndarray, Names | None]:
    """Encode labels that came beside columns which were brought into another order.

    Parameters
    ----------
    labels, n_classes, n_rows, **settings
        As for `encode_labels`.
    names, wanted : tuple of str or None
        Names of the columns as given, and in the order they are in now. Integers are
        numbers of the columns as given.
    """
    if _renamed(names, wanted) and _holds(labels, n_rows, names or ()):
        codes, _ = encode_labels(labels, n_classes, n_rows, names, **settings)
        return codes, wanted
    same = names is not None and wanted is not None and set(names) == set(wanted)
    by_number = is_numbered(wanted or ()) and not settings.get("numbers")
    if not same or by_number or names is None or wanted is None:
        return encode_labels(labels, n_classes, n_rows, wanted, **settings)
    codes, _ = encode_labels(labels, n_classes, n_rows, names, **settings)
    places = np.array([wanted.index(name) for name in names], np.intp)
    return np.where(codes < 0, codes, places[codes]), wanted


def typed_labels(texts: Sequence[str], names: Names | None) -> list[str] | list[int]:
    """Return labels that people typed: names, or numbers of columns.

    A number that is the name of a class stands for that class.
    """
    numbers = [int(text) if _is_count(text) else -1 for text in texts]
    if names is None:
        return numbers if min(numbers) >= 0 else list(texts)
    return [
        names[number] if text not in names and 0 <= number < len(names) else text
        for text, number in zip(texts, numbers, strict=True)
    ]


def name_labels(codes: Any, names: Sequence[str] | None) -> np.ndarray:
    """Return the names of column numbers, "" for -1; the numbers where none are known.

    Numbers would be taken for names where the names are integers, too.
    """
    codes = np.asarray(codes)
    return codes if names is None else np.array([*names, ""])[codes]


def unique_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of `y`, as scikit-learn has them, and their codes."""
    return np.unique(y, return_inverse=True)


def class_positions(some: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return where each of some classes stands among all of them, -1 if it does not."""
    index = {value: place for place, value in enumerate(classes.tolist())}
    return np.array([index.get(value, -1) for value in some.tolist()], np.intp)


def distinct_text(labels: Any) -> np.ndarray | None:
    """Return the distinct labels of a block, sorted; None where they are no text."""
    array = _label_array(labels, len(labels))
    if array.dtype.kind not in "UTO":
        return None
    refuse_missing(array, "labels", "a label")
    return np.unique(array.astype(np.str_))


def join_text(blocks: Iterable[np.ndarray | None]) -> list[str]:
    """Return the distinct labels of all blocks, sorted; none where they are no text."""
    found = list(blocks)
    texts = [block for block in found if block is not None and len(block)]
    if texts and any(block is None for block in found):
        raise ValueError(
            f"labels mixes names ({texts[0][0]}) and numbers in different blocks; "
            "wanted names in every row, or class numbers in every row"
        )
    return np.unique(np.concatenate(texts)).tolist() if texts else []


def scores_by_name(rows: Sequence[Any], classes: Any = None) -> np.ndarray:
    """Return scores of shape (n_samples, n_classes) of rows that map class to score.

    The columns are in the order of `classes`; by default sorted, by number where all
    names end in one.
    """
    names = list(rows[0] if classes is None else classes)
    if classes is None:
        names.sort()
        if all(re.fullmatch(r"(LABEL_)?[0-9]+", str(name)) for name in names):
            names.sort(key=lambda name: int(str(name).removeprefix("LABEL_")))
    for place, row in enumerate(rows):
        if set(row) != set(names):
            raise ValueError(
                f"the scores of row {place} are of the classes {list(row)}; wanted "
                f"{names}"
            )
    return np.array([[row[name] for name in names] for row in rows], np.float64)


def is_numbered(names: Sequence[str]) -> bool:
    """Whether names only count the columns from zero on."""
    return list(names) == [str(number) for number in range(len(names))]


def decode_bytes(array: np.ndarray) -> np.ndarray:
    """Return bytes as text, anything else as it is."""
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _label_array(labels: Any, n_rows: int) -> np.ndarray:
    """Return labels as an array of shape (n_samples,) of one kind."""
    array = np.asarray(readable(labels, "labels"))
    if array.dtype.kind == "S":
        array = decode_bytes(array)
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
    if array.dtype.kind == "O" and len(array):
        kinds = {bool if isinstance(v, bool | np.bool_) else type(v) for v in array}
        if kinds == {bool}:
            return array.astype(bool)
        if all(issubclass(kind, int | np.integer) for kind in kinds):
            return array.astype(np.intp)
        if kinds == {float} and not any(map(is_missing, array)):
            return array.astype(np.float64)
    return array


def _without_label(array: np.ndarray, names: Names | None) -> np.ndarray:
    """Return a mask of the rows that have no label."""
    if array.dtype.kind in "iu":
        return (array == UNLABELLED) & ("-1" not in (names or ()))
    if array.dtype.kind == "f":
        return np.isnan(array)
    if array.dtype.kind in "UT":
        return array == ""
    if array.dtype.kind == "b":
        return np.zeros(len(array), bool)
    return np.array([is_missing(v) or v in ("", UNLABELLED) for v in array], bool)


def _encode(
    array: np.ndarray,
    labels: Any,
    n_classes: int | None,
    names: Names | None,
    rows: np.ndarray | None = None,
    counted: bool = False,
) -> tuple[np.ndarray, Names | None]:
    if array.dtype.kind == "b":
        return _encode_truth(array, n_classes, names), names
    if array.dtype.kind == "f" and names is not None and _all_integers(names):
        array = array.astype(np.intp) if (array % 1 == 0).all() else array
    if array.dtype.kind == "O":
        refuse_missing(array, "labels", "a label")
        _refuse_mixed(array)
    if array.dtype.kind in "UTO":
        found, codes = np.unique(array.astype(np.str_), return_inverse=True)
        names = names_of_text(found.tolist(), labels, n_classes, names, counted=counted)
        return _look_up(found, names, array, rows)[codes], names
    by_name = names is not None and not is_numbered(names)
    if by_name and (array.dtype.kind == "f" or _all_integers(names or ())):
        found, codes = np.unique(array, return_inverse=True)
        return _look_up(found, names or (), array, rows)[codes], names
    if array.dtype.kind not in "iu":
        top = "" if n_classes is None else f"..{n_classes - 1}"
        raise ValueError(
            f"labels has type {array.dtype} (Unknown label type); wanted integers "
            f"0{top}, column numbers of the logits, or names of classes; drop rows "
            "whose label is not known"
        )
    if hasattr(getattr(labels, "dtype", None), "categories"):
        _refuse_unordered(labels)
    return _check_range(array, n_classes, rows), names


def names_of_text(
    found: list[str],
    labels: Any,
    n_classes: int | None,
    names: Names | None,
    *,
    own: Names | None = None,
    counted: bool = False,
) -> Names:
    """Decide the classes of labels that are text.

    Parameters
    ----------
    found : list of str
        The distinct labels.
    labels : array-like
        All labels as given; a categorical knows an order of its own.
    n_classes : int or None
    names : tuple of str or None
        Names of the classes in the order wanted.
    own : tuple of str, default=None
        Names of the columns as given.
    counted : bool, default=False
        As for `encode_labels`.
    """
    if _renamed(own, names) and set(found).intersection(own or ()):
        return own or ()
    counts = counted and is_numbered(names or ())
    if names is not None and not (counts and not set(found).intersection(names)):
        return names
    chosen = _chosen_order(labels)
    if chosen is not None and n_classes in (None, len(chosen)):
        return chosen
    names = tuple(sorted(found))
    if n_classes not in (None, len(names)):
        raise ValueError(
            f"labels holds {len(names)} names ({_listed(names)}) for {n_classes} "
            "columns, so nothing says which column is which; wanted class numbers, or "
            "scores whose columns carry the names (a frame, classes, class_names)"
        )
    by_number = _by_number(names)
    if n_classes is not None and names != by_number:
        numbers = all(map(NUMBER.fullmatch, names))
        kind = "numbers as text" if numbers else "names that end in numbers"
        raise ValueError(
            f"labels holds {kind}, and the columns have no names: as text the "
            f"classes are {_listed(names)}, by number {_listed(by_number)}, so nothing "
            "says which column is which; wanted classes (class_names) in the order of "
            "the columns, columns with names, or integers"
        )
    return names


def _renamed(names: Names | None, wanted: Names | None) -> bool:
    """Whether the classes wanted only count columns that have names of their own."""
    if names is None or wanted is None:
        return False
    return is_numbered(wanted) and not _all_integers(names)


def _holds(labels: Any, n_rows: int, names: Names) -> bool:
    """Whether labels are truth values, or text of which some is a name."""
    array = _label_array(labels, n_rows)
    if array.dtype.kind not in "UTO":
        return array.dtype.kind == "b"
    index = set(names)
    return any(isinstance(v, str) and v in index for v in array.tolist())


def _chosen_order(labels: Any) -> Names | None:
    """Return a categorical's categories, unless they are merely sorted."""
    kind = getattr(labels, "dtype", None)
    categories: Any = getattr(kind, "categories", None)
    if not hasattr(categories, "to_list"):
        return None
    names = tuple(map(str, categories.to_list()))
    fixed = getattr(kind, "ordered", True)  # an Enum of polars always is
    return names if fixed or names != tuple(sorted(names)) else None


def _refuse_unordered(labels: Any) -> None:
    """Refuse integers with an order of their own: by value, or by that order?"""
    chosen = _chosen_order(labels)
    if chosen is not None and chosen != _by_number(chosen):
        raise ValueError(
            f"labels is a categorical of integers in the order {_listed(chosen)}, so "
            "nothing says whether a label is a column number or a place in that order; "
            "wanted classes in the order of the columns, or plain integers"
        )


def _encode_truth(
    array: np.ndarray, n_classes: int | None, names: Names | None
) -> np.ndarray:
    """Column numbers of True and False: by name (true, yes, 1), else False is 0."""
    if n_classes not in (None, 2):
        raise ValueError(
            f"labels is boolean, the scores have {n_classes} columns; wanted two "
            "columns, or the class of each row"
        )
    words = [name.casefold() for name in names or ()]
    for truth in (*TRUTH, {"0": 0, "1": 1}):
        if set(words) == set(truth):
            return np.array([words.index(w) for w in truth], np.intp)[array.astype(int)]
    return array.astype(np.intp)


def _look_up(
    found: np.ndarray, names: Names, array: np.ndarray, rows: np.ndarray | None
) -> np.ndarray:
    """Return the place of each distinct label among the names."""
    index = {name: place for place, name in enumerate(names)}
    texts = map(class_text, found.tolist())
    places = np.array([index.get(text, -1) for text in texts], np.intp)
    if (places < 0).any():
        value = found[int(np.argmax(places < 0))]
        row = int(np.argmax(array == value))
        row = row if rows is None else int(rows[row])
        raise ValueError(
            f"labels holds {value.item()!r} in row {row}, which is no class; classes: "
            f"{_listed(names, 20)}"
        )
    return places


def _check_range(
    array: np.ndarray, n_classes: int | None, rows: np.ndarray | None
) -> np.ndarray:
    wrong, wanted = array < 0, "0 or more"
    if n_classes is not None:
        wrong |= array >= n_classes
        wanted = f"0..{n_classes - 1}, as there are {n_classes} columns"
    if wrong.any():
        first = int(np.argmax(wrong))
        row = first if rows is None else int(rows[first])
        raise ValueError(
            f"labels holds {array[first]} in row {row} ({int(wrong.sum())} such rows); "
            f"wanted {wanted}"
        )
    return array.astype(np.intp, copy=False)


def _refuse_mixed(labels: np.ndarray) -> None:
    other = [row for row, label in enumerate(labels) if not isinstance(label, str)]
    if other:
        raise ValueError(
            f"labels mixes names and other values ({labels[other[0]]!r} in row "
            f"{other[0]}); wanted names in every row, or class numbers in every row"
        )


def _refuse_repeated(names: Names, argument: str) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{argument} holds {name!r} twice; wanted each name once")
        seen.add(name)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _all_integers(names: Iterable[str]) -> bool:
    return all(re.fullmatch("-?[0-9]+", name) for name in names)


def _by_number(names: Names) -> Names:
    """Sort names by their value if all are numbers, or end in one after the same text.

    Else leave them as they are.
    """
    if all(map(NUMBER.fullmatch, names)):
        return tuple(sorted(names, key=float))
    parts = [re.fullmatch(r"(.*?)([0-9]+)", name, re.DOTALL) for name in names]
    if not all(parts) or len({part[1] for part in parts if part}) > 1:
        return names
    start = len(parts[0][1]) if parts[0] else 0
    return tuple(sorted(names, key=lambda name: int(name[start:])))


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
