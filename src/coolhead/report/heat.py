"""The heat map as a table of the page: text that can be read, copied and scrolled."""

from typing import Any

import numpy as np
import polars as pl

from coolhead.experiment.tables.answer import BEFORE
from coolhead.experiment.tables.run_scores import RunScores, label
from coolhead.figures.heat_map import cell_text, change_steps, changes


def heat_rows(
    scores: RunScores, failures: pl.DataFrame, chosen: str | None
) -> dict[str, Any]:
    """Cells of text and CSS class; the number is the ECE, the colour its change."""
    means = scores.frame.group_by("split", "method").agg(pl.col("ece_mean").mean())
    ece = {(split, method): value for split, method, value in means.iter_rows()}
    failed = [s for s in dict.fromkeys(failures["split"]) if s not in scores.splits]
    splits, methods = [*scores.splits, *failed], scores.methods
    values = np.array([[ece.get((s, m)) for m in methods] for s in splits], float)
    moved = changes(values, methods, BEFORE)
    table = zip(splits, values, moved, change_steps(moved), strict=True)
    rows = [
        {"split": split, "cells": [_cell(*cell) for cell in zip(*row, strict=True)]}
        for split, *row in table
    ]
    heads = [(label(name), name == chosen) for name in methods]
    return {"methods": heads, "rows": rows}


def _cell(ece: float, change: float, step: str) -> dict[str, str]:
    text = cell_text(ece, step)
    if np.isnan(ece):
        return {"text": text, "step": "none", "title": "failed or not run"}
    if not step:
        return {"text": text, "step": "plain", "title": ""}
    title = f"{change:+.1f} points against uncalibrated".replace("-", "−")
    return {"text": text, "step": step, "title": title}
