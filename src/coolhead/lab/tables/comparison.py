"""Intervals of differences between methods, by resampling whole splits.

The splits of an experiment share domains and classifiers, and the seeds of one split
belong together, so a split is drawn with all its seeds.
"""

import numpy as np

from coolhead.methods import find_method
from coolhead.metrics import Interval
from coolhead.report.tables import (
    RunScores,
    Table,
    TableBuilder,
    label,
    proposed,
    split_means,
)

DRAWS = 4000


def percentiles(estimate: float, drawn: np.ndarray) -> Interval:
    """An estimate with the 95 % percentile interval of its resamples."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(estimate, float(low), float(high))


def mean_interval(values: np.ndarray) -> Interval:
    """Mean of one number per split, with its interval over resampled splits."""
    rows = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    return percentiles(float(values.mean()), values[rows].mean(axis=1))


def ratio_difference(scores: RunScores, method: str, rival: str) -> Interval | None:
    """Improvement ratio of `method` minus that of `rival`, percentile interval.

    None where the ratio is undefined: source-only not worse than the oracle.
    """
    names = (method, rival, "source-only", "target-only")
    values = np.stack([split_means(scores, name) for name in names])
    if np.isnan(values).any():
        return None
    own, other, source, oracle = values
    if source.mean() <= oracle.mean():
        return None
    n_splits = values.shape[1]
    rows = np.random.default_rng(0).integers(n_splits, size=(DRAWS, n_splits))
    possible = (source - oracle)[rows].mean(axis=1)
    change = (other - own)[rows].mean(axis=1)
    # A resample in which source-only is no worse than the oracle has no ratio.
    drawn = change[possible > 0] / possible[possible > 0]
    estimate = (other - own).mean() / (source - oracle).mean()
    return percentiles(float(estimate), drawn)


def against_others(scores: RunScores, method: str) -> Table | None:
    """Improvement ratio of one method minus that of every other, with intervals."""
    if method not in scores.methods:
        return None
    cells = TableBuilder()
    for rival in scores.methods:
        found = None if rival == method else ratio_difference(scores, method, rival)
        if found is None:
            continue
        mark = _mark(found.low, found.high)
        cells.add(
            label(rival),
            f"IR of {label(method)} minus",
            found.estimate,
            low=found.low,
            high=found.high,
            mark=mark,
        )
        own, other = split_means(scores, method), split_means(scores, rival)
        cells.add(label(rival), "better in splits", float((own < other).sum()))
    cells.add("best without target in hindsight", *_hindsight(scores, method))
    notes = (
        "Interval: 4000 resamples of whole splits. + above zero, − below zero. The "
        "method of the last row is chosen by the errors that are compared.",
    )
    title = f"{label(method)} against each method, improvement ratio"
    whole = ("better in splits",)
    return Table("against-others", title, cells.frame(), notes, "method", whole=whole)


def _mark(low: float, high: float) -> str:
    return " +" if low > 0 else " −" if high < 0 else ""


def _hindsight(scores: RunScores, method: str) -> tuple[str, float | None]:
    """The difference to the best fixed method that needs no target data."""
    rivals = [
        name
        for name in (*proposed(scores.methods), "source-only", "uncalibrated")
        if name != method
        and name in scores.methods
        and not find_method(name).sees_target
    ]
    best = min(rivals, key=lambda name: split_means(scores, name).mean())
    found = ratio_difference(scores, method, best)
    column = f"IR of {label(method)} minus"
    return column, None if found is None else found.estimate


def harm_beyond_the_oracle(scores: RunScores) -> Table | None:
    """TableBuilder (split and seed) more than a point worse than uncalibrated."""
    if "target-only" not in scores.methods or "uncalibrated" not in scores.methods:
        return None
    cells = TableBuilder()
    oracle = _harm(scores, "target-only")
    for method in proposed(scores.methods):
        change = _harm(scores, method)
        if len(change) != len(oracle):
            continue
        avoidable = (change > 1) & ~(oracle > 1)
        name = label(method)
        cells.add(name, "cells", float(len(change)))
        cells.add(name, "worse (%)", 100 * float((change > 0).mean()))
        cells.add(name, "worse by > 1 point (%)", 100 * float((change > 1).mean()))
        cells.add(name, "and the oracle is not (%)", 100 * float(avoidable.mean()))
        clear = scores.of(method)["ece_vs_uncalibrated_low"].to_numpy() > 0
        cells.add(name, "paired interval above 0", float(clear.sum()))
    title = "Harm by split and seed against uncalibrated"
    whole = ("cells", "paired interval above 0")
    return Table("harm-oracle", title, cells.frame(), corner="method", whole=whole)


def _harm(scores: RunScores, method: str) -> np.ndarray:
    pairs = scores.paired(method, "uncalibrated")
    return (pairs["ece_mean"] - pairs["ece_mean_base"]).to_numpy()
