"""Arrays inside files, read in order without mapping or holding the whole file.

Mapped pages count as memory of the process, so a stream reads instead of mapping.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from coolhead.predictions.opened import Columns, OpenedFile

SYNONYMS = {
    "logits": "logits",
    "probabilities": "probabilities",
    "probs": "probabilities",
    "features": "features",
    "labels": "labels",
    "label": "labels",
    "domains": "domains",
    "domain": "domains",
    "domain_codes": "domains",
}
KINDS = {
    "logits": ("fiu", (1, 2)),
    "probabilities": ("fiu", (1, 2)),
    "features": ("fiu", (2,)),
    "labels": ("iub", (1,)),
    "domains": ("iuUS", (1,)),
}


@dataclass(frozen=True)
class ArraySource:
    """One array of a file: its type, its shape and how to get at its bytes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran_order: bool
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    whole: Callable[[], np.ndarray]

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Arrays of `n_rows` rows after the other."""
        if self.fortran_order:
            # Rows are scattered over the file: only the mapped array gives them.
            whole = self.whole()
            yield from (whole[s : s + n_rows] for s in range(0, len(whole), n_rows))
            return
        width = math.prod(self.shape[1:])
        with self.open() as stream:
            for start in range(0, self.shape[0], n_rows):
                shape = (min(n_rows, self.shape[0] - start), *self.shape[1:])
                wanted = shape[0] * width * self.dtype.itemsize
                content = stream.read(wanted)
                if len(content) != wanted:
                    raise ValueError(
                        f"the file ends in row {start + len(content) // wanted} of "
                        f"{self.shape[0]}"
                    )
                yield np.frombuffer(content, self.dtype).reshape(shape)


@contextmanager
def bytes_after(path: Path, offset: int) -> Iterator[IO[bytes]]:
    """The bytes of a file after the first `offset`."""
    with open(path, "rb") as stream:
        stream.seek(offset)
        yield stream


def open_arrays(
    path: Path,
    sources: dict[str, ArraySource],
    domain_names: Any = None,
    class_names: Any = None,
) -> OpenedFile:
    """A file of arrays under the known names; other arrays are left alone."""
    known: dict[str, ArraySource] = {}
    for name, source in sources.items():
        column = SYNONYMS.get(name)
        if column is None:
            continue
        if column in known:
            raise ValueError(f"{path} holds {column} twice, also as {name}; wanted one")
        known[column] = _checked(path, column, source)
    n_rows = _common_length(path, known)
    widths = {name: s.shape[1] if len(s.shape) == 2 else 1 for name, s in known.items()}
    for scores in ("logits", "probabilities"):
        if scores in known and len(known[scores].shape) == 1:
            widths[scores] = 2
    names = None if domain_names is None else np.array(domain_names, np.str_)

    def blocks(step: int) -> Iterator[Columns]:
        parts = [source.blocks(step) for source in known.values()]
        for arrays in zip(*parts, strict=True):
            yield _named(dict(zip(known, arrays, strict=True)), names)

    def load() -> Columns:
        return _named({name: s.whole() for name, s in known.items()}, names)

    listed = None if class_names is None else tuple(str(name) for name in class_names)
    return OpenedFile(path, n_rows, widths, listed, blocks, load)


def _checked(path: Path, name: str, source: ArraySource) -> ArraySource:
    kinds, dimensions = KINDS[name]
    if source.dtype.kind not in kinds or len(source.shape) not in dimensions:
        wanted = " or ".join("(n,)" if d == 1 else "(n, k)" for d in dimensions)
        raise ValueError(
            f"{path}: {name} has type {source.dtype} and shape {source.shape}; wanted "
            f"{'names or integers' if name == 'domains' else 'numbers'} of shape "
            f"{wanted}"
        )
    return source


def _common_length(path: Path, known: dict[str, ArraySource]) -> int:
    lengths = {name: source.shape[0] for name, source in known.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise ValueError(f"{path}: rows differ ({listed}); wanted the same number")
    return next(iter(lengths.values()), 0)


def _named(columns: Columns, domain_names: np.ndarray | None) -> Columns:
    """Native byte order, and names in place of domain codes."""
    columns = {name: _native(array) for name, array in columns.items()}
    codes = columns.get("domains")
    if codes is None or domain_names is None or codes.dtype.kind not in "iu":
        return columns
    if codes.size and (codes.min() < 0 or codes.max() >= len(domain_names)):
        raise ValueError(
            f"domains holds a code outside 0..{len(domain_names) - 1}; there are "
            f"{len(domain_names)} domain_names"
        )
    return columns | {"domains": domain_names[codes]}


def _checked_text(array: np.ndarray) -> np.ndarray:
    """Refuse numbers that are no characters: Python would fail at their first use."""
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    codes = native.view(np.uint32)
    if codes.size and codes.max() > sys.maxunicode:
        raise ValueError("domains holds bytes that are no text")
    return native


def _native(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "U":
        return _checked_text(array)
    if array.dtype.isnative and array.dtype.itemsize <= 8:
        return array
    wanted = np.float64 if array.dtype.kind == "f" else np.int64
    return array.astype(wanted if array.dtype.itemsize >= 8 else array.dtype.type)
