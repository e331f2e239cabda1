"""One table with every split and method: the numbers behind all figures."""

from typing import Any

import polars as pl

from coolhead.experiment.tables.run_scores import RunScores, label
from coolhead.experiment.tables.table import Table, TableBuilder

COLUMNS = {
    "ECE (%)": "ece_mean",
    "null": "ece_null",
    "debiased": "ece_debiased",
    "signed gap": "signed_gap",
    "NLL": "nll",
    "Brier": "brier",
    "gain": "gain",
    "accuracy": "accuracy",
    "median T": "temperature_median",
    "rows": "n_evaluated",
}
CHANGE = "change of ECE"


def scores_table(scores: RunScores, noun: str) -> Table:
    """Scores by split and method, averaged over the seeds."""
    cells = TableBuilder()
    frame = scores.frame
    numeric = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    groups = frame.group_by("split", "method", maintain_order=True)
    rows = groups.agg(pl.col(numeric).mean()).to_dicts()
    present = {n: c for n, c in COLUMNS.items() if c in numeric}
    for row in rows:
        name = f"{row['split']} · {label(row['method'])}"
        for column, metric in present.items():
            cells.add(name, column, row[metric])
            if metric == "ece_mean":
                _add_change(cells, name, row)
    classifier = frame["classifier"][0]
    notes = (
        "ECE, gap, Brier, gain and accuracy in per cent. Change: against uncalibrated, "
        "on all rows, with its 95 % paired bootstrap interval; negative is better.",
    )
    title = f"All scores by {noun} and method"
    name = f"all-scores-{classifier}"
    return Table(name, title, cells.frame(), notes, f"{noun} · method")


def _add_change(cells: TableBuilder, name: str, row: dict[str, Any]) -> None:
    parts = [row.get(f"ece_vs_uncalibrated{end}") for end in ("", "_low", "_high")]
    if None not in parts:
        cells.add(name, CHANGE, parts[0], low=parts[1], high=parts[2])
    else:
        cells.add(name, CHANGE, None)
