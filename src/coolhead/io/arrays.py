"""Arrays inside files, read in order without mapping or holding the whole file.

Mapped pages count as memory of the process, so a stream reads instead of mapping.
"""

import json
import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

import numpy as np

from coolhead.io.predictions import Columns, PredictionFile, refuse_long_text
from coolhead.numerics.classes import distinct_text, join_text
from coolhead.plugins import suggest

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
    "groups": "groups",
    "ids": "ids",
    "paths": "ids",
}
NAME_LISTS = ("class_names", "domain_names")
# Kinds of NumPy types and numbers of dimensions.
KINDS = {
    "logits": ("fiu", (1, 2)),
    "probabilities": ("fiu", (1, 2)),
    "features": ("fiu", (2,)),
    "labels": ("iubUS", (1,)),
    "domains": ("iuUS", (1,)),
    "groups": ("iuUS", (1,)),
    "ids": ("iuUS", (1,)),
}
TEXT_BYTES_PER_PIECE = 2**22
MOST_BYTES_BY_COLUMNS = 2**28


@dataclass(frozen=True)
class ArraySource:
    """One array of a file: its type, its shape and how to get at its bytes.

    scattered : its rows do not follow each other in the file.
    mapped : `whole` maps the file into memory and reads nothing.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    scattered: bool
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    whole: Callable[[], np.ndarray]
    mapped: bool = True

    @property
    def bytes_per_row(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        """Arrays of `n_rows` rows after the other."""
        if self.scattered:
            self._check_holdable()
            whole = self.whole()
            yield from (whole[s : s + n_rows] for s in range(0, len(whole), n_rows))
            return
        with self.open() as stream:
            for start in range(0, self.shape[0], n_rows):
                shape = (min(n_rows, self.shape[0] - start), *self.shape[1:])
                wanted = shape[0] * self.bytes_per_row
                content = stream.read(wanted)
                if len(content) != wanted:
                    found = start + len(content) // max(1, self.bytes_per_row)
                    raise ValueError(f"the file ends in row {found} of {self.shape[0]}")
                yield np.frombuffer(content, self.dtype).reshape(shape)
            # A zip file compares its checksum when it is read to the end.
            stream.read(1)

    def _check_holdable(self) -> None:
        size = self.shape[0] * self.bytes_per_row
        if not self.mapped and size > MOST_BYTES_BY_COLUMNS:
            raise ValueError(
                f"an array of shape {self.shape} lies column by column (Fortran order) "
                f"in a zip file and takes {size} bytes, which can only be read as a "
                "whole; wanted rows: save it with numpy.ascontiguousarray"
            )

    def load(self) -> np.ndarray:
        """All rows; text in the width that it needs, not that the file leaves it."""
        if self.dtype.kind not in "US" or len(self.shape) != 1:
            return native(self.whole())
        step = max(1, TEXT_BYTES_PER_PIECE // self.dtype.itemsize)
        parts = [_narrow(native(part)) for part in self.blocks(step)]
        return np.concatenate(parts) if parts else np.empty(0, np.str_)


def array_in_file(
    path: Path,
    dtype: np.dtype,
    shape: tuple[int, ...],
    offset: int,
    *,
    by_columns: bool = False,
) -> ArraySource:
    """An array that lies plain in a file, after its first `offset` bytes."""

    def whole() -> np.ndarray:
        """The array without reading it; the system loads the pages that are used."""
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype, "r", offset, shape, "F" if by_columns else "C")

    start = partial(_bytes_after, path, offset)
    return ArraySource(dtype, shape, by_columns, start, whole)


@contextmanager
def _bytes_after(path: Path, offset: int) -> Iterator[IO[bytes]]:
    with open(path, "rb") as stream:
        stream.seek(offset)
        yield stream


def open_arrays(
    path: Path,
    sources: dict[str, ArraySource],
    *,
    class_names: Any = None,
    domain_names: Any = None,
    metadata: dict[str, Any] | None = None,
) -> PredictionFile:
    """A file of arrays under the known names; other arrays are left alone."""
    known: dict[str, ArraySource] = {}
    for name, source in sources.items():
        column = SYNONYMS.get(name)
        if column is None:
            continue
        if column in known:
            raise ValueError(f"{path} holds {column} twice, also as {name}; wanted one")
        known[column] = _checked(path, column, source)
    listed = _name_list(class_names, "class_names")
    names = _name_list(domain_names, "domain_names")
    table = None if names is None else np.array(names, np.str_)

    def blocks(step: int) -> Iterator[Columns]:
        parts = [source.blocks(step) for source in known.values()]
        for arrays in zip(*parts, strict=True):
            columns = zip(known, map(native, arrays), strict=True)
            yield _named(dict(columns), table)

    return PredictionFile(
        path,
        _common_length(path, known),
        _widths(known),
        blocks,
        lambda: {name: source.load() for name, source in known.items()},
        class_names=listed,
        domain_names=names,
        metadata=metadata or {},
        mapped=all(source.mapped for source in known.values()),
        bytes_per_row=max(1, sum(s.bytes_per_row for s in known.values())),
        label_names=_label_names(known.get("labels")),
        truth="labels" in known and known["labels"].dtype.kind == "b",
    )


def _checked(path: Path, name: str, source: ArraySource) -> ArraySource:
    kinds, dimensions = KINDS[name]
    if source.dtype.kind not in kinds or len(source.shape) not in dimensions:
        wanted = " or ".join("(n,)" if d == 1 else "(n, k)" for d in dimensions)
        raise ValueError(
            f"{path}: {name} has type {source.dtype} and shape {source.shape}; wanted "
            f"{'names or integers' if 'U' in kinds else 'numbers'} of shape {wanted}"
        )
    refuse_long_text(source.dtype, name)
    return source


def _label_names(labels: ArraySource | None) -> Callable[[], Iterable[str]] | None:
    """How the distinct labels are found where they are names."""
    if labels is None or labels.dtype.kind not in "US":
        return None
    step = max(1, TEXT_BYTES_PER_PIECE // max(1, labels.dtype.itemsize))
    return lambda: join_text(
        distinct_text(native(part)) for part in labels.blocks(step)
    )


def _name_list(names: Any, argument: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    array = native(np.asarray(names))
    if array.ndim != 1:
        raise ValueError(f"{argument} has shape {array.shape}; wanted a list of names")
    return tuple(str(name) for name in array.tolist())


def _widths(known: dict[str, ArraySource]) -> dict[str, int]:
    widths = {name: s.shape[1] if len(s.shape) == 2 else 1 for name, s in known.items()}
    for scores in ("logits", "probabilities"):
        if scores in known and len(known[scores].shape) == 1:
            widths[scores] = 2
    return widths


def _common_length(path: Path, known: dict[str, ArraySource]) -> int:
    lengths = {name: source.shape[0] for name, source in known.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise ValueError(f"{path}: rows differ ({listed}); wanted the same number")
    return next(iter(lengths.values()), 0)


def _named(columns: Columns, domain_names: np.ndarray | None) -> Columns:
    """Names in place of domain codes."""
    codes = columns.get("domains")
    if codes is None or domain_names is None or codes.dtype.kind not in "iu":
        return columns
    if codes.size and (codes.min() < 0 or codes.max() >= len(domain_names)):
        raise ValueError(
            f"domains holds a code outside 0..{len(domain_names) - 1}; there are "
            f"{len(domain_names)} domain_names"
        )
    return columns | {"domains": domain_names[codes]}


def native(array: np.ndarray) -> np.ndarray:
    """In types that this machine calculates with."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "U":
        return _checked_text(array)
    if array.dtype.isnative and array.dtype.itemsize <= 8:
        return array
    wanted = np.float64 if array.dtype.kind == "f" else np.int64
    return array.astype(wanted if array.dtype.itemsize >= 8 else array.dtype.type)


def _checked_text(array: np.ndarray) -> np.ndarray:
    """Refuse numbers that are no characters: Python would fail at their first use."""
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    codes = native.view(np.uint32)
    if codes.size and codes.max() > sys.maxunicode:
        raise ValueError("it holds bytes in place of a name that are no text")
    return native.reshape(array.shape)


def _narrow(texts: np.ndarray) -> np.ndarray:
    longest = max(1, int(np.strings.str_len(texts).max(initial=0)))
    return texts.astype(f"<U{longest}")


MOST_BYTES_OF_NAMES = 2**26


def open_npy(path: Path) -> PredictionFile:
    """One array: a file called features.npy and so on, else logits."""
    name = path.stem if path.stem in SYNONYMS else "logits"
    return open_arrays(path, {name: _file(path, name)})


def open_folder(path: Path) -> PredictionFile:
    """A folder of logits.npy, features.npy, labels.npy, domains.npy and the like."""
    wanted = [*SYNONYMS, *NAME_LISTS]
    files = {name: path / f"{name}.npy" for name in wanted}
    sources = {n: _file(file, n) for n, file in files.items() if file.is_file()}
    if not sources.keys() & SYNONYMS.keys():
        raise ValueError(f"{path} is a folder without logits.npy; wanted such arrays")
    names: dict[str, Any] = take_names(sources)
    return open_arrays(path, sources, **names)


def take_names(sources: dict[str, ArraySource]) -> dict[str, Any]:
    """The short lists of names, read and taken out."""
    return {
        name: read_short(sources.pop(name), name)
        for name in NAME_LISTS
        if name in sources
    }


def read_short(source: ArraySource, name: str) -> np.ndarray:
    """An array that is read although nobody asked for its values."""
    size = math.prod(source.shape) * source.dtype.itemsize
    if size > MOST_BYTES_OF_NAMES:
        raise ValueError(
            f"{name} takes {size} bytes; wanted at most {MOST_BYTES_OF_NAMES}"
        )
    return source.whole()


def read_header(stream: IO[bytes], name: str) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Type and shape of the array that follows, and whether it lies by columns."""
    try:
        shape, fortran_order, dtype = _parse_header(stream)
    except (ValueError, OSError, BadZipFile, ZlibError):
        raise
    except Exception as error:
        # NumPy hands the header to Python's parser, which fails in many ways.
        raise ValueError(f"the header of {name} is damaged ({error})") from error
    if dtype.hasobject:
        raise ValueError(
            f"{name} is an array of Python objects, which is never unpickled; wanted "
            "numbers, or strings saved with dtype=str"
        )
    if dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"the header of {name} says type {dtype} and shape {shape}")
    return dtype, shape, fortran_order and len(shape) > 1


def check_size(
    place: object, dtype: np.dtype, shape: tuple[int, ...], found: int
) -> None:
    """Refuse a file that ends before its array does."""
    wanted = math.prod(shape) * dtype.itemsize
    if found < wanted:
        raise ValueError(
            f"{place} is cut off: shape {shape} of {dtype} takes {wanted} bytes, "
            f"{max(found, 0)} are there"
        )


def _parse_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    with warnings.catch_warnings():
        # Odd headers make NumPy and Python's parser warn before they fail.
        warnings.simplefilter("ignore")
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(stream)
        if version == (2, 0):
            return np.lib.format.read_array_header_2_0(stream)
    raise ValueError(f"NumPy format {version} is not known; wanted 1.0 or 2.0")


def _file(path: Path, name: str) -> ArraySource:
    with open(path, "rb") as stream:
        dtype, shape, by_columns = read_header(stream, name)
        offset = stream.tell()
    check_size(path, dtype, shape, os.path.getsize(path) - offset)
    return array_in_file(path, dtype, shape, offset, by_columns=by_columns)


def open_npz(path: Path) -> PredictionFile:
    """The known arrays; names of the others are kept in the metadata."""
    with ZipFile(path) as archive:
        infos = archive.infolist()
    names = Counter(info.filename.removesuffix(".npy") for info in infos)
    wanted = (*SYNONYMS, *NAME_LISTS, "metadata")
    members = {
        info.filename.removesuffix(".npy"): info
        for info in infos
        if info.filename.removesuffix(".npy") in wanted
    }
    for name in members:
        if names[name] > 1:
            raise ValueError(f"{path} holds {names[name]} arrays {name}; wanted one")
    if not members.keys() & SYNONYMS.keys():
        listed = ", ".join(list(names)[:8]) or "none"
        hint = suggest(next(iter(names), ""), ("logits", "features"))
        raise ValueError(
            f"{path} holds no arrays named logits, probabilities, features, labels or "
            f"domains; arrays found: {listed}{hint}"
        )
    sources = {name: _member(path, info, name) for name, info in members.items()}
    metadata = _metadata(sources.pop("metadata", None))
    ignored = sorted(names.keys() - set(wanted))
    if ignored:
        metadata["ignored_arrays"] = ignored
    return open_arrays(path, sources, metadata=metadata, **take_names(sources))


def _member(path: Path, info: ZipInfo, name: str) -> ArraySource:
    with ZipFile(path) as archive, archive.open(info) as stream:
        dtype, shape, by_columns = read_header(stream, name)
        found = info.file_size - stream.tell()
    check_size(f"{path}: {info.filename}", dtype, shape, found)
    start = partial(_bytes, path, info.filename)

    def whole() -> np.ndarray:
        with start() as stream:
            content = stream.read(math.prod(shape) * dtype.itemsize)
            stream.read(1)
        array = np.frombuffer(content, dtype, math.prod(shape))
        return array.reshape(shape[::-1]).T if by_columns else array.reshape(shape)

    return ArraySource(dtype, shape, by_columns, start, whole, mapped=False)


@contextmanager
def _bytes(path: Path, name: str) -> Iterator[IO[bytes]]:
    """The bytes of an array inside a zip file, after its header."""
    with ZipFile(path) as archive, archive.open(name) as stream:
        read_header(stream, name)
        yield stream


def _metadata(source: ArraySource | None) -> dict[str, Any]:
    """JSON text under the name `metadata`, where there is one."""
    if source is None:
        return {}
    try:
        return dict(json.loads(str(read_short(source, "metadata"))))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is not a JSON object: {error}") from error
