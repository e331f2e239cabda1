"""In a new domain: what was expected, what came true, what a few labels changed."""

import numpy as np
import polars as pl

from coolhead.report.diagnostics import adaptation_means
from coolhead.report.tables import (
    RunScores,
    Table,
    TableBuilder,
    column_mean,
    label,
    seen_of_target,
)


def adaptations(frame: pl.DataFrame) -> Table | None:
    """Means over splits, seeds and draws of labels; None where no method adapts."""
    if frame.is_empty():
        return None
    cells = TableBuilder()
    for row in adaptation_means(frame):
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
