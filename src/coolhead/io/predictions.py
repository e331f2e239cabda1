"""A prediction file whose layout is known: what every reader returns."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile, LargeZipFile

import numpy as np

from coolhead.numerics.classes import (
    column_order,
    encode_beside,
    is_numbered,
    name_labels,
    names_of_text,
    wanted_classes,
)

Columns = dict[str, Any]

# Errors of parsers at a broken or forged file, ValueError aside.
PARSER_ERRORS = (
    BadZipFile,
    LargeZipFile,
    zlib.error,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    SyntaxError,
    RuntimeError,
)


@dataclass(frozen=True)
class PredictionFile:
    """A prediction file whose layout is known and whose values are not read yet.

    Attributes
    ----------
    path : Path
        The file or folder.
    n_rows : int or None
        Number of rows; None if only reading to the end shows it (CSV).
    widths : dict of str to int
        Columns of each array found, of `logits`, `probabilities`, `features`,
        `labels`, `domains`, `groups` and `ids`; the last four count as 1.
    blocks : callable
        Yield the arrays of `n` rows after the other, in order. Domains may be codes
        into `domain_names`.
    load : callable
        Return the arrays of all rows.
    class_names : tuple of str or None, default=None
        Names of the columns of the scores.
    domain_names : tuple of str or None, default=None
        Names that integer domains index.
    metadata : dict, default={}
        JSON values.
    mapped : bool, default=False
        True if `load` maps the file into memory and reads nothing.
    bytes_per_row : int, default=0
        Bytes of a row in all arrays together.
    held_bytes : int, default=0
        Bytes that `blocks` must hold at once, however few rows it yields.
    label_names : callable or None, default=None
        Read the distinct labels, "" for none; None if labels are class numbers.
    truth : bool, default=False
        True if labels are booleans.
    by_name : bool, default=False
        True if integer labels are names of columns, as in tables; else they are
        column numbers.
    """

    path: Path
    n_rows: int | None
    widths: dict[str, int]
    blocks: Callable[[int], Iterator[Columns]]
    load: Callable[[], Columns]
    class_names: tuple[str, ...] | None = None
    domain_names: tuple[str, ...] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    mapped: bool = False
    bytes_per_row: int = 0
    held_bytes: int = 0
    label_names: Callable[[], Iterable[str]] | None = None
    truth: bool = False
    by_name: bool = False


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Raise every error of a parser as a ValueError of one line that names the file."""
    try:
        yield
    except PARSER_ERRORS as error:
        refuse_damaged(path, error)
    except ValueError as error:
        # Some messages hold names of columns, which may be any text.
        text = " ".join(str(error).split())[:600]
        raise ValueError(text if str(path) in text else f"{path}: {text}") from error


def refuse_damaged(path: Path, error: BaseException) -> NoReturn:
    """Raise a ValueError of one line for an error of a parser."""
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    raise ValueError(f"{path} cannot be read: {reason}") from error


def check_class_count(
    names: Sequence[str] | None, n_columns: int | None, scores: str = "logits"
) -> None:
    """Refuse more or fewer names than the scores have columns."""
    if names is not None and n_columns is not None and len(names) != n_columns:
        raise ValueError(
            f"class_names has {len(names)} names, the {scores} have {n_columns} "
            "columns; wanted the same"
        )


SCORES = ("logits", "probabilities")


def with_classes(file: PredictionFile, wanted: Sequence[str] | None) -> PredictionFile:
    """Return the file with its columns in the order wanted and labels as numbers.

    Parameters
    ----------
    file : PredictionFile
        Its `class_names` are those of the columns, if they have any.
    wanted : sequence of str or None
        Names of the classes in the order wanted, such as those of a calibrator.

    An empty name is a row without a label, whose number is -1.
    """
    n_classes = next((file.widths[s] for s in SCORES if s in file.widths), None)
    own, order = file.class_names, None
    names = wanted_classes(own, wanted)
    if names is not None and n_classes is not None:
        order = column_order(own, names, n_classes)
    if file.label_names is not None:
        found = [name for name in file.label_names() if name]
        if found:
            names = names_of_text(
                found, None, n_classes, names, own=own, counted=wanted is None
            )
    counted = names is None or (file.by_name and is_numbered(names))
    kept = file.label_names is None and not file.truth
    # Beside features alone nothing but labels can be moved, and classes may be absent.
    moved = kept and n_classes is None and None not in (own, names) and own != names
    if moved:
        n_classes = len(names or ())
    if order is None and kept and not moved and (counted or not file.by_name):
        return replace(file, class_names=None if counted else names)

    def arranged(columns: Columns) -> Columns:
        changed = {}
        if "labels" in columns:
            labels, beside = columns["labels"], own
            if moved:
                labels, beside = name_labels(labels, own), None
            settings: Any = {"unlabelled": True, "numbers": not file.by_name}
            changed["labels"], _ = encode_beside(
                labels, n_classes, len(labels), beside, names, **settings
            )
        for name in columns.keys() & set(SCORES) if order else ():
            changed[name] = np.asarray(columns[name])[:, order]
        return columns | changed

    def blocks(n_rows: int) -> Iterator[Columns]:
        return map(arranged, file.blocks(n_rows))

    return replace(
        file,
        blocks=blocks,
        load=lambda: arranged(file.load()),
        mapped=file.mapped and order is None,
        class_names=None if counted else names,
        label_names=None,
    )
