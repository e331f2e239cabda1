"""One archive is one safetensors file: named arrays after a JSON header.

Names, metadata and the format's version stand as one JSON text in the header, strings
per row as bytes and offsets, so the same archive always gives the same bytes.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from coolhead.io.arrays import ArraySource, array_in_file, open_arrays
from coolhead.io.files import atomic_path
from coolhead.io.predictions import (
    PackedStrings,
    PredictionFile,
    check_packed,
    pack_strings,
)

FORMAT_VERSION = 1
HEADER_KEY = "coolhead"
# The format is little-endian on every machine.
DTYPES = {
    f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
    for kind, sizes in {"F": (2, 4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}.items()
    for size in sizes
}


def write_archive(columns: Mapping[str, Any], path: str | os.PathLike) -> None:
    """Write the columns of an archive, atomically."""
    header = {
        "format_version": FORMAT_VERSION,
        "domain_names": columns["domain_names"],
        "class_names": columns["class_names"],
        "metadata": columns["metadata"],
    }
    text = json.dumps(header, sort_keys=True, ensure_ascii=False)
    with tensors_path(path) as temporary:
        save_file(_arrays(columns), temporary, metadata={HEADER_KEY: text})


@contextmanager
def tensors_path(path: str | os.PathLike) -> Iterator[Path]:
    """`atomic_path` for writers of safetensors, whose errors are of their own kind."""
    try:
        with atomic_path(path) as temporary:
            yield temporary
    except SafetensorError as error:
        raise OSError(f"cannot write {os.fspath(path)}: {error}") from error


def _arrays(columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
    arrays = {}
    for column in ("logits", "features", "labels", "domain_codes", "_groups", "_ids"):
        values, name = columns[column], column.removeprefix("_")
        if values is None:
            continue
        if isinstance(values, np.ndarray) and values.dtype.kind == "U":
            values = pack_strings(values)
        if isinstance(values, PackedStrings):
            arrays |= {f"{name}.utf8": values.data, f"{name}.offsets": values.offsets}
        else:
            arrays[name] = np.ascontiguousarray(values)
    return arrays


def open_safetensors(path: Path) -> PredictionFile:
    """The arrays of an archive, mapped into memory when all rows are wanted."""
    header = _read_header(path)
    sources = _sources(path)
    for name in ("groups", "ids"):
        if f"{name}.utf8" in sources and f"{name}.offsets" in sources:
            parts = sources[f"{name}.utf8"], sources[f"{name}.offsets"]
            sources[name] = _texts(name, *parts)
    names = {key: header.get(key) for key in ("domain_names", "class_names")}
    return open_arrays(path, sources, metadata=header.get("metadata"), **names)


def _read_header(path: Path) -> dict[str, Any]:
    """Names, metadata and the version of the format."""
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
    """Where every array lies in its file."""
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
        dtype = DTYPES[entry["dtype"]]
        offset, shape = 8 + length + entry["data_offsets"][0], tuple(entry["shape"])
        sources[name] = array_in_file(path, dtype, shape, offset)
    return sources


@dataclass(frozen=True, kw_only=True)
class TextSource(ArraySource):
    """Strings, one per row, as `PackedStrings` puts them into two arrays."""

    name: str
    data: ArraySource
    offsets: ArraySource

    @property
    def bytes_per_row(self) -> int:
        return 4 * self.data.shape[0] // max(1, self.shape[0])

    def blocks(self, n_rows: int) -> Iterator[np.ndarray]:
        with self.data.open() as texts, self.offsets.open() as ends:
            position = int.from_bytes(ends.read(8), "little")
            for start in range(0, self.shape[0], n_rows):
                wanted = min(n_rows, self.shape[0] - start)
                part = np.frombuffer(ends.read(8 * wanted), np.int64)
                offsets = np.concatenate([[0], part - position])
                data = np.frombuffer(texts.read(max(0, int(offsets[-1]))), np.uint8)
                yield check_packed(PackedStrings(data, offsets), self.name).array
                position = int(part[-1])

    def load(self) -> PackedStrings:
        packed = PackedStrings(self.data.load(), self.offsets.load())
        return check_packed(packed, self.name)


def _texts(name: str, data: ArraySource, offsets: ArraySource) -> TextSource:
    if offsets.dtype != np.int64 or len(offsets.shape) != 1 or data.dtype != np.uint8:
        raise ValueError(f"{name}: the string offsets are damaged")
    shape = (max(0, offsets.shape[0] - 1),)
    parts = {"name": name, "data": data, "offsets": offsets}
    return TextSource(np.dtype("<U1"), shape, False, data.open, data.whole, **parts)
