"""Labels that are names: which column of the scores each one means."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coolhead.numerics.arrays import refuse_missing

# What the columns of scores are called in files, and so in frames read from them.
PREFIXES = ("logit_", "prob_")


def column_names(scores: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame, None where they are numbers or there are none.

    A prefix logit_ or prob_ of all of them is left out.
    """
    found = getattr(scores, "columns", None)
    if found is None or not all(isinstance(name, str) for name in found):
        return None
    names = tuple(map(str, found))
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in names):
            names = tuple(name.removeprefix(prefix) for name in names)
    return None if all(name.isdecimal() for name in names) else names


def are_names(labels: np.ndarray) -> bool:
    """Whether labels are text and not class numbers; no labels are neither."""
    if not labels.size:
        return False
    if labels.dtype.kind == "O":
        return any(isinstance(label, str) for label in labels.flat)
    return labels.dtype.kind in "UST"


def number_truth(
    labels: np.ndarray, class_names: Sequence[str] | None = None
) -> np.ndarray:
    """Class numbers (n,) of labels that are True or False.

    By the names of the classes where these are true and false, or yes and no, in
    whatever order; else False is class 0 and True is class 1.
    """
    places = [0, 1]
    if class_names is not None and len(class_names) == 2:
        words = tuple(str(name).casefold() for name in class_names)
        if words in (("true", "false"), ("yes", "no")):
            places = [1, 0]
    return np.array(places, np.intp)[labels.astype(np.intp)]


def number_names(
    labels: np.ndarray, n_classes: int | None, class_names: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class numbers (n,) of labels that are names, and the names of all classes.

    Without `class_names` these are the sorted labels, as in scikit-learn, of which
    there must be as many as classes.
    """
    labels = np.char.decode(labels, "utf-8") if labels.dtype.kind == "S" else labels
    if labels.dtype.kind == "O":
        refuse_missing(labels, "labels", "a label")
        _refuse_mixed(labels)
    found, codes = np.unique(labels.astype(np.str_), return_inverse=True)
    names = tuple(map(str, found)) if class_names is None else tuple(class_names)
    if class_names is None and n_classes not in (None, len(names)):
        listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise ValueError(
            f"labels holds {len(names)} names ({listed}) for {n_classes} columns, so "
            "nothing says which column is which; wanted class numbers, or scores whose "
            "columns carry the names (a frame, class_names)"
        )
    index = {name: number for number, name in enumerate(names)}
    for name in found:
        if str(name) not in index:
            row = int(np.argmax(labels == name))
            raise ValueError(
                f"labels holds {str(name)!r} in row {row}, which is no class; classes: "
                f"{', '.join(map(str, names[:20]))}"
            )
    return np.array([index[str(name)] for name in found], np.intp)[codes], names


def _refuse_mixed(labels: np.ndarray) -> None:
    other = [row for row, label in enumerate(labels) if not isinstance(label, str)]
    if other:
        raise ValueError(
            f"labels mixes names and other values ({labels[other[0]]!r} in row "
            f"{other[0]}); wanted names in every row, or class numbers in every row"
        )
