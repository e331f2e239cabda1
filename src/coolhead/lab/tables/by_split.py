"""Counts over splits: how clear the reductions are, and where calibration harms."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from coolhead.lab.tables.paper import Published
from coolhead.metrics import sigma_counts
from coolhead.metrics.bootstrap import draws_for_holm
from coolhead.report.tables import (
    RunScores,
    Table,
    TableBuilder,
    best_cells,
    competing,
    label,
    proposed,
)

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
        best = best_of_each_split(scores, rival)
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


def best_of_each_split(scores: RunScores, rival: str) -> pl.DataFrame | None:
    """The best of the paper's methods in each split, beside a rival.

    It is chosen by the errors that it is judged by.
    """
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


ASTERISK = (
    "* the 95 % percentile interval of the draws lies below that of source-only, and "
    "beside Office-Home's printed table below TransCal and WTS too (the paper's "
    "rules). With several seeds a mark needs the rule to hold for every seed."
)
DAGGER = (
    "† the paired bootstrap interval of the difference to source-only lies below "
    "zero, Holm-corrected over the methods of the split."
)


def ece_by_split(
    scores: RunScores,
    published: Published | None = None,
    *,
    n_bootstrap: int | None = None,
) -> Table:
    """Mean, sd and 95 % percentile interval of the resampled ECE, with marks.

    Parameters
    ----------
    scores : RunScores
    published : Published, default=None
        The paper's numbers for the same data.
    n_bootstrap : int, default=None
        Resamples of the run; too few for a dagger are reported.
    """
    cells = TableBuilder()
    for split, method, found in _each_result(scores):
        mean, sd, low, high = _averages(found, "ece")
        mark = _mark(scores, method, split, published)
        cells.add(split, label(method), mean, sd=sd, low=low, high=high, mark=mark)
        if published is not None:
            where = (method, found["source"][0], found["target"][0])
            printed = published.by_split(*where)
            star = "*" if published.has_asterisk(*where) else ""
            published.compare(cells, split, label(method), mean, sd, printed, mark=star)
    notes = [ASTERISK, DAGGER]
    n_others = len(scores.methods) - 1
    if n_bootstrap is not None and draws_for_holm(n_others) > n_bootstrap:
        notes[1] = (
            f"† is given to none: {n_bootstrap} bootstrap resamples are too few for "
            f"{n_others} methods, {draws_for_holm(n_others)} would do."
        )
    notes += [] if published is None else [published.NOTE]
    title = "ECE by split (%), mean ± sd [95 % interval of the draws]"
    frame, among = cells.frame(), competing(scores.methods)
    bold = best_cells(frame, scores.splits, among=among, along="row")
    return Table("by-split", title, frame, tuple(notes), "split", bold=bold)


def asterisks(scores: RunScores, published: Published) -> Table:
    """In how many splits a method has the paper's asterisk, and had it there."""
    cells = TableBuilder()
    first = scores.of("uncalibrated").unique("split", keep="first")
    roles = dict(
        zip(first["split"], first.select("source", "target").rows(), strict=True)
    )
    for method in proposed(scores.methods):
        marks = [_mark(scores, method, split, published) for split in scores.splits]
        row = label(method)
        cells.add(row, "splits", float(sum("*" in mark for mark in marks)))
        if method in PAPER_METHODS:
            stars = [published.has_asterisk(method, *roles[s]) for s in scores.splits]
            cells.add(row, "paper", float(sum(stars)))
        cells.add(row, "of", float(len(scores.splits)))
    title = "Number of splits with the paper's asterisk"
    return Table("asterisks", title, cells.frame(), (ASTERISK,), "method", digits=0)


def gain_by_split(scores: RunScores, published: Published | None = None) -> Table:
    """Fall of the Brier score against uncalibrated, with its interval."""
    cells = TableBuilder()
    for split, method, found in _each_result(scores):
        if method == "uncalibrated":
            continue
        mean, _, low, high = _averages(found, "gain")
        mark = "*" if _gain_is_clear(scores, method, split) else ""
        cells.add(split, label(method), mean, low=low, high=high, mark=mark)
        if published is not None:
            where = (method, found["source"][0], found["target"][0])
            printed = published.gain(*where)
            if printed:
                cells.add(split, f"{label(method)}, paper", **printed)
    notes = (
        "Brier score (summed over classes) uncalibrated minus calibrated, positive is "
        "better. For temperatures that depend on the features it is a gain in score, "
        "not purely in calibration. * interval above that of source-only.",
    )
    title = "Calibration gain by split (%), mean [95 % interval of the draws]"
    return Table("gain", title, cells.frame(), notes, "split")


def _each_result(scores: RunScores) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Split, method and their rows, wherever the method has some."""
    for split in scores.splits:
        for method in scores.methods:
            found = scores.of(method, split=split)
            if not found.is_empty():
                yield split, method, found


def _averages(found: pl.DataFrame, metric: str) -> list[float]:
    """Mean, sd, low and high, each averaged over the seeds."""
    columns = [f"{metric}_{part}" for part in ("mean", "sd", "low", "high")]
    return found.select(columns).to_numpy().mean(axis=0).tolist()


def _mark(
    scores: RunScores, method: str, split: str, published: Published | None
) -> str:
    if method not in proposed(scores.methods):
        return ""
    separate = _every_seed(
        scores, method, split, lambda row: row["ece_high"] < row["ece_low_base"]
    )
    paired = _every_seed(
        scores, method, split, lambda row: bool(row["better_than_source"])
    )
    office_home = published is not None and published.dataset == "office_home"
    for rival in {"transcal", "wts"} & set(scores.methods) if office_home else ():
        separate &= _every_seed(
            scores,
            method,
            split,
            lambda row: row["ece_high"] < row["ece_mean_base"],
            rival,
        )
    return ("*" if separate else "") + ("†" if paired else "")


def _gain_is_clear(scores: RunScores, method: str, split: str) -> bool:
    return method in proposed(scores.methods) and _every_seed(
        scores, method, split, lambda row: row["gain_low"] > row["gain_high_base"]
    )


def _every_seed(
    scores: RunScores,
    method: str,
    split: str,
    holds: Callable[[dict], bool],
    rival: str = "source-only",
) -> bool:
    rows = scores.paired_in(split, method, rival)
    return len(rows) > 0 and all(map(holds, rows))
