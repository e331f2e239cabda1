"""Many strings as two plain arrays, so that a file of numbers can hold them."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile, LargeZipFile

import numpy as np

from coolhead.numerics.classes import (
    column_order,
    encode_beside,
    is_numbered,
    name_labels,
    names_of_text,
    wanted_classes,
)


@dataclass(frozen=True, eq=False)
class PackedStrings:
    """UTF-8 bytes of all strings, one after the other, and where each one starts.

    Attributes
    ----------
    data : (n_bytes,) uint8
    offsets : (n + 1,) int64, rising from 0 to n_bytes
    """

    data: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: slice | np.ndarray) -> "PackedStrings | np.ndarray":
        """A slice stays packed; any other choice of rows is decoded."""
        if not isinstance(index, slice) or index.step not in (None, 1):
            return self.array[index]
        start, stop, _ = index.indices(len(self))
        offsets = self.offsets[start : max(start, stop) + 1]
        return PackedStrings(self.data[offsets[0] : offsets[-1]], offsets - offsets[0])

    @cached_property
    def array(self) -> np.ndarray:
        """(n,) array of str, decoded at the first use."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        return np.array([data[a:b].decode() for a, b in pairwise(ends)], dtype=np.str_)


def pack_strings(strings: np.ndarray) -> PackedStrings:
    """The inverse of `PackedStrings.array`."""
    encoded = [str(text).encode() for text in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return PackedStrings(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)


def check_packed(packed: PackedStrings, name: str) -> PackedStrings:
    """Refuse offsets that do not cut `data` into pieces."""
    offsets = packed.offsets
    whole = offsets.ndim == 1 and len(offsets) and offsets[0] == 0
    if not whole or offsets[-1] != len(packed.data) or (np.diff(offsets) < 0).any():
        raise ValueError(f"{name}: the string offsets are damaged")
    return packed


Columns = dict[str, Any]

# What a parser may say of a broken or forged file, ValueError aside.
PARSER_ERRORS = (
    BadZipFile,
    LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    MemoryError,
    SyntaxError,
    RuntimeError,
)


@dataclass(frozen=True)
class PredictionFile:
    """A prediction file whose layout is known and whose values are not read yet.

    Attributes
    ----------
    path : of the file or folder.
    n_rows : number of rows; None where only reading to the end would tell (CSV).
    widths : columns of each array found, of `logits`, `probabilities`, `features`,
        `labels`, `domains`, `groups`, `ids`; the last four count as 1.
    blocks : gives the arrays of `n` rows after the other, in order, domains by name.
    load : gives the arrays of all rows; domains may be codes into `domain_names`.
    mapped : True where `load` maps the file into memory and reads nothing.
    bytes_per_row : of all arrays together.
    held_bytes : what `blocks` must read at once, however few rows it gives.
    label_names : reads the distinct labels where they are names, "" for none; None
        where labels are class numbers.
    truth : True where labels are booleans.
    by_name : True where integer labels are names of columns, as in tables; else they
        are column numbers.
    """

    path: Path
    n_rows: int | None
    widths: dict[str, int]
    blocks: Callable[[int], Iterator[Columns]]
    load: Callable[[], Columns]
    class_names: tuple[str, ...] | None = None
    domain_names: tuple[str, ...] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    mapped: bool = False
    bytes_per_row: int = 0
    held_bytes: int = 0
    label_names: Callable[[], Iterable[str]] | None = None
    truth: bool = False
    by_name: bool = False


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file is a ValueError of one line that names it."""
    try:
        yield
    except PARSER_ERRORS as error:
        refuse_damaged(path, error)
    except ValueError as error:
        # Names of columns stand in some messages, and may hold anything.
        text = " ".join(str(error).split())[:600]
        raise ValueError(text if str(path) in text else f"{path}: {text}") from error


def refuse_damaged(path: Path, error: BaseException) -> NoReturn:
    """One line for whatever a broken or forged file made a parser say."""
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    raise ValueError(f"{path} cannot be read: {reason}") from error


def check_class_names(file: PredictionFile) -> None:
    """As many names as the scores have columns."""
    for scores in ("logits", "probabilities"):
        wanted = file.widths.get(scores)
        if file.class_names and wanted and len(file.class_names) != wanted:
            raise ValueError(
                f"class_names has {len(file.class_names)} names, the {scores} have "
                f"{wanted} columns; wanted the same"
            )


def refuse_long_text(dtype: np.dtype, name: str, most: int = 4096) -> None:
    """Fixed-width text takes the room of its longest string in every row."""
    length = dtype.itemsize // {"U": 4, "S": 1}.get(dtype.kind, dtype.itemsize + 1)
    if length > most:
        raise ValueError(
            f"{name} has room for {length} characters in every row; wanted at most "
            f"{most}"
        )


SCORES = ("logits", "probabilities")


def with_classes(file: PredictionFile, wanted: Sequence[str] | None) -> PredictionFile:
    """Return the file with its columns in the order wanted and labels as numbers.

    Parameters
    ----------
    file : PredictionFile
        Its `class_names` are those of the columns, if they have any.
    wanted : sequence of str or None
        Names of the classes in the order wanted, such as those of a calibrator.

    An empty name is a row without a label, whose number is -1.
    """
    n_classes = next((file.widths[s] for s in SCORES if s in file.widths), None)
    own, order = file.class_names, None
    names = wanted_classes(own, wanted)
    if names is not None and n_classes is not None:
        order = column_order(own, names, n_classes)
    if file.label_names is not None:
        found = [name for name in file.label_names() if name]
        if found:
            names = names_of_text(
                found, None, n_classes, names, own=own, counted=wanted is None
            )
    counted = names is None or (file.by_name and is_numbered(names))
    kept = file.label_names is None and not file.truth
    # Beside features alone nothing but labels can be moved, and classes may be absent.
    moved = kept and n_classes is None and None not in (own, names) and own != names
    if moved:
        n_classes = len(names or ())
    if order is None and kept and not moved and (counted or not file.by_name):
        return replace(file, class_names=None if counted else names)

    def arranged(columns: Columns) -> Columns:
        changed = {}
        if "labels" in columns:
            labels, beside = columns["labels"], own
            if moved:
                labels, beside = name_labels(labels, own), None
            settings: Any = {"unlabelled": True, "numbers": not file.by_name}
            changed["labels"], _ = encode_beside(
                labels, n_classes, len(labels), beside, names, **settings
            )
        for name in columns.keys() & set(SCORES) if order else ():
            changed[name] = np.asarray(columns[name])[:, order]
        return columns | changed

    def blocks(n_rows: int) -> Iterator[Columns]:
        return map(arranged, file.blocks(n_rows))

    return replace(
        file,
        blocks=blocks,
        load=lambda: arranged(file.load()),
        mapped=file.mapped and order is None,
        class_names=None if counted else names,
        label_names=None,
    )
