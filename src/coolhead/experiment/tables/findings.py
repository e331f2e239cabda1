"""The paper's findings, checked on a run: what carries over and what does not."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from coolhead.experiment.tables.ratio_difference import split_means
from coolhead.experiment.tables.run_scores import RunScores, label

PAPER_METHODS = ("set-level", "nearest-cluster", "regression", "ensemble")
MINOR = 1.0


def check_findings(scores: RunScores, sensitivity: pl.DataFrame) -> Iterator[str]:
    """One sentence per finding, with the numbers it rests on."""
    present = [name for name in PAPER_METHODS if name in scores.methods]
    if not {"source-only", "uncalibrated"} <= set(scores.methods) or not present:
        return
    means = {name: split_means(scores, name) for name in scores.methods}
    for name in present:
        yield _beats(means, name, "source-only")
    if {"ensemble", "set-level"} <= set(present):
        best = min(present, key=lambda name: means[name].mean())
        yield _sentence(
            best == "ensemble",
            "the ensemble has the lowest mean ECE of the paper's methods",
            f"{label(best)} has {means[best].mean():.2f} %, the ensemble "
            f"{means['ensemble'].mean():.2f} %",
        )
    for name in present:
        worse = int((means[name] > means["uncalibrated"]).sum())
        yield (
            f"Harm: {label(name)} is worse than uncalibrated in {worse} of "
            f"{len(means[name])} splits."
        )
    yield from _clusters_matter_little(sensitivity)


def _beats(means: dict[str, np.ndarray], name: str, rival: str) -> str:
    own, other = means[name], means[rival]
    return _sentence(
        own.mean() < other.mean(),
        f"{label(name)} lowers the ECE against {label(rival)}",
        f"{other.mean():.2f} % to {own.mean():.2f} %, lower in "
        f"{int((own < other).sum())} of {len(own)} splits",
    )


def _clusters_matter_little(sensitivity: pl.DataFrame) -> Iterator[str]:
    for method in dict.fromkeys(sensitivity["method"]):
        found = sensitivity.filter(pl.col("method") == method)
        means = 100 * found.group_by("n_clusters").agg(pl.col("ece").mean())["ece"]
        spread = float(np.ptp(means.to_numpy()))
        yield _sentence(
            spread < MINOR,
            f"the number of clusters matters little for {label(method)}",
            f"mean ECE moves by {spread:.2f} points over the numbers tried",
        )


def _sentence(holds: bool, claim: str, numbers: str) -> str:
    return f"{'Holds' if holds else '**Does not hold**'}: {claim} ({numbers})."
