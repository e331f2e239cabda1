"""How the error falls with the number of labels of the new domain."""

from itertools import cycle
from typing import Any

import polars as pl

from coolhead.figures.by_target import label_ends
from coolhead.figures.style import LINES, canvas
from coolhead.figures.tables import read_frame

PLAIN = "plain"


def error_by_labels(arrival: Any, ax: Any = None) -> Any:
    """Mean ECE against the number of labels, a line for what else was used.

    arrival : the table ``arrival``. Lines: each base with labels alone, the same with
        the unlabelled rows, and scaling on the labels alone.

    Examples
    --------
    >>> import coolhead as ch
    >>> import polars as pl
    >>> arrival = pl.DataFrame(
    ...     {
    ...         "method": ["auto+batch", "auto+batch+20", "plain+20"],
    ...         "base": ["auto", "auto", "plain"],
    ...         "batch": [True, True, False],
    ...         "n_labels": [0, 20, 20],
    ...         "ece": [0.09, 0.06, 0.11],
    ...     }
    ... )
    >>> ax = ch.figures.error_by_labels(arrival)
    """
    frame = read_frame(arrival, "arrival")
    counts = sorted(set(frame["n_labels"]))
    means = frame.group_by("base", "batch", "n_labels", maintain_order=True).agg(
        ece=100 * pl.col("ece").mean()
    )
    lines = means.select("base", "batch").unique(maintain_order=True).rows()
    with canvas(ax) as ax:
        ends = []
        # From the second on: the first colour means "before" everywhere else.
        looks = cycle([*LINES[1:], LINES[0]])
        for (base, batch), (colour, dashes, marker, words) in zip(
            lines, looks, strict=False
        ):
            own = means.filter(pl.col("base") == base, pl.col("batch") == batch)
            own = own.sort("n_labels")
            places = [counts.index(n) for n in own["n_labels"]]
            style = {"color": colour, "ls": dashes, "marker": marker}
            ax.plot(places, own["ece"], ms=4, mfc="white", **style)
            ends.append((own["ece"][-1], line_name(base, batch), words))
        ax.set_xticks(range(len(counts)), [str(count) for count in counts])
        ax.set_xlabel("labels of the new domain")
        ax.set_ylim(bottom=0)
        ax.set_ylabel("ECE (%)")
        ax.grid(axis="y")
        label_ends(ax, len(counts) - 1, ends)
    return ax


def line_name(base: str, batch: bool) -> str:
    """What a line is called beside its end."""
    if base == PLAIN:
        return "labels alone"
    return f"{base} + batch" if batch else base
