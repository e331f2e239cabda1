"""Averages over splits and seeds: by target, improvement ratio, accuracy, summary."""

import warnings

import numpy as np
import polars as pl

from coolhead.lab.tables.paper import Published
from coolhead.metrics import improvement_ratio, pooled_sigma
from coolhead.report.tables import (
    RunScores,
    Table,
    TableBuilder,
    best_cells,
    column_mean,
    competing,
    label,
    proposed,
    seed_deviation,
    seen_of_target,
)

ALL = "all"
SUMMARY = {
    "ECE": "ece_mean",
    "null": "ece_null",
    "NLL": "nll",
    "gain": "gain",
    "acc": "accuracy",
}


def by_target(scores: RunScores, published: Published | None = None) -> Table:
    """Mean ECE of the resamples by target; sigma pooled over draws and splits."""
    cells = TableBuilder()
    for method in scores.methods:
        for target in [*scores.targets, ALL]:
            where = {} if target == ALL else {"target": target}
            mean, sigma = _pooled(scores.of(method, **where))
            cells.add(label(method), target, mean, sd=sigma)
            if published is not None and mean is not None and sigma is not None:
                theirs = published.by_target(method, target)
                published.compare(cells, label(method), target, mean, sigma, theirs)
    notes = ["sigma is pooled: sqrt(mean of the draws' variances + variance of means)."]
    if published is not None:
        notes.append(published.NOTE)
    title = "ECE by target (%), mean ± pooled sigma"
    frame = cells.frame()
    bold = best_cells(frame, [*scores.targets, ALL], among=competing(scores.methods))
    return Table("by-target", title, frame, tuple(notes), "method", bold=bold)


def improvement_ratios(scores: RunScores, published: Published | None = None) -> Table:
    """How much of the way from source-only to the oracle each method goes."""
    cells = TableBuilder()
    references = [_mean(scores, name) for name in ("source-only", "target-only")]
    for method in scores.methods:
        ratio = _ratio(_mean(scores, method), references)
        cells.add(label(method), "improvement ratio", ratio, mark=_undefined(ratio))
        theirs = None if published is None else published.improvement_ratio(method)
        if theirs is not None:
            cells.add(label(method), "paper", theirs)
    title = "Improvement ratio (ECE source − ECE) / (ECE source − ECE oracle)"
    notes = ("Averages over all splits and seeds inside the ratio.",)
    frame, among = cells.frame(), competing(scores.methods)
    bold = best_cells(frame, ["improvement ratio"], among=among, highest=True)
    return Table("improvement-ratio", title, frame, notes, "method", bold=bold)


def accuracy(scores: RunScores, published: Published | None = None) -> Table:
    """Accuracy by target; temperatures never change it."""
    cells = TableBuilder()
    for method in scores.methods:
        for target in scores.targets:
            found = scores.of(method, target=target)
            cells.add(label(method), target, column_mean(found, "accuracy"))
        cells.add(label(method), ALL, column_mean(scores.of(method), "accuracy"))
    if published is not None:
        for target in scores.targets:
            cells.add("Paper", target, published.accuracy(target))
    title = "Accuracy on the target's Large rows (%)"
    return Table("accuracy", title, cells.frame(), corner="method")


def summary(scores: RunScores) -> Table:
    """One line per method: the numbers to read first."""
    cells = TableBuilder()
    references = [_mean(scores, name) for name in ("source-only", "target-only")]
    for method in scores.methods:
        found, name = scores.of(method), label(method)
        for column, metric in SUMMARY.items():
            spread = seed_deviation(found, metric)
            cells.add(name, column, column_mean(found, metric), sd=spread)
        ratio = _ratio(_mean(scores, method), references)
        cells.add(name, "IR", ratio, mark=_undefined(ratio))
        worse = _share_worse(scores.paired(method, "uncalibrated"))
        cells.add(name, "worse", worse)
        cells.add(name, "of target", None, mark=seen_of_target(method))
    spread = "; ± their standard deviation over seeds" if len(scores.seeds) > 1 else ""
    notes = (
        f"ECE, gain and accuracy in per cent, means over splits and seeds{spread}. "
        "Null: the ECE that a perfectly calibrated classifier shows by chance. Gain: "
        "fall of the Brier score. IR: share of the way from source-only to the oracle. "
        "Worse: share of splits (%) with a higher ECE than uncalibrated. Of target: "
        "what a method sees of it.",
    )
    frame, among = cells.frame(), competing(scores.methods)
    bold = best_cells(frame, ["ECE", "NLL"], among=among)
    bold |= best_cells(frame, ["gain", "IR"], among=among, highest=True)
    return Table("summary", "Summary", frame, notes, "method", bold=bold)


def _share_worse(paired: pl.DataFrame) -> float | None:
    worse = (paired["ece_mean"] > paired["ece_mean_base"]).to_numpy()
    return 100 * float(worse.mean()) if worse.size else None


def bins(scores: RunScores, n_bins: int, n_other: int) -> Table:
    """ECE with the protocol's bins and with another number, and what noise adds."""
    cells = TableBuilder()
    columns = {
        f"{n_bins} bins": "ece_mean",
        f"{n_other} bins": "ece_other_mean",
        "all rows": "ece",
        "debiased": "ece_debiased",
        "class-wise": "ece_classwise",
        "one class": "ece_class",
        "null level": "ece_null",
    }
    for method in scores.methods:
        for column, metric in columns.items():
            if metric in scores.frame.columns:
                mean = column_mean(scores.of(method), metric)
                cells.add(label(method), column, mean)
    notes = ("The null level is that of the draws; debiased is of all rows.",)
    title = "ECE (%) by estimator, mean over splits and seeds"
    return Table("estimators", title, cells.frame(), notes, "method")


def multi_source(scores: RunScores, published: Published | None = None) -> Table:
    """Trained and calibrated on the same domains: accuracy and ECE by target."""
    cells = TableBuilder()
    for target in scores.targets:
        found = scores.of("set-level", target=target)
        cells.add(target, "accuracy", column_mean(found, "accuracy"))
        for method in ["uncalibrated", *proposed(scores.methods)]:
            mean, sigma = _pooled(scores.of(method, target=target))
            cells.add(target, f"ECE {label(method)}", mean, sd=sigma)
        if published is not None:
            for name, value in published.multi_source(target).items():
                cells.add(target, f"paper {name}", value)
    title = "Multi-source: trained and calibrated on the other domains (%)"
    return Table("multi-source", title, cells.frame(), corner="target")


def formations(by_classifier: dict[str, RunScores]) -> Table:
    """Every classifier's ECE by method, with the paper's StarCraft2 numbers beside."""
    cells = TableBuilder()
    for name, scores in by_classifier.items():
        for method in scores.methods:
            mean, sigma = _pooled(scores.of(method))
            cells.add(label(method), name, mean, sd=sigma)
    for row, column, value in Published.formations():
        cells.add(row, f"paper, {column}", value)
    notes = (
        "Simulated formations stand in for the paper's StarCraft2 maps, whose data was "
        "never published: compare the shape, not the numbers.",
    )
    title = "ECE by classifier (%), mean ± pooled sigma"
    return Table("formations", title, cells.frame(), notes, "method")


def _pooled(found: pl.DataFrame) -> tuple[float, float] | tuple[None, None]:
    """Mean and sigma; nothing where a method failed wherever it was tried."""
    if found.is_empty():
        return None, None
    means = found["ece_mean"].to_numpy()
    return float(means.mean()), float(pooled_sigma(means, found["ece_sd"].to_numpy()))


def _mean(scores: RunScores, method: str) -> float:
    found = column_mean(scores.of(method), "ece_mean")
    return float("nan") if found is None else found


def _ratio(ece: float, references: list[float]) -> float | None:
    """Improvement ratio; None where source-only is not worse than the oracle."""
    if np.isnan([ece, *references]).any():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        ratio = improvement_ratio(ece, *references)
    return None if np.isnan(ratio) else ratio


def _undefined(ratio: float | None) -> str:
    return "undefined" if ratio is None else ""
