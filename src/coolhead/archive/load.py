"""A whole file of any kind as an archive."""

import os
from collections.abc import Sequence
from typing import Any

from coolhead.archive.archive import DomainArchive
from coolhead.archive.checks import check_values
from coolhead.archive.columns import check_columns
from coolhead.archive.open import open_predictions
from coolhead.archive.prediction_file import Columns, PredictionFile, naming
from coolhead.archive.stream import checked_scores, machine_memory, score_column

BYTES_PER_LOOK = 2**20


def load_archive(
    path: str | os.PathLike,
    *,
    input: str | None = None,
    labelled: bool = False,
    domains: Sequence[str] | None = None,
    check: bool = True,
    class_names: Sequence[str] | None = None,
) -> DomainArchive:
    """Read a file of any kind; what can be mapped into memory is not read into it.

    Parameters
    ----------
    path : a file written by `DomainArchive.save`; an .npz file or a folder of .npy
        files with the arrays `logits`, `features`, `labels`, `domains` (names, or
        codes into `domain_names`), `groups`, `ids`, `class_names`; a Parquet, Arrow or
        CSV table with the columns `logit_*`, `feature_*`, `label`, `domain`, `group`,
        `id`; JSON lines of multiple choice, as lm-evaluation-harness logs them, whose
        rows have their own number of options. Pickled objects are refused.
    input : "logits", or "probabilities" where there are no logits; then one of them
        must be there. By default a file may hold features alone.
    labelled : leave out the rows without a label (-1, or an empty cell) and refuse a
        file that has no others.
    domains : names of the domains wanted; all by default.
    check : read logits and features once, in small blocks, to refuse NaN and infinity.
        Without it a mapped file opens at once, whatever its size.
    class_names : of the scores' columns, for labels that are names in a file which does
        not say it itself; by default the sorted labels, as in scikit-learn.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.datasets.simulate_domains().save(f"{folder}/some.safetensors")
    ...     data = ch.load_archive(f"{folder}/some.safetensors", domains=["site-3"])
    ...     print(len(data), data.n_classes, data.domain_names)
    ...
    300 3 ('site-3',)
    """
    file = open_predictions(path, class_names)
    name = _score_column(file, input)
    with naming(file.path):
        _refuse_unread(file, labelled)
        columns = file.load()
        if labelled:
            columns = _labelled_rows(columns)
        if name is not None and input == "probabilities":
            columns["logits"] = checked_scores(columns, name, input)
        archive = DomainArchive._from_columns(**_checked(file, columns))
        if labelled or domains is not None:
            archive = archive.select(*(domains or _not_empty(archive)))
        if check and file.mapped and len(archive) == file.n_rows:
            _check_by_reading(file)
        elif check:
            archive._check_values("logits", "features")
    return archive


def _score_column(file: PredictionFile, input: str | None) -> str | None:
    """None where a file of features alone will do."""
    alone = "features" in file.widths and "probabilities" not in file.widths
    if input is None and alone:
        return None
    return score_column(file, input or "logits")


def _refuse_unread(file: PredictionFile, labelled: bool) -> None:
    """What can be told before a small file unpacks to a lot."""
    if labelled and "labels" not in file.widths:
        raise ValueError(
            f"{file.path} has no labels (columns found: {', '.join(file.widths)}); "
            "wanted an array labels, or a column label"
        )
    size, there = (file.n_rows or 0) * file.bytes_per_row, machine_memory()
    if not file.mapped and size > there:
        raise ValueError(
            f"{file.path} unpacks to {size / 1e9:.2g} GB, of {there / 1e9:.2g} GB of "
            "memory that there are; wanted fewer rows, or a file that is not packed"
        )


def _labelled_rows(columns: Columns) -> Columns:
    """Rows with a label; untouched where that is all of them."""
    keep = columns["labels"] != -1
    if not keep.any():
        raise ValueError("no row has a label; wanted labelled rows")
    if keep.all():
        return columns
    return {name: array[keep] for name, array in columns.items()}


def _checked(file: PredictionFile, columns: Columns) -> dict[str, Any]:
    columns = {name: c for name, c in columns.items() if name != "probabilities"}
    return check_columns(
        **columns,
        class_names=file.class_names,
        domain_names=file.domain_names,
        metadata=file.metadata,
    )


def _not_empty(archive: DomainArchive) -> list[str]:
    return [name for name, n_rows in archive.domain_sizes().items() if n_rows]


def _check_by_reading(file: PredictionFile) -> None:
    """Block by block from the file, so that its pages do not fill the memory."""
    start = 0
    for columns in file.blocks(max(1, BYTES_PER_LOOK // file.bytes_per_row)):
        for name in columns.keys() & {"logits", "features"}:
            check_values(columns[name], name, start)
        start += len(next(iter(columns.values())))
