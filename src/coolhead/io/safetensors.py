"""One archive is one safetensors file: named arrays after a JSON header.

Names, metadata and the format's version are one JSON text in the header, strings per
row are bytes and offsets, so the same archive always gives the same bytes.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from coolhead.io.arrays import ArraySource, map_array, open_arrays
from coolhead.io.files import atomic_path
from coolhead.io.predictions import PredictionFile

FORMAT_VERSION = 1
HEADER_KEY = "coolhead"
# The format is little-endian on every machine.
DTYPES = {
    f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
    for kind, sizes in {"F": (2, 4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}.items()
    for size in sizes
}


@dataclass(frozen=True, eq=False)
class PackedStrings:
    """UTF-8 bytes of many strings in a row; a slice is an array of str.

    Attributes
    ----------
    data : ndarray of shape (n_bytes,), dtype uint8
        The strings, one after the other.
    offsets : ndarray of shape (n + 1,), dtype int64
        Where each string starts and the last one ends.
    """

    data: np.ndarray
    offsets: np.ndarray

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self.offsets) - 1)
        offsets = self.offsets[start : max(start, stop) + 1]
        falling = (np.diff(offsets) < 0).any() or offsets[0] < 0
        if falling or offsets[-1] > len(self.data):
            raise ValueError("the string offsets are damaged")
        text = self.data[offsets[0] : offsets[-1]].tobytes()
        ends = pairwise((offsets - offsets[0]).tolist())
        return np.array([text[a:b].decode() for a, b in ends], dtype=np.str_)


def pack_strings(strings: np.ndarray) -> PackedStrings:
    """Pack an array of str."""
    encoded = [str(text).encode() for text in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return PackedStrings(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)


def write_archive(columns: Mapping[str, Any], path: str | os.PathLike) -> None:
    """Write the columns of an archive, atomically."""
    listed = ("domain_names", "class_names", "metadata")
    header = {name: columns[name] for name in listed}
    header["format_version"] = FORMAT_VERSION
    text = json.dumps(header, sort_keys=True, ensure_ascii=False)
    arrays = {}
    for name, values in columns.items():
        if name in listed or values is None:
            continue
        if values.dtype.kind == "U":
            packed = pack_strings(values)
            arrays |= {f"{name}.utf8": packed.data, f"{name}.offsets": packed.offsets}
        else:
            arrays[name] = np.ascontiguousarray(values)
    with tensors_path(path) as temporary:
        save_file(arrays, temporary, metadata={HEADER_KEY: text})


@contextmanager
def tensors_path(path: str | os.PathLike) -> Iterator[Path]:
    """`atomic_path` for writers of safetensors, whose errors are of their own kind."""
    try:
        with atomic_path(path) as temporary:
            yield temporary
    except SafetensorError as error:
        raise OSError(f"cannot write {os.fspath(path)}: {error}") from error


def open_safetensors(path: Path) -> PredictionFile:
    """Open an archive, whose arrays are mapped into memory."""
    header = _read_header(path)
    sources = _sources(path)
    for name in ("groups", "ids"):
        if f"{name}.utf8" in sources and f"{name}.offsets" in sources:
            parts = sources[f"{name}.utf8"], sources[f"{name}.offsets"]
            sources[name] = _texts(name, *parts)
    names = {key: header.get(key) for key in ("domain_names", "class_names")}
    return open_arrays(path, sources, names=names, metadata=header.get("metadata"))


def _read_header(path: Path) -> dict[str, Any]:
    """Return names, metadata and the version of the format."""
    try:
        with safe_open(path, framework="np") as handle:
            metadata = handle.metadata() or {}
    except SafetensorError as error:
        reason = f"not a whole safetensors file: {error}"
        raise ValueError(f"{path} cannot be read ({reason})") from error
    if HEADER_KEY not in metadata:
        raise ValueError(
            f"{path} is a safetensors file but no coolhead archive: its header has no "
            f"{HEADER_KEY!r} entry"
        )
    header = json.loads(metadata[HEADER_KEY])
    version = header.get("format_version") if isinstance(header, dict) else None
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has archive format {version}; this coolhead reads "
            f"{FORMAT_VERSION}: a newer coolhead may read it"
        )
    return header


def _sources(path: Path) -> dict[str, ArraySource]:
    """Map every array of the file, which the safetensors library has accepted."""
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        entries = json.loads(handle.read(length))
    entries.pop("__metadata__", None)
    sources = {}
    for name, entry in entries.items():
        if entry["dtype"] not in DTYPES:
            known = ", ".join(DTYPES)
            raise ValueError(
                f"{path}: {name} has type {entry['dtype']}; wanted one of {known}"
            )
        offset, shape = 8 + length + entry["data_offsets"][0], tuple(entry["shape"])
        sources[name] = map_array(path, DTYPES[entry["dtype"]], shape, offset)
    return sources


def _texts(name: str, data: ArraySource, offsets: ArraySource) -> ArraySource:
    if offsets.dtype != np.int64 or len(offsets.shape) != 1 or data.dtype != np.uint8:
        raise ValueError(f"{name}: the string offsets are damaged")
    shape = (max(0, offsets.shape[0] - 1),)
    return ArraySource(np.dtype("<U1"), shape, partial(_packed, data, offsets))


def _packed(data: ArraySource, offsets: ArraySource) -> PackedStrings:
    packed = PackedStrings(data.read(), offsets.read())
    ends = packed.offsets[[0, -1]].tolist() if len(packed.offsets) else []
    if ends != [0, len(packed.data)]:
        raise ValueError("the string offsets are damaged")
    return packed
