"""Which kind a prediction file is: told by its first bytes, not by its name."""

import os
from pathlib import Path

from coolhead.archive.prediction_file import PredictionFile, check_class_names, naming
from coolhead.files import check_input

KINDS = ".npz, .npy, a folder of .npy, .safetensors, .parquet, .arrow or .csv"


def open_predictions(path: str | os.PathLike) -> PredictionFile:
    """Open a file of predictions without reading its values.

    Parameters
    ----------
    path : .npz, .npy, a folder of .npy files, an archive of `DomainArchive.save`,
        Parquet, Arrow or CSV.
    """
    path = check_input(path, KINDS)
    with naming(path):
        file = _open(path)
        if file.n_rows == 0:
            raise ValueError(f"{path} has no rows; wanted at least one")
        check_class_names(file)
    return file


def _open(path: Path) -> PredictionFile:
    from coolhead.archive.formats import npy, npz, safetensors

    if path.is_dir():
        return npy.open_folder(path)
    with open(path, "rb") as stream:
        start = stream.read(9)
    if not start:
        raise ValueError(f"{path} is empty (0 bytes); wanted {KINDS}")
    if start[:2] == b"PK":
        return npz.open_npz(path)
    if start[:6] == b"\x93NUMPY":
        return npy.open_npy(path)
    if start[8:9] == b"{":
        return safetensors.open_safetensors(path)
    if start[0] == 0x80 and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise ValueError(
            f"{path} looks like a pickle, which may run code when it is read and is "
            f"never loaded; wanted {KINDS}"
        )
    return _open_table(path, start)


def _open_table(path: Path, start: bytes) -> PredictionFile:
    from coolhead.archive.formats.tables import open_table

    if start[:4] == b"PAR1":
        return open_table(path, "parquet")
    if start[:6] == b"ARROW1":
        return open_table(path, "arrow")
    if path.suffix in (".csv", ".tsv", ".txt") and b"\0" not in start:
        return open_table(path, "csv")
    raise ValueError(f"{path} is of no known kind, or is damaged; wanted {KINDS}")
