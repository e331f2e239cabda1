"""Split by split: intervals, asterisks, and the calibration gain."""

from collections.abc import Callable, Iterator

import polars as pl

from coolhead.experiment.tables.beside_paper import Published
from coolhead.experiment.tables.counts import PAPER_METHODS
from coolhead.experiment.tables.run_scores import RunScores, competing, label, proposed
from coolhead.experiment.tables.table import Table, TableBuilder, best_cells
from coolhead.metrics.comparison import draws_for_holm

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

    n_bootstrap : resamples of the run, if it is to be told that they were too few.
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
            if printed is not None:
                cells.add(split, f"{label(method)}, paper", printed[0])
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
