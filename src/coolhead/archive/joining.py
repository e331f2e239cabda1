"""Several archives become the columns of one."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def join_columns(archives: Sequence[Any]) -> dict[str, Any]:
    """Columns of all rows, one archive after the other.

    Domains of the same name are one domain. Metadata survives where all agree.
    """
    archives = list(archives)
    if not archives:
        raise ValueError("concat() was given no archive; wanted at least one")
    joined: dict[str, Any] = {
        name: _join(archives, name)
        for name in ("logits", "features", "labels", "groups", "ids")
    }
    names = list(dict.fromkeys(n for part in archives for n in part.domain_names))
    joined["domain_names"] = names
    joined["domains"] = np.concatenate([_recode(part, names) for part in archives])
    joined["class_names"] = _same_class_names(archives)
    first, *others = [part.metadata for part in archives]
    joined["metadata"] = {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in others)
    }
    return joined


def _recode(archive: Any, names: list[str]) -> np.ndarray:
    index = np.array([names.index(name) for name in archive.domain_names], np.int32)
    return index[archive.domain_codes]


def _same_class_names(archives: list[Any]) -> tuple[str, ...] | None:
    first = archives[0].class_names
    for number, part in enumerate(archives):
        if part.class_names != first:
            raise ValueError(
                f"class_names of archive {number} differ from those of archive 0; "
                "wanted the same names in the same order"
            )
    return first


def _join(archives: list[Any], name: str) -> np.ndarray | None:
    columns = [getattr(part, name) for part in archives]
    missing = [number for number, column in enumerate(columns) if column is None]
    if len(missing) == len(columns):
        return None
    if missing:
        raise ValueError(
            f"archive {missing[0]} has no {name}, others have; wanted the same columns "
            f"in all: drop them with replace({name}=None)"
        )
    _check_alike(columns, name)
    return np.concatenate(columns)


def _check_alike(columns: list[np.ndarray], name: str) -> None:
    """Concatenation would turn integers silently into strings."""
    first = columns[0]
    for number, column in enumerate(columns):
        if column.shape[1:] != first.shape[1:]:
            raise ValueError(
                f"{name} of archive {number} has {column.shape[1]} columns, archive 0 "
                f"has {first.shape[1]}; wanted the same"
            )
        if (column.dtype.kind == "U") != (first.dtype.kind == "U"):
            raise ValueError(
                f"{name} of archive {number} has type {column.dtype}, archive 0 has "
                f"{first.dtype}; wanted both strings or both integers"
            )
