"""A whole prediction file as an archive, for fitting and evaluating."""

import os
from collections.abc import Sequence
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from coolhead.archive import DomainArchive
from coolhead.archive.strings import suggest
from coolhead.predictions.blocks import checked_scores, score_column
from coolhead.predictions.opened import Columns, refuse_damaged
from coolhead.predictions.opening import open_predictions


def load_predictions(
    path: str | os.PathLike,
    *,
    input: str = "logits",
    domains: Sequence[str] | None = None,
) -> DomainArchive:
    """The labelled rows of a prediction file of any kind.

    Parameters
    ----------
    path : .npz, .npy folder, safetensors archive, Parquet, Arrow or CSV.
    input : "logits", or "probabilities" where there are no logits.
    domains : names of the domains wanted; all by default.

    Rows without a label (-1, or an empty cell) are left out.
    """
    opened = open_predictions(path)
    name = score_column(opened, input)
    if "labels" not in opened.widths:
        raise ValueError(
            f"{path} has no labels (columns found: {', '.join(opened.widths)}); wanted "
            "an array labels, or a column label"
        )
    try:
        columns = _wanted_rows(opened.load(), domains)
        columns["logits"] = checked_scores(columns, name, input)
        return _archive(columns, opened.class_names)
    except (BadZipFile, ZlibError, EOFError, MemoryError) as error:
        refuse_damaged(opened.path, error)
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from error


def _archive(columns: Columns, class_names: Any) -> DomainArchive:
    return DomainArchive(
        columns["logits"],
        columns.get("features"),
        columns["labels"],
        columns.get("domains"),
        class_names=class_names,
    )


def _wanted_rows(columns: Columns, domains: Sequence[str] | None) -> Columns:
    """Labelled rows of the wanted domains; untouched where that is all of them."""
    keep = columns["labels"] != -1
    if not keep.any():
        raise ValueError("no row has a label; wanted labelled rows")
    if domains is not None:
        if "domains" not in columns:
            raise ValueError(f"there are no domains; wanted {', '.join(domains)}")
        names = columns["domains"].astype(np.str_)
        labelled = np.unique(names[keep])
        for wanted in domains:
            if wanted not in labelled:
                raise ValueError(
                    f"domain {wanted!r} has no labelled rows"
                    f"{suggest(wanted, labelled.tolist())}"
                )
        keep &= np.isin(names, list(domains))
    if keep.all():
        return columns
    return {name: array[keep] for name, array in columns.items()}
