"""The heat map: every split and method, where calibration helps and where it harms."""

from typing import Any

import numpy as np
import polars as pl

from coolhead.experiment.tables.answer import BEFORE
from coolhead.experiment.tables.run_scores import RunScores, label
from coolhead.report.colours import heat_step


def heat_rows(
    scores: RunScores, failures: pl.DataFrame, chosen: str | None
) -> dict[str, Any]:
    """Cells of text and CSS class; the number is the ECE, the colour its change."""
    means = scores.frame.group_by("split", "method").agg(pl.col("ece_mean").mean())
    ece = {(split, method): value for split, method, value in means.iter_rows()}
    failed = [s for s in dict.fromkeys(failures["split"]) if s not in scores.splits]
    splits = [*scores.splits, *failed]
    changes = {
        key: value - ece[key[0], BEFORE]
        for key, value in ece.items()
        if value is not None and ece.get((key[0], BEFORE)) is not None
    }
    # One outlier must not turn all other cells pale.
    largest = float(np.quantile(np.abs([*changes.values(), 0.0]), 0.95))
    rows = [
        {
            "split": split,
            "cells": [
                _cell(ece.get((split, method)), changes.get((split, method)), largest)
                if method != BEFORE
                else _plain(ece.get((split, method)))
                for method in scores.methods
            ],
        }
        for split in splits
    ]
    methods = [(label(name), name == chosen) for name in scores.methods]
    return {"methods": methods, "rows": rows}


def _cell(ece: float | None, change: float | None, largest: float) -> dict[str, str]:
    if ece is None or change is None:
        return _plain(ece)
    mark = "▲" if change > 0 else ""
    return {
        "text": f"{ece:.1f}{mark}",
        "step": heat_step(change, largest),
        "title": f"{change:+.1f} points against uncalibrated".replace("-", "−"),
    }


def _plain(ece: float | None) -> dict[str, str]:
    if ece is None:
        return {"text": "–", "step": "none", "title": "failed or not run"}
    return {"text": f"{ece:.1f}", "step": "plain", "title": ""}
