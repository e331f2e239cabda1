"""What every kind of prediction file gives, once opened."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile, LargeZipFile

import numpy as np

Columns = dict[str, Any]

# What a parser may say of a broken or forged file, ValueError aside.
PARSER_ERRORS = (
    BadZipFile,
    LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    MemoryError,
    SyntaxError,
    RuntimeError,
)


@dataclass(frozen=True)
class PredictionFile:
    """A prediction file whose layout is known and whose values are not read yet.

    Attributes
    ----------
    path : of the file or folder.
    n_rows : number of rows; None where only reading to the end would tell (CSV).
    widths : columns of each array found, of `logits`, `probabilities`, `features`,
        `labels`, `domains`, `groups`, `ids`; the last four count as 1.
    blocks : gives the arrays of `n` rows after the other, in order, domains by name.
    load : gives the arrays of all rows; domains may be codes into `domain_names`.
    mapped : True where `load` maps the file into memory and reads nothing.
    bytes_per_row : of all arrays together.
    held_bytes : what `blocks` must read at once, however few rows it gives.
    label_names : reads the distinct labels where they are names, "" for none; None
        where labels are class numbers.
    named_labels : True where the file holds names and `blocks` and `load` give the
        numbers of their classes.
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
    label_names: Callable[[], set[str]] | None = None
    named_labels: bool = False


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Whatever goes wrong with a file is a ValueError of one line that names it."""
    try:
        yield
    except PARSER_ERRORS as error:
        refuse_damaged(path, error)
    except ValueError as error:
        # Names of columns stand in some messages, and may hold anything.
        text = " ".join(str(error).split())[:600]
        raise ValueError(text if str(path) in text else f"{path}: {text}") from error


def refuse_damaged(path: Path, error: BaseException) -> NoReturn:
    """One line for whatever a broken or forged file made a parser say."""
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    raise ValueError(f"{path} cannot be read: {reason}") from error


def check_class_names(file: PredictionFile) -> None:
    """As many names as the scores have columns."""
    for scores in ("logits", "probabilities"):
        wanted = file.widths.get(scores)
        if file.class_names and wanted and len(file.class_names) != wanted:
            raise ValueError(
                f"class_names has {len(file.class_names)} names, the {scores} have "
                f"{wanted} columns; wanted the same"
            )


def refuse_long_text(dtype: np.dtype, name: str, most: int = 4096) -> None:
    """Fixed-width text takes the room of its longest string in every row."""
    length = dtype.itemsize // {"U": 4, "S": 1}.get(dtype.kind, dtype.itemsize + 1)
    if length > most:
        raise ValueError(
            f"{name} has room for {length} characters in every row; wanted at most "
            f"{most}"
        )
