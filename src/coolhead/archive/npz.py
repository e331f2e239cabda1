"""The .npz files people have, under the names they use."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from coolhead.archive.domain_archive import DomainArchive
from coolhead.archive.strings import suggest

COLUMNS = ("logits", "features", "labels", "domains", "groups", "ids")
NAMES = ("class_names", "domain_names")
SYNONYMS = {"domain": "domains", "paths": "ids"}


def read_npz(path: Path) -> DomainArchive:
    """An archive of the known arrays; names of the others are kept in the metadata."""
    try:
        # NumPy leaves a file it opened itself open when the zip is damaged.
        with (
            open(path, "rb") as handle,
            np.load(handle, allow_pickle=False) as stored,
        ):
            arrays = _known_arrays(stored, path)
            ignored = sorted(set(stored.files) - _known_names())
            metadata = _metadata(stored)
    except (BadZipFile, ZlibError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a whole .npz file: {error}") from error
    if ignored:
        metadata["ignored_arrays"] = ignored
    return DomainArchive(**arrays, metadata=metadata)


def _known_names() -> set[str]:
    return {*COLUMNS, *NAMES, *SYNONYMS, "metadata"}


def _known_arrays(stored: Any, path: Path) -> dict[str, Any]:
    if not {"logits", "features"}.intersection(stored.files):
        found = ", ".join(stored.files) or "none"
        hint = "".join(
            suggest(name, ("logits", "features")) for name in stored.files[:1]
        )
        raise ValueError(
            f"{path} has neither logits nor features; arrays found: {found}{hint}"
        )
    arrays = {}
    for name in stored.files:
        column = SYNONYMS.get(name, name)
        if column not in (*COLUMNS, *NAMES):
            continue
        if column in arrays:
            raise ValueError(f"{path} has both {column} and its synonym; wanted one")
        arrays[column] = _plain_array(stored, name, path)
    return arrays


def _plain_array(stored: Mapping[str, Any], name: str, path: Path) -> np.ndarray:
    try:
        return stored[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise ValueError(
            f"{path}: {name} is an array of Python objects, which is never unpickled; "
            "wanted numbers, or strings saved with dtype=str"
        ) from error


def _metadata(stored: Any) -> dict[str, Any]:
    """JSON text under the name `metadata`, where there is one."""
    if "metadata" not in stored.files:
        return {}
    try:
        return dict(json.loads(str(stored["metadata"])))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is not a JSON object: {error}") from error
