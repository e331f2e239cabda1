"""The .npy files of NumPy, entered by their headers; nothing is unpickled."""

import math
import os
import warnings
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from coolhead.archive.formats.arrays import (
    NAME_LISTS,
    SYNONYMS,
    ArraySource,
    array_in_file,
    open_arrays,
)
from coolhead.archive.prediction_file import PredictionFile

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
