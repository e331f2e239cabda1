"""One archive is one safetensors file: named arrays after a JSON header.

Names, metadata and the format's version stand as one JSON text in the header, strings
per row as bytes and offsets, so the same archive always gives the same bytes.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from coolhead.archive.strings import PackedStrings, check_packed, pack_strings
from coolhead.files import atomic_path
from coolhead.numerics.blocks import ELEMENTS_PER_BLOCK
from coolhead.numerics.checks import not_finite_message

FORMAT_VERSION = 1
HEADER_KEY = "coolhead"
DTYPES = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
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
    with atomic_path(path) as temporary:
        try:
            save_file(_arrays(columns), temporary, metadata={HEADER_KEY: text})
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
            arrays[f"{name}.utf8"], arrays[f"{name}.offsets"] = (
                values.data,
                values.offsets,
            )
        else:
            arrays[name] = np.ascontiguousarray(values)
    return arrays


@dataclass(frozen=True)
class StoredArray:
    """Where an array lies in its file."""

    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int

    def map(self) -> np.ndarray:
        """The array without reading it; the system loads the pages that are used."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)

    def check_finite(self, name: str) -> None:
        """Read once in small blocks, so memory stays flat, not file-sized."""
        if self.dtype.kind != "f":
            return
        width = int(np.prod(self.shape[1:]))
        step = max(1, ELEMENTS_PER_BLOCK // width)
        with open(self.path, "rb") as handle:
            handle.seek(self.offset)
            for start in range(0, self.shape[0], step):
                count = min(step, self.shape[0] - start) * width
                finite = np.isfinite(np.fromfile(handle, self.dtype, count))
                if not finite.all():
                    bad = ~finite.reshape(-1, width).all(axis=1)
                    rows = np.flatnonzero(bad) + start
                    raise ValueError(not_finite_message(self.map(), rows, name))


def read_layout(path: Path) -> tuple[dict[str, Any], dict[str, StoredArray]]:
    """The JSON header of an archive and the places of its arrays."""
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
    return header, _places(path)


def _places(path: Path) -> dict[str, StoredArray]:
    with open(path, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        entries = json.loads(handle.read(length))
    entries.pop("__metadata__", None)
    places = {}
    for name, entry in entries.items():
        if entry["dtype"] not in DTYPES:
            known = ", ".join(DTYPES)
            raise ValueError(
                f"{path}: {name} has type {entry['dtype']}; wanted one of {known}"
            )
        # The format is little-endian on every machine.
        dtype = np.dtype(DTYPES[entry["dtype"]]).newbyteorder("<")
        offset = 8 + length + entry["data_offsets"][0]
        places[name] = StoredArray(path, dtype, tuple(entry["shape"]), offset)
    return places


def map_tags(
    places: Mapping[str, StoredArray], name: str
) -> np.ndarray | PackedStrings | None:
    """Integers or strings per row, or None where the file has none."""
    if name in places:
        return places[name].map()
    if f"{name}.utf8" not in places or f"{name}.offsets" not in places:
        return None
    data, offsets = places[f"{name}.utf8"].map(), places[f"{name}.offsets"].map()
    return check_packed(PackedStrings(data, offsets), name)
