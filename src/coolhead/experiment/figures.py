"""Figures of a run as SVG files, for those who look before they read."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from coolhead.experiment.results import file_safe, read_table
from coolhead.experiment.tables.run_scores import (
    RunScores,
    column_mean,
    label,
    load_scores,
)
from coolhead.files import atomic_path

SHOWN = (
    "uncalibrated",
    "source-only",
    "set-level",
    "nearest-cluster",
    "regression",
    "ensemble",
    "auto",
    "target-only",
)
# A fixed salt and no date: the same run draws the same bytes.
STYLE: Any = {"svg.hashsalt": "coolhead", "font.size": 8, "axes.grid": False}
# Dollar signs in names of domains are no mathematics.
STYLE |= {"text.parse_math": False}


def write_figures(run: str | Path) -> list[Path]:
    """Write reliability diagrams and the map of splits and methods; return paths."""
    folder = Path(run) / "figures"
    folder.mkdir(exist_ok=True)
    bins = read_table(run, "reliability")
    paths = []
    for name, scores in load_scores(run).items():
        own = bins.filter(pl.col("classifier") == name)
        drawings = {
            f"{name}-reliability": lambda own=own: draw_reliability(own),
            f"{name}-ece": lambda scores=scores: draw_splits(scores),
        }
        for title, draw in drawings.items():
            paths.append(_save(draw, folder / f"{file_safe(title)}.svg"))
    return paths


def draw_reliability(bins: pl.DataFrame) -> Any:
    """Accuracy against confidence, all splits together, one panel per method."""
    import matplotlib.pyplot as plt

    methods = [name for name in SHOWN if name in set(bins["method"])]
    columns = min(4, len(methods))
    rows = -(-len(methods) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(2 * columns, 2.1 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat[len(methods) :]:
        axis.set_axis_off()
    for axis, method in zip(axes.flat, methods, strict=False):
        _draw_panel(axis, bins.filter(pl.col("method") == method), label(method))
    figure.supxlabel("confidence")
    figure.supylabel("accuracy")
    return figure


def _draw_panel(axis: Any, bins: pl.DataFrame, title: str) -> None:
    sums = bins.group_by("bin").agg(pl.col("n", "sum_confidence", "sum_correct").sum())
    sums = sums.filter(pl.col("n") > 0).sort("bin")
    count = sums["n"].to_numpy()
    sure = sums["sum_confidence"].to_numpy() / count
    right = sums["sum_correct"].to_numpy() / count
    axis.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--")
    axis.vlines(sure, right, sure, color="#d95f02", linewidth=2, alpha=0.5)
    axis.scatter(sure, right, s=4 + 60 * count / count.max(), color="#1b6ca8")
    gap = float(np.abs(right - sure) @ count / count.sum())
    axis.set_title(f"{title}: {100 * gap:.1f} %", fontsize=8)
    axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")


def draw_splits(scores: RunScores) -> Any:
    """ECE of every split and method; a bold number is worse than uncalibrated."""
    import matplotlib.pyplot as plt

    methods, splits = scores.methods, scores.splits
    means = np.array([[_mean(scores.of(m, split=s)) for m in methods] for s in splits])
    size = 1.5 + 0.6 * len(methods), 1.2 + 0.28 * len(splits)
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    image = axis.imshow(means, cmap="cividis_r", aspect="auto", vmin=0)
    axis.set_xticks(range(len(methods)), map(label, methods), rotation=40, ha="right")
    axis.set_yticks(range(len(splits)), splits)
    before = (
        means[:, methods.index("uncalibrated")] if "uncalibrated" in methods else None
    )
    middle = np.nanmax(means) / 2
    for (row, column), value in np.ndenumerate(means):
        worse = before is not None and value > before[row]
        axis.text(
            column,
            row,
            f"{value:.1f}",
            ha="center",
            va="center",
            fontsize=6,
            color="white" if value > middle else "black",
            fontweight="bold" if worse else "normal",
        )
    figure.colorbar(image, label="ECE (%)")
    return figure


def _mean(found: pl.DataFrame) -> float:
    mean = column_mean(found, "ece_mean")
    return float("nan") if mean is None else mean


def _save(draw: Any, path: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(STYLE):
        figure = draw()
        with warnings.catch_warnings(), atomic_path(path) as temporary:
            # A letter that the fonts at hand lack is drawn as a box.
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            figure.savefig(temporary, format="svg", metadata={"Date": None})
    plt.close(figure)
    return path
