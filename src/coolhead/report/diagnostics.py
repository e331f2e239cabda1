"""Sentences and small tables of the page's sections."""

from typing import Any

import numpy as np
import polars as pl

from coolhead.report.answer import BEFORE, plural
from coolhead.report.tables import RunScores, column_mean, label


def arrival_section(frame: pl.DataFrame, noun: str) -> dict[str, Any] | None:
    """Sentences and the methods to draw; None where nobody arrived."""
    told = [row for row in arrival_means(frame) if row["n"]] if len(frame) else []
    if not told:
        return None
    n_places = frame.select("split", "seed").unique().height
    several = frame["seed"].n_unique() > 1
    where = plural(n_places, noun) + (" × seeds" if several else "")
    # The least and the most that was known: the two that the first figure shows.
    shown = [row["method"] for row in (told[0], told[-1])]
    return {
        "where": where,
        "sentences": [_sentence(row) for row in told],
        "shown": list(dict.fromkeys(shown)),
        "labels": {row["method"]: label(row["method"]) for row in told},
    }


def _sentence(row: dict[str, Any]) -> str:
    return (
        f"{label(row['method'])}: the 90 % interval held the truth in "
        f"{row['n_covered']} of {row['n']} ({row['covered']:.0f} %) and was "
        f"{row['width']:.0f} points wide (median); the expected accuracy was off by "
        f"{row['off']:.1f} points, the ECE {row['ece']:.1f} %"
    ).replace(" %", "\N{NO-BREAK SPACE}%")


def arrival_means(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """One dictionary per method of the table ``arrival``, all in per cent.

    Keys: method, batch, n_labels, ece, and of those who expect an accuracy also off
    (mean absolute error), covered (share of intervals that hold the truth) and width
    (median); n is the number of intervals.
    """
    inside = pl.col("truth").is_between(pl.col("low"), pl.col("high"))
    means = frame.group_by(
        "method", "base", "batch", "n_labels", maintain_order=True
    ).agg(
        ece=100 * pl.col("ece").mean(),
        off=100 * (pl.col("expected") - pl.col("truth")).abs().mean(),
        covered=100 * inside.mean(),
        n_covered=inside.sum(),
        width=100 * (pl.col("high") - pl.col("low")).median(),
        n=pl.col("expected").count(),
    )
    plain = pl.col("n") == 0
    return means.sort(
        plain, "base", "n_labels", "batch", maintain_order=True
    ).to_dicts()


THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
SHOWN_PER_SPLIT = 2
SHOWN = 16
FAR_OUTSIDE = 0.10
HEALTHY = {"", "converged"}


def shift_rows(shift: pl.DataFrame) -> list[dict[str, Any]]:
    """Density-ratio diagnostics of every split, with warnings in words."""
    means = shift.group_by("split", "diagnostic", maintain_order=True).agg(
        pl.col("value").mean()
    )
    by_split: dict[str, dict[str, float]] = {}
    for split, name, value in means.iter_rows():
        by_split.setdefault(split, {})[name] = value
    return [
        {"split": split, "numbers": _numbers(found), "warnings": _warnings(found)}
        for split, found in by_split.items()
    ]


def _numbers(found: dict[str, float]) -> list[str]:
    def text(name: str, form: str, factor: float = 1.0) -> str:
        return format(factor * found[name], form) if name in found else "–"

    return [
        text("discriminator_auroc", ".3f"),
        text("weight_variance", ".2f"),
        text("renyi_divergence", ".2f"),
        text("effective_sample_size", ".0f") + " of " + text("n_calibration", ".0f"),
        text("share_clipped", ".1f", 100),
        text("share_outside", ".1f", 100),
    ]


def _warnings(found: dict[str, float]) -> list[str]:
    warnings = []
    if found.get("unreliable", 0) > 0:
        warnings.append("weights unreliable")
    if found.get("share_clipped", 0) > 0.01:
        warnings.append("weights clipped")
    if found.get("share_outside", 0) > FAR_OUTSIDE:
        warnings.append("much of the target lies outside")
    return warnings


def abstention(histogram: pl.DataFrame, after: str | None) -> list[dict[str, Any]]:
    """What answering only above a threshold does, before and after calibration."""
    methods = [name for name in (BEFORE, after) if name in set(histogram["method"])]
    rows = []
    for threshold in THRESHOLDS:
        cells = [
            _abstain(histogram.filter(pl.col("method") == name), threshold)
            for name in methods
        ]
        rows.append({"threshold": f"{100 * threshold:.0f} %", "cells": cells})
    return rows if methods else []


def _abstain(bins: pl.DataFrame, threshold: float) -> dict[str, str]:
    wrong = bins["n"] - bins["n_correct"]
    kept = bins["low"] >= threshold - 1e-9
    answered, rows = int(bins["n"].filter(kept).sum()), int(bins["n"].sum())
    right = int(bins["n_correct"].filter(kept).sum())
    errors, avoided = int(wrong.sum()), int(wrong.filter(~kept).sum())
    return {
        "answered": _share(answered, rows),
        "accuracy": _share(right, answered),
        "avoided": _share(avoided, errors),
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def example_strip(examples: pl.DataFrame, after: str | None) -> list[dict[str, Any]]:
    """The surest mistakes with their pictures and their confidence afterwards."""
    if after is None:
        return []
    before = examples.filter(pl.col("method") == BEFORE)
    later = examples.filter(pl.col("method") == after)
    keys = ["split", "seed", "rank"]
    both = before.join(later, on=keys, suffix="_after").filter(
        pl.col("rank") < SHOWN_PER_SPLIT, pl.col("seed") == pl.col("seed").min()
    )
    ranked = both.sort("confidence", descending=True, maintain_order=True)
    chosen = ranked.unique("id", keep="first", maintain_order=True)
    return [
        {
            "split": row["split"],
            "label": row["label"],
            "predicted": row["predicted"],
            "id": row["id"],
            "before": f"{100 * row['confidence']:.0f} %",
            "after": f"{100 * row['confidence_after']:.0f} %",
            "picture": row["thumbnail"],
        }
        for row in chosen.head(SHOWN).iter_rows(named=True)
    ]


def fit_statuses(status: pl.DataFrame) -> list[dict[str, Any]]:
    """Methods whose fits were not all plain: status, fallbacks and warnings."""
    rows = []
    for (method,), own in status.group_by("method", maintain_order=True):
        kinds = {k for text in own["status"] for k in (text or "").split("; ")}
        warnings = [text for text in dict.fromkeys(own["warnings"]) if text]
        fallbacks = int(own["n_fallbacks"].sum())
        if kinds <= HEALTHY and not warnings and not fallbacks:
            continue
        rows.append(
            {
                "label": label(str(method)),
                "kinds": ", ".join(sorted(k.replace("_", " ") for k in kinds if k)),
                "fallbacks": fallbacks,
                "warnings": warnings[:3],
                "n_more": max(len(warnings) - 3, 0),
            }
        )
    return rows


def target_shape(scores: RunScores, after: str | None) -> str | None:
    """Whether the ECE is low in the middle and high at both ends of the targets."""
    if after is None or len(scores.targets) < 3:
        return None
    found = [
        column_mean(scores.of(after, target=t), "ece_mean") for t in scores.targets
    ]
    values = np.array([np.nan if value is None else value for value in found])
    ends, middle = values[[0, -1]], values[1:-1]
    if np.isnan(values).any():
        return None
    shape = "a U" if middle.mean() < ends.min() else "no U"
    return (
        f"{label(after)}: {ends.mean():.1f} % at the two ends, {middle.mean():.1f} % "
        f"in between: {shape}."
    )
