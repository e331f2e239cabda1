"""How far off the expected accuracy was for those who arrived at a target."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from coolhead.figures.style import AFTER, INK, canvas, rows_height
from coolhead.figures.tables import of_method, read_frame


def arrival(
    table: Any, ax: Any = None, *, labels: Mapping[str, str] | None = None
) -> Any:
    """How far the expected accuracy was off in every split, and on average.

    table : the table ``arrival``; each split is a dot, the mean over draws a bar.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> table = pl.DataFrame(
    ...     {
    ...         "split": ["art > photo", "art > sketch"],
    ...         "seed": 0,
    ...         "method": "auto+batch",
    ...         "base": "auto",
    ...         "batch": True,
    ...         "n_labels": 0,
    ...         "truth": [0.70, 0.55],
    ...         "expected": [0.66, 0.61],
    ...         "low": [0.56, 0.50],
    ...         "high": [0.75, 0.72],
    ...     }
    ... )
    >>> ax = ch.figures.arrival(table)
    """
    frame = read_frame(table, "arrival").filter(pl.col("expected").is_not_null())
    order = frame.sort("base", "n_labels", "batch", maintain_order=True)
    names = list(dict.fromkeys(order["method"]))[::-1]
    with canvas(ax, (4.6, rows_height(2 * len(names)))) as ax:
        for row, name in enumerate(names):
            own = of_method(frame, name).with_columns(
                off=100 * (pl.col("expected") - pl.col("truth")).abs()
            )
            by_split = own.group_by("split", "seed", maintain_order=True)
            off = by_split.agg(pl.col("off").mean())["off"].to_numpy()
            # Heights from the order alone: the same picture each time.
            spread = 0.5 * ((np.arange(len(off)) * 0.618) % 1 - 0.5)
            ax.plot(off, row + spread, "o", color=AFTER, ms=3, alpha=0.35, mew=0)
            ax.plot(off.mean(), row, "|", color=INK, ms=14, mew=1.8)
        texts = [_told(frame, name, labels or {}) for name in names]
        ax.set_yticks(range(len(names)), texts)
        ax.set(xlim=(0, None), ylim=(-0.6, max(len(names), 1) - 0.4))
        ax.set_xlabel("expected accuracy off by (points)")
        ax.grid(axis="x")
    return ax


def _told(frame: pl.DataFrame, name: str, labels: Mapping[str, str]) -> str:
    own = of_method(frame, name)
    covered = own.select(pl.col("truth").is_between("low", "high").mean()).item()
    width = own.select((pl.col("high") - pl.col("low")).median()).item()
    text = f"covers {100 * covered:.0f} %, {100 * width:.0f} points wide"
    return f"{labels.get(name, name)}\n{text}"
