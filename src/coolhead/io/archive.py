"""Several archives become the columns of one."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coolhead.io.files import check_metadata
from coolhead.io.predictions import PackedStrings
from coolhead.io.safetensors import write_archive
from coolhead.numerics.checks import (
    as_logits,
    check_domains,
    check_finite,
    check_logit_values,
    name_array,
    readable,
)
from coolhead.numerics.classes import (
    check_names,
    column_order,
    decode_bytes,
    encode_labels,
    is_numbered,
    name_labels,
    order_columns,
)
from coolhead.plugins import suggest


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


def check_tags(values: Any, n_rows: int, name: str) -> np.ndarray:
    """(n,) integers or strings that name rows or groups of rows."""
    array = decode_bytes(name_array(values, name))
    if array.ndim != 1 or array.dtype.kind not in "iuUO":
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
    array = name_array(domains, "domains")
    if array.ndim == 1:
        check_length(len(array), n_rows, "domains")
    array = decode_bytes(check_domains(array, n_rows, "domains"))
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


def check_columns(
    *,
    logits: Any = None,
    features: Any = None,
    labels: Any = None,
    domains: Any = None,
    groups: Any = None,
    ids: Any = None,
    class_names: Any = None,
    domain_names: Any = None,
    metadata: Any = None,
) -> dict[str, Any]:
    """Everything but finiteness, which takes a pass over the large arrays."""
    given, listed = logits, class_names is not None
    logits, features, n_rows = _check_values(logits, features)
    if class_names is not None:
        class_names = check_names(class_names, "class_names")
    n_classes = count_classes(logits, class_names)
    if logits is not None:
        logits, class_names = order_columns(logits, given, class_names)
    codes, names = encode_domains(domains, domain_names, n_rows)
    if labels is not None:
        # Beside a list of names, as in files, integers are places in that list.
        labels, class_names = encode_labels(
            labels,
            n_classes,
            n_rows,
            class_names,
            numbers=listed,
            counted=not listed,
        )
    if not listed and class_names is not None and is_numbered(class_names):
        class_names = None  # numbers say no more than the columns themselves
    return {
        "logits": logits,
        "features": features,
        "labels": labels,
        "domain_codes": codes,
        "domain_names": names,
        "class_names": class_names,
        "metadata": check_metadata(metadata),
        "_groups": _check_tags(groups, n_rows, "groups"),
        "_ids": _check_tags(ids, n_rows, "ids"),
    }


def count_classes(
    logits: np.ndarray | None, class_names: tuple[str, ...] | None
) -> int | None:
    """Columns of the logits, else the number of class names, else unknown."""
    if logits is None:
        return None if class_names is None else len(class_names)
    if class_names is not None and len(class_names) != logits.shape[1]:
        raise ValueError(
            f"class_names has {len(class_names)} names, the logits have "
            f"{logits.shape[1]} columns; wanted the same"
        )
    return logits.shape[1]


def _check_values(
    logits: Any, features: Any
) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """Types and shapes of logits and features, and the number of rows."""
    if features is not None:
        features = check_matrix(features, "features")
    if logits is not None:
        logits = as_logits(logits)
        if features is not None:
            check_length(len(features), len(logits), "features")
        return logits, features, len(logits)
    if features is None:
        raise ValueError("logits and features are both missing; wanted at least one")
    return logits, features, len(features)


def _check_tags(
    values: Any, n_rows: int, name: str
) -> np.ndarray | PackedStrings | None:
    if values is None:
        return None
    if isinstance(values, PackedStrings):
        check_length(len(values), n_rows, name)
        return values
    return check_tags(values, n_rows, name)


ROW_COLUMNS = ("logits", "features", "labels", "domain_codes", "_groups", "_ids")


@dataclass(init=False, frozen=True, eq=False, repr=False)
class DomainArchive:
    """Logits, features, labels and domains that belong together, row by row.

    Parameters
    ----------
    logits : (n, k) real, or (n,) scores of a binary classifier; may be absent.
    features : (n, d) real; may be absent, but not both.
    labels : (n,) class indices 0..k-1, or names: of `class_names` or, without, sorted
        as in scikit-learn; absent for unlabelled rows.
    domains : (n,) names, or integers: codes into `domain_names` where that is given,
        names of their own otherwise. Absent: one domain called "all".
    groups : (n,) strings or integers; rows of one group never straddle a split.
    ids : (n,) strings or integers that say which sample a row is.
    class_names, domain_names : lists of distinct strings.
    metadata : dict of JSON values, free to use.

    The arrays may be memory-mapped; `select`, `rows` and `blocks` give archives too.

    Examples
    --------
    >>> import coolhead as ch
    >>> logits = [[2.0, 0.0], [0.5, 1.0], [3.0, 1.0]]
    >>> data = ch.DomainArchive(logits, labels=["cat", "dog", "cat"], domains=[7, 7, 8])
    >>> data
    DomainArchive(3 rows, 2 classes, logits 2 x float64; 7 2, 8 1)
    >>> data.class_names, data.select(8).logits
    (('cat', 'dog'), array([[3., 1.]]))
    """

    logits: np.ndarray | None
    features: np.ndarray | None
    labels: np.ndarray | None
    domain_codes: np.ndarray
    domain_names: tuple[str, ...]
    class_names: tuple[str, ...] | None
    metadata: dict[str, Any]
    _groups: np.ndarray | PackedStrings | None
    _ids: np.ndarray | PackedStrings | None

    def __init__(
        self,
        logits: Any = None,
        features: Any = None,
        labels: Any = None,
        domains: Any = None,
        *,
        groups: Any = None,
        ids: Any = None,
        class_names: Sequence[str] | None = None,
        domain_names: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        columns = check_columns(
            logits=logits,
            features=features,
            labels=labels,
            domains=domains,
            groups=groups,
            ids=ids,
            class_names=class_names,
            domain_names=domain_names,
            metadata=metadata,
        )
        self._fill(**columns)
        self._check_values("logits", "features")

    @classmethod
    def _from_columns(cls, **columns: Any) -> Self:
        """An archive of checked columns: no value is read again."""
        archive = object.__new__(cls)
        archive._fill(**columns)
        return archive

    def _fill(self, **columns: Any) -> None:
        for name, value in columns.items():
            object.__setattr__(self, name, value)

    def _check_values(self, *names: str) -> None:
        for name in names:
            matrix = getattr(self, name)
            if matrix is not None:
                check_values(matrix, name)

    @property
    def domains(self) -> np.ndarray:
        """(n,) array of domain names."""
        return np.array(self.domain_names)[self.domain_codes]

    @property
    def groups(self) -> np.ndarray | None:
        """(n,) strings or integers, or None."""
        return _decoded(self._groups)

    @property
    def ids(self) -> np.ndarray | None:
        """(n,) strings or integers, or None."""
        return _decoded(self._ids)

    @property
    def n_classes(self) -> int | None:
        """Columns of the logits, else the number of class names, else unknown."""
        return count_classes(self.logits, self.class_names)

    def __len__(self) -> int:
        return len(self.domain_codes)

    def __repr__(self) -> str:
        parts = [f"{len(self)} rows"]
        if self.n_classes is not None:
            parts.append(f"{self.n_classes} classes")
        for name in ("logits", "features"):
            matrix = getattr(self, name)
            if matrix is not None:
                parts.append(f"{name} {matrix.shape[1]} x {matrix.dtype}")
        sizes = ", ".join(f"{name} {n}" for name, n in self.domain_sizes().items())
        return f"DomainArchive({', '.join(parts)}; {sizes})"

    def domain_sizes(self) -> dict[str, int]:
        """Rows of every named domain, zero included."""
        counts = np.bincount(self.domain_codes, minlength=len(self.domain_names))
        return dict(zip(self.domain_names, counts.tolist(), strict=True))

    def rows(self, index: Any) -> Self:
        """The rows of a slice, a boolean mask or an array of row numbers."""
        index = _row_index(index, len(self))
        columns = vars(self).copy()
        for name in ROW_COLUMNS:
            if columns[name] is not None:
                columns[name] = columns[name][index]
        return self._from_columns(**columns)

    def select(self, *domains: str | int) -> Self:
        """The rows of the named domains, in their present order."""
        names = _check_selection(domains, self.domain_sizes())
        codes = [code for code, name in enumerate(self.domain_names) if name in names]
        found = np.flatnonzero(np.isin(self.domain_codes, codes))
        # A run of neighbouring rows stays a view of the mapped file.
        neighbours = found[-1] - found[0] + 1 == len(found)
        part = self.rows(slice(found[0], found[-1] + 1) if neighbours else found)
        part._fill(
            domain_names=tuple(self.domain_names[code] for code in codes),
            domain_codes=np.searchsorted(codes, part.domain_codes).astype(np.int32),
        )
        return part

    def blocks(self, n_rows: int = 8192) -> Iterator[Self]:
        """The archive in pieces of at most `n_rows` rows, as views."""
        if n_rows < 1:
            raise ValueError(f"n_rows is {n_rows}; wanted at least 1")
        for start in range(0, len(self), n_rows):
            yield self.rows(slice(start, start + n_rows))

    def in_class_order(self, classes: Sequence[str] | None) -> Self:
        """Return the same rows with columns in another order of classes.

        Nothing changes where either order is not known. An archive of features alone
        may lack some of the classes.

        Parameters
        ----------
        classes : sequence of str or None
            Names of the classes in the order wanted.
        """
        own, labels = self.class_names, self.labels
        if own is None or classes is None:
            return self
        names = tuple(classes)
        if self.logits is None:
            if names == own:
                return self
            labels = None if labels is None else name_labels(labels, own)
            return self.replace(labels=labels, class_names=names)
        order = column_order(own, names, self.logits.shape[1])
        if order is None:
            return self
        changes: dict[str, Any] = {"class_names": [own[place] for place in order]}
        changes["logits"] = np.asarray(self.logits)[:, order]
        if labels is not None:
            changes["labels"] = np.argsort(order)[labels]
        return self.replace(**changes)

    def replace(self, **changes: Any) -> Self:
        """The same archive with some columns changed, by the names of `__init__`."""
        present = {name: getattr(self, name) for name in ("logits", "features")}
        present |= {"labels": self.labels, "groups": self._groups, "ids": self._ids}
        present |= {"class_names": self.class_names, "metadata": self.metadata}
        if "domains" not in changes:
            present["domains"] = self.domain_codes
            present["domain_names"] = self.domain_names
        archive = self._from_columns(**check_columns(**present | changes))
        archive._check_values(*{"logits", "features"}.intersection(changes))
        return archive

    @classmethod
    def concat(cls, archives: Sequence[Self]) -> Self:
        """The rows of several archives, which must hold the same columns."""
        return cls._from_columns(**check_columns(**join_columns(archives)))

    def save(self, path: str | os.PathLike) -> None:
        """Write one safetensors file; it appears whole or not at all."""
        write_archive(vars(self), path)


def _decoded(column: np.ndarray | PackedStrings | None) -> np.ndarray | None:
    return column.array if isinstance(column, PackedStrings) else column


def _check_selection(domains: Sequence[Any], sizes: dict[str, int]) -> set[str]:
    """The wanted names, each of which must have rows."""
    if not domains:
        raise ValueError("select() was given no domain; wanted at least one name")
    for name in domains:
        if not isinstance(name, str | int | np.integer):
            raise ValueError(
                f"select() was given {name!r}; wanted names one by one, as in "
                "select('a', 'b')"
            )
        if not sizes.get(str(name)):
            found = "has no rows" if str(name) in sizes else "is not in the archive"
            hint = suggest(str(name), [known for known, n in sizes.items() if n])
            raise ValueError(f"domain {str(name)!r} {found}{hint}")
    return {str(name) for name in domains}


def _row_index(index: Any, n_rows: int) -> slice | np.ndarray:
    if isinstance(index, slice):
        return index
    array = np.asarray(index)
    if array.dtype.kind == "b" and array.shape != (n_rows,):
        raise ValueError(
            f"the row mask has shape {array.shape}; wanted ({n_rows},), one per row"
        )
    if array.ndim != 1 or (array.dtype.kind not in "biu" and array.size):
        raise ValueError(
            f"rows() was given shape {array.shape} and type {array.dtype}; wanted a "
            "slice, a boolean mask or row numbers"
        )
    return array if array.size else array.astype(np.intp)
