"""One method against all others over splits, and harm that the oracle avoids."""

import numpy as np

from coolhead.experiment.methods import find_method
from coolhead.experiment.tables.ratio_difference import ratio_difference, split_means
from coolhead.experiment.tables.run_scores import RunScores, label, proposed
from coolhead.experiment.tables.table import Table, TableBuilder


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
        "last row is a choice nobody could have made beforehand.",
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
