"""The .npy and .npz files of NumPy, entered by their headers; nothing is unpickled."""

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile, ZipInfo
from zlib import error as ZlibError

import numpy as np

from coolhead.predictions.arrays import SYNONYMS, ArraySource, bytes_after, open_arrays
from coolhead.predictions.opened import OpenedFile

NAME_LISTS = ("class_names", "domain_names")


def open_npz(path: Path) -> OpenedFile:
    """A zip file of arrays; stored or compressed, it is read in order."""
    with ZipFile(path) as archive:
        members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.removesuffix(".npy") in (*SYNONYMS, *NAME_LISTS)
        }
        found = ", ".join(info.filename for info in archive.infolist()[:8]) or "none"
    if not members:
        raise ValueError(
            f"{path} holds no arrays named logits, probabilities, features, labels or "
            f"domains; found: {found}"
        )
    sources = {name: _member(path, info) for name, info in members.items()}
    names = {
        name: sources.pop(name).whole().tolist()
        for name in NAME_LISTS
        if name in sources
    }
    return open_arrays(path, sources, **names)


def open_npy(path: Path) -> OpenedFile:
    """One array: a file called features.npy and so on, else logits."""
    name = path.stem if path.stem in SYNONYMS else "logits"
    return open_arrays(path, {name: _file(path)})


def open_folder(path: Path) -> OpenedFile:
    """A folder of logits.npy, features.npy, labels.npy, domains.npy and the like."""
    wanted = [*SYNONYMS, *NAME_LISTS]
    files = {name: path / f"{name}.npy" for name in wanted}
    sources = {name: _file(file) for name, file in files.items() if file.exists()}
    if not sources:
        raise ValueError(f"{path} is a folder without logits.npy; wanted such arrays")
    names = {
        name: sources.pop(name).whole().tolist()
        for name in NAME_LISTS
        if name in sources
    }
    return open_arrays(path, sources, **names)


def _file(path: Path) -> ArraySource:
    with open(path, "rb") as stream:
        dtype, shape, fortran_order = _read_header(stream)
        offset = stream.tell()
    _check_size(path, dtype, shape, os.path.getsize(path) - offset)

    def whole() -> np.ndarray:
        if 0 in shape:
            return np.empty(shape, dtype)
        order = "F" if fortran_order else "C"
        return np.memmap(path, dtype, "r", offset, shape, order)

    start = partial(bytes_after, path, offset)
    return ArraySource(dtype, shape, fortran_order, start, whole)


def _member(path: Path, info: ZipInfo) -> ArraySource:
    with ZipFile(path) as archive, archive.open(info) as stream:
        dtype, shape, fortran_order = _read_header(stream)
        found = info.file_size - stream.tell()
    _check_size(f"{path}: {info.filename}", dtype, shape, found)
    start = partial(_member_bytes, path, info.filename)

    def whole() -> np.ndarray:
        with start() as stream:
            array = np.frombuffer(stream.read(), dtype, math.prod(shape))
        return array.reshape(shape[::-1]).T if fortran_order else array.reshape(shape)

    return ArraySource(dtype, shape, fortran_order, start, whole)


@contextmanager
def _member_bytes(path: Path, name: str) -> Iterator[IO[bytes]]:
    """The bytes of an array inside a zip file, after its header."""
    with ZipFile(path) as archive, archive.open(name) as stream:
        _read_header(stream)
        yield stream


def _read_header(stream: IO[bytes]) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Type, shape and order of the array that follows."""
    try:
        shape, fortran_order, dtype = _parse_header(stream)
    except (ValueError, OSError, BadZipFile, ZlibError):
        raise
    except Exception as error:
        # NumPy hands the header to Python's parser, which fails in many ways.
        raise ValueError(f"the header of an array is damaged ({error})") from error
    if dtype.hasobject:
        raise ValueError(
            "it holds an array of Python objects, which is never unpickled; wanted "
            "numbers, or strings saved with dtype=str"
        )
    if dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"its header says type {dtype} and shape {shape}")
    return dtype, shape, fortran_order and len(shape) > 1


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


def _check_size(
    place: object, dtype: np.dtype, shape: tuple[int, ...], found: int
) -> None:
    wanted = math.prod(shape) * dtype.itemsize
    if found < wanted:
        raise ValueError(
            f"{place} is cut off: shape {shape} of {dtype} takes {wanted} bytes, "
            f"{max(found, 0)} are there"
        )
