"""Sentences and small tables of the page's sections."""

from typing import Any

import polars as pl

from coolhead.report.answer import BEFORE, plural
from coolhead.report.tables import label

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
# Shares of fewer rows are shown in grey.
FEW_ROWS = 100
SHOWN_PER_SPLIT = 2
SHOWN = 16
FAR_OUTSIDE = 0.10
HEALTHY = {"", "converged"}


def adaptation_means(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Average the table ``adaptation``: one dictionary per method, in per cent.

    Keys: method, batch, n_labels, ece; and of methods that expect an accuracy, off
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


def adaptation_section(frame: pl.DataFrame, noun: str) -> dict[str, Any] | None:
    """Sentences, and the methods to draw; None if no method adapts to the target."""
    found = [row for row in adaptation_means(frame) if row["n"]] if len(frame) else []
    if not found:
        return None
    where = plural(frame.select("split", "seed").unique().height, noun)
    # The methods that know the least and the most are drawn.
    shown = dict.fromkeys(row["method"] for row in (found[0], found[-1]))
    return {
        "where": where + (" × seeds" if frame["seed"].n_unique() > 1 else ""),
        "sentences": [_adaptation_sentence(row) for row in found],
        "shown": list(shown),
        "labels": {row["method"]: label(row["method"]) for row in found},
    }


def _adaptation_sentence(row: dict[str, Any]) -> str:
    return (
        f"{label(row['method'])}: the 90 % interval held the truth in "
        f"{row['n_covered']} of {row['n']} ({row['covered']:.0f} %) and was "
        f"{row['width']:.0f} points wide (median); the expected accuracy was off by "
        f"{row['off']:.1f} points, the ECE {row['ece']:.1f} %"
    ).replace(" %", "\N{NO-BREAK SPACE}%")


def shift_warnings(shift: pl.DataFrame) -> list[str]:
    """Say where density ratios are unreliable or targets lie outside, by split."""
    means = shift.group_by("split", "diagnostic").agg(pl.col("value").mean())
    value = {(split, name): number for split, name, number in means.iter_rows()}
    limits = {
        "unreliable": (0.0, "weights unreliable"),
        "share_clipped": (0.01, "weights clipped"),
        "share_outside": (FAR_OUTSIDE, "much of the target lies outside"),
    }
    found = []
    for split in dict.fromkeys(shift["split"]):
        texts = [
            text
            for name, (limit, text) in limits.items()
            if value.get((split, name), 0.0) > limit
        ]
        found += [f"{split}: {', '.join(texts)}"] if texts else []
    return found


def abstention(histogram: pl.DataFrame, after: str | None) -> list[dict[str, Any]]:
    """Show what answering only above a threshold does, before and after calibration."""
    methods = [name for name in (BEFORE, after) if name in set(histogram["method"])]
    rows = []
    for threshold in THRESHOLDS:
        cells = [
            _abstain(histogram.filter(pl.col("method") == name), threshold)
            for name in methods
        ]
        rows.append({"threshold": f"{100 * threshold:.0f} %", "cells": cells})
    return rows if methods else []


def _abstain(bins: pl.DataFrame, threshold: float) -> dict[str, Any]:
    wrong = bins["n"] - bins["n_correct"]
    kept = bins["low"] >= threshold - 1e-9
    answered, rows = int(bins["n"].filter(kept).sum()), int(bins["n"].sum())
    right = int(bins["n_correct"].filter(kept).sum())
    errors, avoided = int(wrong.sum()), int(wrong.filter(~kept).sum())
    return {
        "answered": _share(answered, rows),
        "accuracy": _share(right, answered),
        "avoided": _share(avoided, errors),
        "few": answered < FEW_ROWS,
    }


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def example_strip(examples: pl.DataFrame, after: str | None) -> list[dict[str, Any]]:
    """Return the most confident mistakes, with pictures and confidence afterwards."""
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
    return chosen.head(SHOWN).to_dicts()


def fit_statuses(status: pl.DataFrame) -> list[dict[str, Any]]:
    """List methods whose fits were not all plain: status, fallbacks and warnings."""
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
                "warnings": warnings,
            }
        )
    return rows
