"""Arrays inside files: .npy, folders of .npy and .npz; mapped, or read when used."""

import json
import math
import mmap
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

import numpy as np

from coolhead.io.predictions import Columns, PredictionFile
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
MOST_CHARACTERS = 4096
MOST_BYTES_OF_NAMES = 2**26
TEXT_BYTES_PER_PIECE = 2**22
# By version of NumPy's format.
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class ArraySource:
    """An array of a file: its type and shape are known, its values are not read.

    Attributes
    ----------
    dtype : numpy.dtype
        Type in the file.
    shape : tuple of int
        The first axis is that of the rows.
    read : callable
        Return the array, or an object whose slices are arrays.
    mapped : bool, default=True
        True if `read` maps the file into memory and reads nothing.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    read: Callable[[], Any]
    mapped: bool = True

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def map_array(
    path: Path,
    dtype: np.dtype,
    shape: tuple[int, ...],
    offset: int,
    *,
    by_columns: bool = False,
) -> ArraySource:
    """Return the array that starts after the first `offset` bytes of a file."""

    def read() -> np.ndarray:
        if 0 in shape:
            return np.empty(shape, dtype)
        order = "F" if by_columns else "C"
        return native(np.memmap(path, dtype, "r", offset, shape, order))

    return ArraySource(dtype, shape, read)


def open_arrays(
    path: Path,
    sources: dict[str, ArraySource],
    *,
    names: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
) -> PredictionFile:
    """Return a file of the arrays with known names; others are left alone.

    Parameters
    ----------
    path : Path
        The file or folder, for messages.
    sources : dict of str to ArraySource
        The arrays by their names in the file.
    names : dict of str to sequence of str, default=None
        The lists of `NAME_LISTS`; by default they are read from `sources`.
    metadata : dict, default=None
        JSON values.
    """
    known: dict[str, ArraySource] = {}
    for name, source in sources.items():
        column = SYNONYMS.get(name)
        if column is None:
            continue
        if column in known:
            raise ValueError(f"{path} holds {column} twice, also as {name}; wanted one")
        _check_source(path, column, source)
        known[column] = source
    if names is None:
        names = {n: read_short(sources[n], n) for n in NAME_LISTS if n in sources}
    n_rows = _common_length(path, known)
    held = sum(s.n_bytes for s in known.values() if not s.mapped)
    labels = known.get("labels")
    kind = "" if labels is None else labels.dtype.kind

    def blocks(step: int) -> Iterator[Columns]:
        arrays = {name: source.read() for name, source in known.items()}
        for start in range(0, n_rows, step):
            yield {name: a[start : start + step] for name, a in arrays.items()}
            give_back_pages(*arrays.values())

    return PredictionFile(
        path,
        n_rows,
        {name: _width(name, source.shape) for name, source in known.items()},
        blocks,
        lambda: {name: source.read()[:] for name, source in known.items()},
        class_names=_name_list(names, "class_names"),
        domain_names=_name_list(names, "domain_names"),
        metadata=metadata or {},
        mapped=held == 0,
        bytes_per_row=sum(s.n_bytes for s in known.values()) // max(n_rows, 1) or 1,
        held_bytes=held,
        label_names=partial(_distinct, labels) if labels and kind in "US" else None,
        truth=kind == "b",
    )


def _distinct(labels: ArraySource) -> list[str]:
    return join_text([distinct_text(native(labels.read()))])


def _check_source(path: Path, name: str, source: ArraySource) -> None:
    kinds, dimensions = KINDS[name]
    if source.dtype.kind not in kinds or len(source.shape) not in dimensions:
        wanted = " or ".join("(n,)" if d == 1 else "(n, k)" for d in dimensions)
        raise ValueError(
            f"{path}: {name} has type {source.dtype} and shape {source.shape}; wanted "
            f"{'names or integers' if 'U' in kinds else 'numbers'} of shape {wanted}"
        )
    # Every row of text takes the bytes of the longest one.
    size = {"U": 4, "S": 1}.get(source.dtype.kind)
    if size and source.dtype.itemsize > size * MOST_CHARACTERS:
        raise ValueError(
            f"{name} has room for {source.dtype.itemsize // size} characters in every "
            f"row; wanted at most {MOST_CHARACTERS}"
        )


def _name_list(names: dict[str, Any], argument: str) -> tuple[str, ...] | None:
    if names.get(argument) is None:
        return None
    array = native(np.asarray(names[argument]))
    if array.ndim != 1:
        raise ValueError(f"{argument} has shape {array.shape}; wanted a list of names")
    return tuple(str(name) for name in array.tolist())


def _width(name: str, shape: tuple[int, ...]) -> int:
    if len(shape) == 2:
        return shape[1]
    return 2 if name in ("logits", "probabilities") else 1


def _common_length(path: Path, known: dict[str, ArraySource]) -> int:
    lengths = {name: source.shape[0] for name, source in known.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise ValueError(f"{path}: rows differ ({listed}); wanted the same number")
    return next(iter(lengths.values()), 0)


def native(array: np.ndarray) -> np.ndarray:
    """Return the array in a type that this machine calculates with."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "U":
        text = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        codes = text.view(np.uint32)
        # Python would fail at the first use of such a string.
        if codes.size and codes.max() > sys.maxunicode:
            raise ValueError("it holds bytes that are no text")
        return text.reshape(array.shape)
    if array.dtype.isnative and array.dtype.itemsize <= 8:
        return array
    wanted = np.float64 if array.dtype.kind == "f" else np.int64
    return array.astype(wanted if array.dtype.itemsize >= 8 else array.dtype.type)


def give_back_pages(*arrays: Any) -> None:
    """Let the system take the pages of arrays that are mapped to be read only.

    They are read again if needed.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    for array in arrays:
        while array is not None and not isinstance(array, mmap.mmap):
            array = getattr(array, "base", None)
        # Changes of a private copy of pages exist nowhere else.
        if array is not None and memoryview(array).readonly:
            array.madvise(mmap.MADV_DONTNEED)


def open_npy(path: Path) -> PredictionFile:
    """Open one array: a file called features.npy and so on, else logits."""
    name = path.stem if path.stem in SYNONYMS else "logits"
    return open_arrays(path, {name: _npy(path, name)})


def open_folder(path: Path) -> PredictionFile:
    """Open a folder of logits.npy, features.npy, labels.npy, domains.npy and so on."""
    files = {name: path / f"{name}.npy" for name in (*SYNONYMS, *NAME_LISTS)}
    sources = {n: _npy(file, n) for n, file in files.items() if file.is_file()}
    if not sources.keys() & SYNONYMS.keys():
        raise ValueError(f"{path} is a folder without logits.npy; wanted such arrays")
    return open_arrays(path, sources)


def _npy(path: Path, name: str) -> ArraySource:
    with open(path, "rb") as stream:
        dtype, shape, by_columns = _read_header(stream, name)
        offset = stream.tell()
    _check_size(path, dtype, shape, os.path.getsize(path) - offset)
    return map_array(path, dtype, shape, offset, by_columns=by_columns)


def open_npz(path: Path) -> PredictionFile:
    """Open the known arrays; names of the others are kept in the metadata."""
    with ZipFile(path) as archive:
        infos = archive.infolist()
    found = [(info.filename.removesuffix(".npy"), info) for info in infos]
    wanted = (*SYNONYMS, *NAME_LISTS, "metadata")
    counts = Counter(name for name, _ in found)
    for name in wanted:
        if counts[name] > 1:
            raise ValueError(f"{path} holds {counts[name]} arrays {name}; wanted one")
    if not counts.keys() & SYNONYMS.keys():
        listed = ", ".join(list(counts)[:8]) or "none"
        hint = suggest(next(iter(counts), ""), ("logits", "features"))
        raise ValueError(
            f"{path} holds no arrays named logits, probabilities, features, labels or "
            f"domains; arrays found: {listed}{hint}"
        )
    sources = {n: _member(path, info, n) for n, info in found if n in wanted}
    metadata = _metadata(sources.pop("metadata", None))
    ignored = sorted(counts.keys() - set(wanted))
    if ignored:
        metadata["ignored_arrays"] = ignored
    return open_arrays(path, sources, metadata=metadata)


def _member(path: Path, info: ZipInfo, name: str) -> ArraySource:
    with ZipFile(path) as archive, archive.open(info) as stream:
        dtype, shape, _ = _read_header(stream, name)
        found = info.file_size - stream.tell()
    _check_size(f"{path}: {info.filename}", dtype, shape, found)
    return ArraySource(dtype, shape, partial(_read_member, path, info), mapped=False)


def _read_member(path: Path, info: ZipInfo) -> np.ndarray:
    """Read an array of a zip file; text in the width that it needs."""
    with ZipFile(path) as archive, archive.open(info) as stream:
        dtype, shape, by_columns = _read_header(stream, info.filename)
        size = math.prod(shape) * dtype.itemsize
        if dtype.kind in "US" and len(shape) == 1:
            step = max(1, TEXT_BYTES_PER_PIECE // dtype.itemsize) * dtype.itemsize
            parts = [np.empty(0, "<U1")]
            for start in range(0, size, step):
                content = stream.read(min(step, size - start))
                parts.append(_narrow(native(np.frombuffer(content, dtype))))
            array = np.concatenate(parts)
        else:
            array = native(np.frombuffer(stream.read(size), dtype))
            shape = shape[::-1] if by_columns else shape
            array = array.reshape(shape).T if by_columns else array.reshape(shape)
        # A zip file compares its checksum when it is read to the end.
        stream.read(1)
    return array


def _narrow(texts: np.ndarray) -> np.ndarray:
    longest = max(1, int(np.strings.str_len(texts).max(initial=0)))
    return texts.astype(f"<U{longest}")


def read_short(source: ArraySource, name: str) -> np.ndarray:
    """Read an array that must be small: names or metadata."""
    if source.n_bytes > MOST_BYTES_OF_NAMES:
        raise ValueError(
            f"{name} takes {source.n_bytes} bytes; wanted at most {MOST_BYTES_OF_NAMES}"
        )
    return source.read()


def _metadata(source: ArraySource | None) -> dict[str, Any]:
    """Return the JSON text under the name `metadata` as a dict."""
    if source is None:
        return {}
    try:
        return dict(json.loads(str(read_short(source, "metadata"))))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is not a JSON object: {error}") from error


def _read_header(
    stream: IO[bytes], name: str
) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Return the type and shape of an array, and if it lies column by column."""
    try:
        with warnings.catch_warnings():
            # Odd headers make NumPy and Python's parser warn before they fail.
            warnings.simplefilter("ignore")
            reader = HEADERS[np.lib.format.read_magic(stream)]
            shape, by_columns, dtype = reader(stream)
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
    return dtype, shape, by_columns and len(shape) > 1


def _check_size(
    holder: object, dtype: np.dtype, shape: tuple[int, ...], found: int
) -> None:
    """Refuse a file that ends before its array does."""
    wanted = math.prod(shape) * dtype.itemsize
    if found < wanted:
        raise ValueError(
            f"{holder} is cut off: shape {shape} of {dtype} takes {wanted} bytes, "
            f"{max(found, 0)} are there"
        )
