"""Whether training for domain generalization helps."""

import numpy as np
import polars as pl

from coolhead.experiment.tables.run_scores import RunScores
from coolhead.experiment.tables.table import Table, TableBuilder

# What is asked of: the method, the column of its scores, and which way is better.
ASKED = {
    "accuracy (%)": ("uncalibrated", "accuracy", 1),
    "ECE (%), uncalibrated": ("uncalibrated", "ece_mean", -1),
    "ECE (%), ensemble": ("ensemble", "ece_mean", -1),
}


def does_it_help(plain: RunScores, mldg: RunScores) -> Table:
    """Paired over the splits; two standard errors decide."""
    cells = TableBuilder()
    for row, (method, column, sign) in ASKED.items():
        if method not in plain.methods or method not in mldg.methods:
            continue
        pairs = _by_split(plain, method, column).join(
            _by_split(mldg, method, column), on="split", suffix="_mldg"
        )
        before, after = (pairs[name].to_numpy() for name in (column, f"{column}_mldg"))
        gain = sign * (after - before)
        cells.add(row, "plain", float(before.mean()))
        cells.add(row, "MLDG", float(after.mean()))
        cells.add(row, "better splits", float((gain > 0).sum()))
        cells.add(row, "of", float(len(gain)))
        cells.add(row, "does it help?", None, mark=_verdict(gain))
    notes = (
        "Differences of paired splits, against two standard errors of their mean.",
    )
    whole = ("better splits", "of")
    title = "Does MLDG help?"
    return Table("mldg-helps", title, cells.frame(), notes, whole=whole)


def _verdict(gain: np.ndarray) -> str:
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    if abs(gain.mean()) <= 2 * error:
        return "no difference beyond chance"
    return "yes" if gain.mean() > 0 else "no"


def _by_split(scores: RunScores, method: str, column: str) -> pl.DataFrame:
    return scores.of(method).group_by("split").agg(pl.col(column).mean())
