"""Counts over splits: how clear the reductions are, and where calibration harms."""

import numpy as np
import polars as pl

from coolhead.experiment.tables.beside_paper import Published
from coolhead.experiment.tables.run_scores import RunScores, label, proposed
from coolhead.experiment.tables.table import Table, TableBuilder
from coolhead.metrics import sigma_counts

INTERVALS = ("< −3σ", "−3 to −2σ", "−2 to 0σ", "0 to 2σ", "2 to 3σ", "> 3σ")
PAPER_METHODS = ("set-level", "nearest-cluster", "regression", "ensemble")
RIVALS = ("uncalibrated", "source-only", "transcal", "wts")
POST_HOC = "post-hoc best"


def reductions_in_sigma(scores: RunScores, published: Published | None = None) -> Table:
    """Number of splits by (ECE of the rival − ECE) / sd of the method's draws."""
    cells = TableBuilder()
    rivals = [name for name in RIVALS if name in scores.methods]
    for rival in rivals:
        for method in proposed(scores.methods):
            if method != rival:
                pairs = scores.paired(method, rival)
                _add_counts(cells, f"{label(method)} against {label(rival)}", pairs)
        best = _best_of_each_split(scores, rival)
        if best is not None:
            _add_counts(cells, f"{POST_HOC} against {label(rival)}", best)
        printed = () if published is None else published.sigma_counts(rival)
        for name, count in zip(INTERVALS, printed, strict=bool(printed)):
            cells.add(f"paper's {POST_HOC} against {label(rival)}", name, count)
    notes = (
        f"{POST_HOC}: in each split the best of the paper's methods, chosen by the "
        "very numbers it is judged by, as in the paper's table. It is not a method.",
    )
    title = "Number of splits by reduction of the ECE, in sd of the draws"
    return Table("sigma-counts", title, cells.frame(), notes, "", digits=0)


def _add_counts(cells: TableBuilder, row: str, pairs: pl.DataFrame) -> None:
    # Without spread (the draws hold all rows) there is no unit to count in.
    pairs = pairs.filter(pl.col("ece_sd") > 0)
    if pairs.is_empty():
        return
    found = sigma_counts(
        pairs["ece_mean_base"].to_numpy(),
        pairs["ece_mean"].to_numpy(),
        pairs["ece_sd"].to_numpy(),
    )
    for name, count in zip(INTERVALS, found.counts, strict=True):
        cells.add(row, name, float(count))


def _best_of_each_split(scores: RunScores, rival: str) -> pl.DataFrame | None:
    present = [name for name in PAPER_METHODS if name in scores.methods]
    if not present:
        return None
    pairs = pl.concat([scores.paired(name, rival) for name in present])
    keys = ["split", "calibration", "seed"]
    return pairs.sort("ece_mean").unique(keys, keep="first", maintain_order=True)


def harm(scores: RunScores) -> Table:
    """Where a method leaves the target worse than no calibration, and by how much."""
    cells = TableBuilder()
    n_cells = scores.of("uncalibrated").height
    for method in scores.methods:
        if method == "uncalibrated":
            continue
        pairs = scores.paired(method, "uncalibrated")
        change = (pairs["ece_mean"] - pairs["ece_mean_base"]).to_numpy()
        worse, row = change > 0, label(method)
        cells.add(row, "worse", float(worse.sum()))
        cells.add(row, "of", float(n_cells))
        cells.add(row, "worse by > 1 point", float((change > 1).sum()))
        clear = pairs["ece_vs_uncalibrated_low"].to_numpy() > 0
        cells.add(row, "paired interval above 0", float(clear.sum()))
        cells.add(row, "mean harm where worse", _mean(change[worse]))
        cells.add(row, "largest harm", float(change.max()) if worse.any() else None)
        where = pairs["split"][int(change.argmax())] if worse.any() else ""
        cells.add(row, "in", None, mark=where)
    title = "Harm: splits with a higher ECE than uncalibrated (ECE in points)"
    whole = ("worse", "of", "worse by > 1 point", "paired interval above 0")
    return Table("harm", title, cells.frame(), corner="method", whole=whole)


def harm_by_split(scores: RunScores) -> Table:
    """Change of the ECE against uncalibrated in every split; + is harm."""
    cells = TableBuilder()
    for split in scores.splits:
        for method in proposed(scores.methods):
            pairs = scores.paired(method, "uncalibrated")
            pairs = pairs.filter(pl.col("split") == split)
            change = (pairs["ece_mean"] - pairs["ece_mean_base"]).to_numpy()
            mark = " (worse)" if change.size and change.mean() > 0 else ""
            cells.add(split, label(method), _mean(change), mark=mark)
    title = "Change of the ECE against uncalibrated by split (points)"
    return Table("harm-by-split", title, cells.frame(), corner="split")


def sensitivity(frame: pl.DataFrame) -> Table | None:
    """ECE of the cluster methods for several numbers of clusters."""
    if frame.is_empty():
        return None
    cells = TableBuilder()
    for method in dict.fromkeys(frame["method"]):
        found = frame.filter(pl.col("method") == method)
        for count in sorted(set(found["n_clusters"])):
            part = found.filter(pl.col("n_clusters") == count)["ece"] * 100
            cells.add(label(method), f"k = {count}", _mean(part.to_numpy()))
    title = "ECE (%) by number of clusters, mean over splits and seeds"
    notes = ("The paper calls the effect minor.",)
    return Table("sensitivity", title, cells.frame(), notes, "method")


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None
