"""What every kind of prediction file gives, once opened."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class OpenedFile:
    """A prediction file whose layout is known and whose values are not read yet.

    Attributes
    ----------
    path : of the file or folder.
    n_rows : number of rows; None where only reading to the end would tell (CSV).
    widths : columns of each array found, of `logits`, `probabilities`, `features`,
        `labels`, `domains`; the last two count as 1.
    class_names : where the file names its classes.
    blocks : gives the arrays of `n` rows after the other, in order.
    load : gives the arrays of all rows, mapped into memory where that is possible.
    """

    path: Path
    n_rows: int | None
    widths: dict[str, int]
    class_names: tuple[str, ...] | None
    blocks: Callable[[int], Iterator[Columns]]
    load: Callable[[], Columns]


def refuse_damaged(path: Path, error: BaseException) -> NoReturn:
    """One line for whatever a broken or forged file made a parser say."""
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    raise ValueError(f"{path} cannot be read: {reason}") from error
