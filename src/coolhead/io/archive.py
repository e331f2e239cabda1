"""Logits, features, labels and domains that belong together: `DomainArchive`."""

import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coolhead.io.files import check_metadata
from coolhead.io.predictions import check_class_count
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

MATRICES = ("logits", "features")
ROW_COLUMNS = (*MATRICES, "labels", "domain_codes", "groups", "ids")


@dataclass(init=False, frozen=True, eq=False, repr=False)
class DomainArchive:
    """Logits, features, labels and domains that belong together, row by row.

    The arrays may be memory-mapped; `select`, `rows` and `blocks` return archives, too.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes) or (n_samples,), default=None
        Logits, or the scores of a binary classifier.
    features : array-like of shape (n_samples, n_features), default=None
        Features; logits or features must be given.
    labels : array-like of shape (n_samples,), default=None
        Class indices, or names: of `class_names` or, without, sorted as in
        scikit-learn. None for unlabelled rows.
    domains : array-like of shape (n_samples,), default=None
        Names, or integers: codes into `domain_names` if that is given, names of their
        own otherwise. None for one domain, "all".
    groups : array-like of shape (n_samples,), default=None
        Strings or integers; a split never divides the rows of one group.
    ids : array-like of shape (n_samples,), default=None
        Strings or integers that name the samples.
    class_names : sequence of str, default=None
        Distinct names of the classes, in the order of the logits.
    domain_names : sequence of str, default=None
        Distinct names of the domains.
    metadata : dict, default=None
        JSON values for any use.
    check : bool, default=True
        Read logits and features to refuse NaN and infinity.

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
    groups: np.ndarray | None
    ids: np.ndarray | None
    class_names: tuple[str, ...] | None
    metadata: dict[str, Any]

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
        check: bool = True,
    ) -> None:
        given, listed = logits, class_names is not None
        logits, features, n_rows = _check_matrices(logits, features)
        names = check_names(class_names, "class_names") if listed else None
        n_classes = _count_classes(logits, names)
        if logits is not None:
            logits, names = order_columns(logits, given, names)
        codes, domain_names = _encode_domains(domains, domain_names, n_rows)
        if labels is not None:
            # Beside a list of names, as in files, integers are positions in that list.
            kinds: Any = {"numbers": listed, "counted": not listed}
            labels, names = encode_labels(labels, n_classes, n_rows, names, **kinds)
        if not listed and names is not None and is_numbered(names):
            names = None  # numbers say no more than the columns themselves
        vars(self).update(
            logits=logits,
            features=features,
            labels=labels,
            domain_codes=codes,
            domain_names=domain_names,
            groups=None if groups is None else check_tags(groups, n_rows, "groups"),
            ids=None if ids is None else check_tags(ids, n_rows, "ids"),
            class_names=names,
            metadata=check_metadata(metadata),
        )
        if check:
            self.check_values()

    def check_values(self) -> None:
        """Refuse NaN and infinity among logits and features."""
        for name in MATRICES:
            matrix = getattr(self, name)
            if matrix is not None:
                check_values(matrix, name)

    @property
    def domains(self) -> np.ndarray:
        """(n,) array of domain names."""
        return np.array(self.domain_names)[self.domain_codes]

    @property
    def n_classes(self) -> int | None:
        """Columns of the logits, else the number of class names, else unknown."""
        return _count_classes(self.logits, self.class_names)

    def __len__(self) -> int:
        return len(self.domain_codes)

    def __repr__(self) -> str:
        parts = [f"{len(self)} rows"]
        if self.n_classes is not None:
            parts.append(f"{self.n_classes} classes")
        for name in MATRICES:
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
        """Return the rows of a slice, a boolean mask or an array of row numbers."""
        index = _row_index(index, len(self))
        part = copy(self)
        for name in ROW_COLUMNS:
            column = getattr(self, name)
            if column is not None:
                vars(part)[name] = column[index]
        return part

    def select(self, *domains: str | int) -> Self:
        """Return the rows of the named domains, in their present order."""
        names = _check_selection(domains, self.domain_sizes())
        codes = [code for code, name in enumerate(self.domain_names) if name in names]
        found = np.flatnonzero(np.isin(self.domain_codes, codes))
        # Neighbouring rows stay a view of the mapped file.
        neighbours = found[-1] - found[0] + 1 == len(found)
        part = self.rows(slice(found[0], found[-1] + 1) if neighbours else found)
        vars(part).update(
            domain_names=tuple(self.domain_names[code] for code in codes),
            domain_codes=np.searchsorted(codes, part.domain_codes).astype(np.int32),
        )
        return part

    def blocks(self, n_rows: int = 8192) -> Iterator[Self]:
        """Yield the archive in pieces of at most `n_rows` rows, as views."""
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
        changes: dict[str, Any] = {"class_names": [own[column] for column in order]}
        changes["logits"] = np.asarray(self.logits)[:, order]
        if labels is not None:
            changes["labels"] = np.argsort(order)[labels]
        return self.replace(**changes)

    def replace(self, **changes: Any) -> Self:
        """Return the archive with some columns changed, by the names of `__init__`."""
        present: dict[str, Any] = vars(self).copy()
        present["domains"] = present.pop("domain_codes")
        if "domains" in changes:
            del present["domain_names"]
        present["check"] = bool(changes.keys() & set(MATRICES))
        return type(self)(**present | changes)

    @classmethod
    def concat(cls, archives: Sequence[Self]) -> Self:
        """Return the rows of several archives, which must hold the same columns.

        Domains of the same name are one domain. Metadata is kept if it is the same in
        all archives.
        """
        archives = list(archives)
        if not archives:
            raise ValueError("concat() was given no archive; wanted at least one")
        first = archives[0]
        for number, part in enumerate(archives):
            if part.class_names != first.class_names:
                raise ValueError(
                    f"class_names of archive {number} differ from those of archive 0; "
                    "wanted the same names in the same order"
                )
        columns = {n: _join(archives, n) for n in ROW_COLUMNS if n != "domain_codes"}
        domains = list(dict.fromkeys(n for part in archives for n in part.domain_names))
        index = {name: code for code, name in enumerate(domains)}
        codes = [
            np.array([index[n] for n in part.domain_names])[part.domain_codes]
            for part in archives
        ]
        return cls(
            **columns,
            domains=np.concatenate(codes),
            domain_names=domains,
            class_names=first.class_names,
            metadata={
                key: value
                for key, value in first.metadata.items()
                if all(key in p.metadata and p.metadata[key] == value for p in archives)
            },
            check=False,
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write one safetensors file; it appears whole or not at all."""
        write_archive(vars(self), path)


def _join(archives: Sequence[DomainArchive], name: str) -> np.ndarray | None:
    columns = [getattr(part, name) for part in archives]
    missing = [number for number, column in enumerate(columns) if column is None]
    if len(missing) == len(columns):
        return None
    if missing:
        raise ValueError(
            f"archive {missing[0]} has no {name}, others have; wanted the same columns "
            f"in all: drop them with replace({name}=None)"
        )
    first = columns[0]
    for number, column in enumerate(columns):
        if column.shape[1:] != first.shape[1:]:
            raise ValueError(
                f"{name} of archive {number} has {column.shape[1]} columns, archive 0 "
                f"has {first.shape[1]}; wanted the same"
            )
        # Concatenation would turn integers silently into strings.
        if (column.dtype.kind == "U") != (first.dtype.kind == "U"):
            raise ValueError(
                f"{name} of archive {number} has type {column.dtype}, archive 0 has "
                f"{first.dtype}; wanted both strings or both integers"
            )
    return np.concatenate(columns)


def _count_classes(
    logits: np.ndarray | None, names: tuple[str, ...] | None
) -> int | None:
    """Return the columns of the logits, else the number of names, else None."""
    if logits is None:
        return None if names is None else len(names)
    check_class_count(names, logits.shape[1])
    return logits.shape[1]


def _check_matrices(
    logits: Any, features: Any
) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """Check types and shapes of logits and features, and count the rows."""
    if features is not None:
        features = _check_matrix(features, "features")
    if logits is not None:
        logits = as_logits(logits)
        if features is not None:
            _check_length(len(features), len(logits), "features")
        return logits, features, len(logits)
    if features is None:
        raise ValueError("logits and features are both missing; wanted at least one")
    return logits, features, len(features)


def _check_matrix(values: Any, name: str) -> np.ndarray:
    """Return a real (n, d) array in its own type, without reading the values."""
    array = np.asanyarray(readable(values, name))
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} has type {array.dtype}; wanted real numbers")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; wanted (n, d), not empty")
    return array


def check_values(array: np.ndarray, name: str, first_row: int = 0) -> None:
    """Refuse NaN and infinity, also where they stand for empty cells of a table.

    Files and archives read the values of large arrays nowhere else.
    """
    check = check_logit_values if name == "logits" and array.ndim == 2 else check_finite
    check(array, name, first_row)


def _check_length(length: int, n_rows: int, name: str) -> None:
    if length != n_rows:
        raise ValueError(
            f"{name} has {length} rows, the archive has {n_rows}; wanted the same"
        )


def check_tags(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Return (n,) integers or strings that name rows, domains or groups of rows."""
    array = name_array(values, name)
    if array.ndim == 1:
        _check_length(len(array), n_rows, name)
    array = decode_bytes(check_domains(array, n_rows, name))
    if array.dtype.kind not in "iuUT":
        raise ValueError(f"{name} has type {array.dtype}; wanted strings or integers")
    return array


def _encode_domains(
    domains: Any, domain_names: Sequence[str] | None, n_rows: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return codes (n,) and the names they index.

    Integers are codes if `domain_names` is given and names of their own otherwise.
    Without `domains` there is one domain, "all".
    """
    names = None if domain_names is None else check_names(domain_names, "domain_names")
    if domains is None:
        if names is not None and len(names) != 1:
            raise ValueError(
                f"domains is missing, domain_names has {len(names)} names; wanted one "
                "domain per row"
            )
        return np.zeros(n_rows, np.int32), names or ("all",)
    array = check_tags(domains, n_rows, "domains")
    if names is not None and array.dtype.kind in "iu":
        return check_codes(array, names), names
    found, first, codes = np.unique(array, return_index=True, return_inverse=True)
    found = tuple(str(name) for name in found)
    if names is None:
        return codes.astype(np.int32), found
    index = {name: code for code, name in enumerate(names)}
    for name, row in zip(found, first, strict=True):
        if name not in index:
            raise ValueError(
                f"domains holds {name!r} in row {row}, which is not in domain_names"
                f"{suggest(name, names)}"
            )
    return np.array([index[name] for name in found], np.int32)[codes], names


def check_codes(codes: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Refuse integers that index none of the domain names."""
    wrong = (codes < 0) | (codes >= len(names))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"domains holds {codes[row]} in row {row}; wanted 0..{len(names) - 1}, as "
            f"there are {len(names)} domain_names"
        )
    return codes.astype(np.int32)


def _check_selection(domains: Sequence[Any], sizes: dict[str, int]) -> set[str]:
    """Return the wanted names, each of which must have rows."""
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
