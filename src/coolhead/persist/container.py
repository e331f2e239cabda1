"""The zip archive of a calibrator: its size, its header and its versions."""

import io
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from coolhead.files import check_input

FORMAT = "coolhead calibrator"
FORMAT_VERSION = 2
HEADER = "coolhead.json"
SCHEMA = "schema.json"
MAX_BYTES = 2**30
# Beyond this size, numbers that pack into a hundredth of their room are no numbers.
SMALL_BYTES, MAX_RATIO = 2**24, 100
MAX_SCHEMA_BYTES = 2**26


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """What the file says about itself: versions, class and metadata.

    A calibrator written by skops directly has no header and counts as format 0.
    """
    path = Path(path)
    try:
        with ZipFile(io.BytesIO(read_bytes(path))) as archive:
            if HEADER not in archive.namelist():
                return {"format": FORMAT, "format_version": 0, "metadata": {}}
            header = json.loads(archive.read(HEADER))
            found = header["format_version"]
            newer = header["format"] != FORMAT or found > FORMAT_VERSION
            writer = str(header.get("coolhead_version", "a newer version"))
            header["metadata"] = dict(header["metadata"])
    except Exception as error:
        raise ValueError(damaged(path, error)) from error
    if newer:
        raise ValueError(
            f"{path} has format {found!r} of coolhead {writer}; this coolhead reads up "
            f"to {FORMAT_VERSION}: install coolhead {writer} or newer"
        )
    if found < FORMAT_VERSION:
        raise ValueError(
            f"{path} was written by coolhead {writer}, whose calibrators are others "
            "than today's; fit again with coolhead fit PREDICTIONS --out "
            f"{path.name}, or with save_calibrator"
        )
    return header


def read_bytes(path: Path) -> bytes:
    """The bytes of a zip file of reasonable size."""
    check_input(path, "a calibrator file")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; wanted a calibrator file")
    content = path.read_bytes()
    if not content:
        raise ValueError(f"{path} is empty (0 bytes); wanted a calibrator file")
    if content[:1] == b"\x80":
        raise ValueError(
            f"{path} looks like a pickle, which may run code when it is read and is "
            "never loaded; save with coolhead.save_calibrator"
        )
    try:
        size = _unpacked_size(content)
    except Exception as error:
        raise ValueError(damaged(path, error)) from error
    most = min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * len(content)))
    if size > most:
        raise ValueError(f"{path} unpacks to {size} bytes; wanted at most {most}")
    return content


def _unpacked_size(content: bytes) -> int:
    """Bytes of all members, each as often as the calibrator is made from it."""
    with ZipFile(io.BytesIO(content)) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if len(sizes) != len(archive.infolist()):
            raise ValueError("a member is there twice")
        if sizes.get(SCHEMA, 0) > MAX_SCHEMA_BYTES:
            raise ValueError(f"{SCHEMA} takes {sizes[SCHEMA]} bytes")
        if SCHEMA not in sizes:
            return sum(sizes.values())
        named = _named_members(json.loads(archive.read(SCHEMA)))
    return sum(max(1, named[name]) * size for name, size in sizes.items())


def _named_members(schema: Any) -> Counter[str]:
    """How many nodes are read from each file; skops builds nodes of one id once."""
    found: dict[Any, str] = {}
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "file" in node:
                found[node.get("__id__") or id(node)] = str(node["file"])
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return Counter(found.values())


def damaged(path: Path | str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200] or "unreadable"
    return f"{path} is no calibrator file, or is damaged ({reason})"
