"""The .npz files people have: arrays in a zip file, stored or compressed."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from coolhead.archive.formats.arrays import (
    NAME_LISTS,
    SYNONYMS,
    ArraySource,
    open_arrays,
)
from coolhead.archive.formats.npy import check_size, read_header, read_short, take_names
from coolhead.archive.prediction_file import PredictionFile
from coolhead.suggest import suggest


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
