"""Tables beside the scores: how far the target lies off, and what methods cost."""

import polars as pl

from coolhead.experiment.tables.run_scores import RunScores, column_mean, label
from coolhead.experiment.tables.table import Table, TableBuilder

DIAGNOSTICS = {
    "discriminator_auroc": "AUROC",
    "weight_variance": "Var(w)",
    "weight_variance_calibration": "Var(w), as many rows",
    "weight_variance_source": "Var(w) from source",
    "renyi_divergence": "d₂",
    "effective_sample_size": "effective sample size",
    "n_calibration": "of",
    "share_outside": "share outside",
    "unreliable": "unreliable",
}


def shift(frame: pl.DataFrame) -> Table | None:
    """Shift diagnostics by split, averaged over the seeds."""
    if frame.is_empty():
        return None
    cells = TableBuilder()
    groups = frame.group_by("split", "diagnostic", maintain_order=True)
    means = groups.agg(pl.col("value").mean())
    for row in means.iter_rows(named=True):
        if row["diagnostic"] in DIAGNOSTICS:
            cells.add(row["split"], DIAGNOSTICS[row["diagnostic"]], row["value"])
    notes = (
        "Calibration against target features. AUROC 0.5: no shift visible. Unreliable: "
        "AUROC above 0.99 or fewer than 30 effective samples. Var(w) from source: "
        "source against target; as many rows: of calibration, as many as of source.",
    )
    title = "How far the target lies from the calibration data"
    return Table("shift", title, cells.frame(), notes, "split")


def own_metrics(scores: RunScores, names: list[str]) -> Table:
    """Means over splits and seeds of the functions that the protocol names."""
    cells = TableBuilder()
    for method in scores.methods:
        for name in names:
            cells.add(label(method), name, column_mean(scores.of(method), name))
    title = "Metrics of the protocol's own"
    return Table("own-metrics", title, cells.frame(), (), "method", 4)


def runtimes(frame: pl.DataFrame) -> Table | None:
    """Seconds per split of each method, fit and prediction."""
    if frame.is_empty():
        return None
    cells = TableBuilder()
    for method in dict.fromkeys(frame["method"]):
        found = frame.filter(pl.col("method") == method)
        cells.add(label(method), "fit (s)", column_mean(found, "fit_seconds"))
        cells.add(label(method), "predict (s)", column_mean(found, "predict_seconds"))
    notes = (
        "Wall seconds in one worker. The k-means that methods share counts for the "
        "first that asks for it.",
    )
    return Table(
        "runtimes", "Mean run time per split", cells.frame(), notes, "method", 3
    )
