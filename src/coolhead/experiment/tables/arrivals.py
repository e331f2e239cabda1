"""In a new domain: what was expected, what came true, what a few labels changed."""

from typing import Any

import polars as pl

from coolhead.experiment.tables.run_scores import label, seen_of_target
from coolhead.experiment.tables.table import Table, TableBuilder


def arrival_means(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """One dictionary per method of the table ``arrival``, all in per cent.

    Keys: method, batch, n_labels, ece, and of those who expect an accuracy also off
    (mean absolute error), covered (share of intervals that hold the truth) and width
    (median); n is the number of intervals.
    """
    inside = pl.col("truth").is_between(pl.col("low"), pl.col("high"))
    means = frame.group_by(
        "method", "base", "batch", "n_labels", maintain_order=True
    ).agg(
        ece=100 * pl.col("ece").mean(),
        off=100 * (pl.col("expected") - pl.col("truth")).abs().mean(),
        covered=100 * inside.mean(),
        n_covered=inside.sum(),
        width=100 * (pl.col("high") - pl.col("low")).median(),
        n=pl.col("expected").count(),
    )
    plain = pl.col("n") == 0
    return means.sort(
        plain, "base", "n_labels", "batch", maintain_order=True
    ).to_dicts()


def arrivals(frame: pl.DataFrame) -> Table | None:
    """Means over splits, seeds and draws of labels; None where nobody arrived."""
    if frame.is_empty():
        return None
    cells = TableBuilder()
    for row in arrival_means(frame):
        name = label(row["method"])
        cells.add(name, "of target", None, mark=seen_of_target(row["method"]))
        cells.add(name, "ECE", row["ece"])
        if row["n"]:
            cells.add(name, "expected accuracy off by", row["off"])
            cells.add(name, "90 % interval covers", row["covered"])
            cells.add(name, "its median width", row["width"])
    notes = (
        "All in per cent or points, on all rows that are scored, means over splits, "
        "seeds and draws of labels. Unlabelled rows and labels come from the target's "
        "Small rows, no labelled row is scored.",
    )
    return Table("new-domain", "In a new domain", cells.frame(), notes, "method")
