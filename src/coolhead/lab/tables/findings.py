"""The paper's findings, checked on a run: what carries over and what does not."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from coolhead.lab.tables.by_split import PAPER_METHODS
from coolhead.report.tables import RunScores, column_mean, label, split_means

RIVALS = ("source-only", "transcal", "wts")
MINOR = 1.0


class Claim(NamedTuple):
    """A claim, whether it holds here, and the numbers that say so.

    A claim that is a plain count neither holds nor fails.
    """

    claim: str
    numbers: str
    holds: bool | None = None

    def __str__(self) -> str:
        if self.holds is None:
            return f"{self.claim}: {self.numbers}."
        verdict = "Holds" if self.holds else "**Does not hold**"
        return f"{verdict}: {self.claim} ({self.numbers})."


def check_findings(
    scores: RunScores,
    sensitivity: pl.DataFrame,
    shift: pl.DataFrame | None = None,
    *,
    order: str | None = None,
) -> Iterator[Claim]:
    """Every finding of the paper, with the numbers it rests on here.

    Parameters
    ----------
    scores : of one classifier.
    sensitivity, shift : the run's tables of those names.
    order : along what the targets are listed, if along something.
    """
    present = [name for name in PAPER_METHODS if name in scores.methods]
    if not {"source-only", "uncalibrated"} <= set(scores.methods) or not present:
        return
    means = {name: split_means(scores, name) for name in scores.methods}
    for rival in RIVALS:
        for name in present if rival in means else ():
            yield _beats(means, name, rival)
    if {"ensemble", "set-level"} <= set(present):
        average = {name: float(np.nanmean(means[name])) for name in present}
        best = min(present, key=lambda name: average[name])
        yield Claim(
            "the ensemble has the lowest mean ECE of the paper's methods",
            f"{label(best)} has {average[best]:.2f} %, the ensemble "
            f"{average['ensemble']:.2f} %",
            best == "ensemble",
        )
    for name in present:
        worse = int((means[name] > means["uncalibrated"]).sum())
        yield Claim(
            f"Harm: {label(name)} is worse than uncalibrated",
            f"{worse} of {np.isfinite(means[name]).sum()} splits",
        )
    yield from _noise(scores, present)
    yield from _accuracy_stays(scores, present)
    yield from _shape(scores, order)
    yield from _clusters_matter_little(sensitivity)
    yield from _less_variance(shift)


def _beats(means: dict[str, np.ndarray], name: str, rival: str) -> Claim:
    both = np.isfinite(means[name]) & np.isfinite(means[rival])
    own, other = means[name][both], means[rival][both]
    return Claim(
        f"{label(name)} lowers the ECE against {label(rival)}",
        f"{other.mean():.2f} % to {own.mean():.2f} %, lower in "
        f"{int((own < other).sum())} of {len(own)} splits",
        bool(own.mean() < other.mean()),
    )


def _noise(scores: RunScores, present: list[str]) -> Iterator[Claim]:
    """Draws move the ECE of a split little, splits differ much."""
    found = scores.frame.filter(pl.col("method").is_in(present))
    if "ece_sd" not in found.columns or len(scores.splits) < 2:
        return
    sd = found["ece_sd"].to_numpy()
    yield Claim(
        "within a split the ECE of the draws varies by σ < 1 %",
        f"largest σ {sd.max():.2f} %",
        bool(sd.max() < MINOR),
    )
    between = np.mean([float(np.nanvar(split_means(scores, name))) for name in present])
    yield Claim(
        "the variance between splits dominates that of the draws",
        f"{between:.2f} against {np.mean(sd**2):.2f}, mean of the paper's methods",
        bool(between > np.mean(sd**2)),
    )


def _accuracy_stays(scores: RunScores, present: list[str]) -> Iterator[Claim]:
    before = column_mean(scores.of("uncalibrated"), "accuracy")
    after = [column_mean(scores.of(name), "accuracy") for name in present]
    known = [value for value in after if value is not None]
    if before is not None and known:
        moved = max(abs(value - before) for value in known)
        yield Claim(
            "calibration leaves the accuracy as it is",
            f"{before:.2f} %, moved by {moved:.2g} points at most",
            moved == 0,
        )


def _shape(scores: RunScores, order: str | None) -> Iterator[Claim]:
    """Low in the middle of the listed targets, high at both ends."""
    if order is None or "ensemble" not in scores.methods or len(scores.targets) < 3:
        return
    found = {
        target: column_mean(scores.of("ensemble", target=target), "ece_mean") or 0.0
        for target in scores.targets
    }
    lowest = min(found, key=lambda target: found[target])
    listed = ", ".join(f"{name} {value:.2f} %" for name, value in found.items())
    yield Claim(
        f"over the targets {order} the ensemble's ECE is lowest in the middle",
        listed,
        lowest in scores.targets[1:-1],
    )


def _clusters_matter_little(sensitivity: pl.DataFrame) -> Iterator[Claim]:
    for method in dict.fromkeys(sensitivity["method"]):
        found = sensitivity.filter(pl.col("method") == method)
        means = 100 * found.group_by("n_clusters").agg(pl.col("ece").mean())["ece"]
        spread = float(np.ptp(means.to_numpy()))
        yield Claim(
            f"the number of clusters matters little for {label(method)}",
            f"mean ECE moves by {spread:.2f} points over the numbers tried",
            spread < MINOR,
        )


def _less_variance(shift: pl.DataFrame | None) -> Iterator[Claim]:
    """Calibration domains lie nearer to the target than the source does."""
    if shift is None or shift.is_empty():
        return
    groups = shift.group_by("split", "diagnostic").agg(pl.col("value").mean())
    wide = groups.pivot(on="diagnostic", index="split", values="value")
    columns = ("weight_variance_calibration", "weight_variance_source")
    if not set(columns) <= set(wide.columns):
        return
    calibration, source = (wide[name].to_numpy() for name in columns)
    yield Claim(
        "Var(w) of calibration to target is below that of source to target",
        f"mean {calibration.mean():.2f} against {source.mean():.2f}, lower in "
        f"{int((calibration < source).sum())} of {len(source)} splits",
        bool(calibration.mean() < source.mean()),
    )
