"""Everything a calibrator needs to know about a classifier's outputs, row by row."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coolhead.archive.checks import check_values
from coolhead.archive.columns import check_columns, count_classes
from coolhead.archive.formats.safetensors import write_archive
from coolhead.archive.joining import join_columns
from coolhead.archive.strings import PackedStrings
from coolhead.suggest import suggest

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
