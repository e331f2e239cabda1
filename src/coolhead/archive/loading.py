"""Archives come from safetensors files, or from the .npz files people have."""

import os
from pathlib import Path

from coolhead.archive.columns import check_columns
from coolhead.archive.domain_archive import DomainArchive
from coolhead.archive.npz import read_npz
from coolhead.archive.storage import map_tags, read_layout


def load_archive(path: str | os.PathLike, *, check: bool = True) -> DomainArchive:
    """Read an archive; a safetensors file is mapped into memory, not read into it.

    Parameters
    ----------
    path : a file written by `DomainArchive.save`, or an .npz file with the arrays
        `logits`, `features` (at least one of them), `labels`, `domains`, `groups`,
        `ids`, `class_names`, `domain_names`; also `domain` (codes into
        `domain_names`) and `paths` (as ids). Pickled objects are refused.
    check : read logits and features once, in small blocks, to refuse NaN and infinity.
        Without it a mapped file opens at once, whatever its size.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; wanted an archive file")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; wanted an archive file")
    with open(path, "rb") as handle:
        start = handle.read(2)
    try:
        return read_npz(path) if start == b"PK" else _map_archive(path, check)
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from error


def _map_archive(path: Path, check: bool) -> DomainArchive:
    header, places = read_layout(path)
    values = {
        name: places[name].map()
        for name in ("logits", "features", "labels")
        if name in places
    }
    columns = check_columns(
        **values,
        domains=places["domain_codes"].map() if "domain_codes" in places else None,
        domain_names=header.get("domain_names"),
        class_names=header.get("class_names"),
        metadata=header.get("metadata"),
        groups=map_tags(places, "groups"),
        ids=map_tags(places, "ids"),
    )
    if check:
        for name in values.keys() & {"logits", "features"}:
            places[name].check_finite(name)
    return DomainArchive._from_columns(**columns)
