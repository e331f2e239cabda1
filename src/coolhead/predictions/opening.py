"""Which kind a prediction file is: told by its first bytes, not by its name."""

import json
import os
import zlib
from functools import partial
from pathlib import Path
from zipfile import BadZipFile, LargeZipFile

from coolhead.predictions.opened import OpenedFile, refuse_damaged

KINDS = ".npz, .npy, a folder of .npy, .safetensors, .parquet, .arrow or .csv"


def open_predictions(path: str | os.PathLike) -> OpenedFile:
    """Open a file of predictions without reading its values.

    Parameters
    ----------
    path : .npz, .npy, a folder of .npy files, an archive of `DomainArchive.save`,
        Parquet, Arrow or CSV.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; wanted {KINDS}")
    try:
        opened = _open(path)
    except (BadZipFile, LargeZipFile, zlib.error, EOFError, NotImplementedError) as e:
        refuse_damaged(path, e)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        # Only a forged header gets this far.
        refuse_damaged(path, error)
    except (RecursionError, MemoryError, SyntaxError, RuntimeError) as error:
        refuse_damaged(path, error)
    except ValueError as error:
        if str(path) in str(error):
            # Names of columns stand in some messages, and may hold anything.
            raise ValueError(" ".join(str(error).split())[:600]) from error
        refuse_damaged(path, error)
    if opened.n_rows == 0:
        raise ValueError(f"{path} has no rows; wanted at least one")
    return opened


def _open(path: Path) -> OpenedFile:
    from coolhead.predictions import numpy_files

    if path.is_dir():
        return numpy_files.open_folder(path)
    with open(path, "rb") as stream:
        start = stream.read(9)
    if not start:
        raise ValueError(f"{path} is empty (0 bytes); wanted {KINDS}")
    if start[:2] == b"PK":
        return numpy_files.open_npz(path)
    if start[:6] == b"\x93NUMPY":
        return numpy_files.open_npy(path)
    if start[8:9] == b"{":
        return _open_archive(path)
    if start[0] == 0x80 and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise ValueError(
            f"{path} looks like a pickle, which may run code when it is read and is "
            f"never loaded; wanted {KINDS}"
        )
    return _open_table(path, start)


def _open_table(path: Path, start: bytes) -> OpenedFile:
    from coolhead.predictions.frames import open_frame

    if start[:4] == b"PAR1":
        return open_frame(path, "parquet")
    if start[:6] == b"ARROW1":
        return open_frame(path, "arrow")
    if path.suffix in (".csv", ".tsv", ".txt") and b"\0" not in start:
        return open_frame(path, "csv")
    raise ValueError(f"{path} is of no known kind, or is damaged; wanted {KINDS}")


def _open_archive(path: Path) -> OpenedFile:
    from coolhead.archive.storage import StoredArray, read_layout
    from coolhead.predictions.arrays import ArraySource, bytes_after, open_arrays

    def source(place: StoredArray) -> ArraySource:
        start = partial(bytes_after, path, place.offset)
        return ArraySource(place.dtype, place.shape, False, start, place.map)

    try:
        header, places = read_layout(path)
    except json.JSONDecodeError as error:
        refuse_damaged(path, error)
    sources = {name: source(place) for name, place in places.items()}
    names = {key: header.get(key) for key in ("domain_names", "class_names")}
    return open_arrays(path, sources, **names)
