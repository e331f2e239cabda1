"""Which kind a prediction file is: told by its first bytes, not by its name."""

import os
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from coolhead.archive.named_labels import with_numbered_labels
from coolhead.archive.prediction_file import PredictionFile, check_class_names, naming
from coolhead.files import check_input

KINDS = ".npz, .npy, a folder of .npy, .safetensors, .parquet, .arrow, .csv or .jsonl"


def open_predictions(
    path: str | os.PathLike,
    class_names: Sequence[str] | None = None,
    *,
    keep: Sequence[str] = (),
) -> PredictionFile:
    """Open a file of predictions without reading its values.

    Parameters
    ----------
    path : .npz, .npy, a folder of .npy files, an archive of `DomainArchive.save`,
        Parquet, Arrow or CSV; .jsonl, or a folder of them, of multiple choice.
    class_names : of the scores' columns, for labels that are names in a file which does
        not say it itself.
    keep : further columns of a table that its blocks shall hold as they are.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from coolhead.archive import open_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.datasets.simulate_domains([1.0]).save(f"{folder}/some.safetensors")
    ...     file = open_predictions(f"{folder}/some.safetensors")
    ...     print(file.n_rows, file.widths["logits"], file.widths["features"])
    ...
    300 3 4
    """
    path = check_input(path, KINDS)
    with naming(path):
        file = _open(path, keep)
        if file.n_rows == 0:
            raise ValueError(f"{path} has no rows; wanted at least one")
        file = with_numbered_labels(file, class_names)
        check_class_names(file)
    return file


def _open(path: Path, keep: Sequence[str]) -> PredictionFile:
    file = _open_arrays(path)
    if file is None:
        return _open_table(path, keep)
    if keep:
        raise ValueError(
            f"{path} is no table, so it has no column {keep[0]!r} to keep; wanted a "
            "Parquet, Arrow or CSV file"
        )
    return file


def _open_arrays(path: Path) -> PredictionFile | None:
    """A file of arrays; None for what may be a table."""
    from coolhead.archive.formats import npy, npz, options, safetensors

    if path.suffix == ".jsonl" or (path.is_dir() and any(path.glob("*.jsonl"))):
        return options.open_options(path)
    if path.is_dir():
        return npy.open_folder(path)
    with open(path, "rb") as stream:
        start = stream.read(9)
    if not start:
        raise ValueError(f"{path} is empty (0 bytes); wanted {KINDS}")
    if start[:2] == b"PK":
        _refuse_torch(path)
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
    return None


def _refuse_torch(path: Path) -> None:
    """What torch.save writes is a zip archive, too."""
    try:
        with ZipFile(path) as archive:
            names = archive.namelist()
    except BadZipFile:
        return  # told by whoever reads it
    if any(name.endswith("/data.pkl") for name in names):
        raise ValueError(
            f"{path} was written by torch.save and holds a pickle, which may run code "
            f"when it is read and is never loaded; wanted {KINDS}: "
            "safetensors.torch.save_file({'logits': ..., 'labels': ...}, "
            f"'{path.stem}.safetensors')"
        )


def _open_table(path: Path, keep: Sequence[str]) -> PredictionFile:
    from coolhead.archive.formats.tables import open_table

    with open(path, "rb") as stream:
        start = stream.read(9)
    if start[:4] == b"PAR1":
        return open_table(path, "parquet", keep)
    if start[:6] == b"ARROW1":
        return open_table(path, "arrow", keep)
    if path.suffix in (".csv", ".tsv", ".txt") and b"\0" not in start:
        return open_table(path, "csv", keep)
    raise ValueError(f"{path} is of no known kind, or is damaged; wanted {KINDS}")
