"""Figures of a run as SVG files."""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from coolhead import figures
from coolhead.figures.reliability import reliability_bars
from coolhead.figures.style import draw_svg
from coolhead.io.files import write_text
from coolhead.lab.results import load_scores, read_table
from coolhead.report.results import file_safe
from coolhead.report.tables import RunScores, label

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


def write_figures(run: str | Path) -> list[Path]:
    """Write reliability diagrams and the heat map of splits; return the paths."""
    folder = Path(run) / "figures"
    folder.mkdir(exist_ok=True)
    bins, results = read_table(run, "reliability"), read_table(run, "results")
    paths = []
    for name, scores in load_scores(run).items():
        own = pl.col("classifier") == name
        texts = {
            "reliability": draw_reliability(bins.filter(own)),
            "ece": draw_splits(results.filter(own), scores),
        }
        for kind, text in texts.items():
            paths.append(folder / f"{file_safe(name)}-{kind}.svg")
            write_text(paths[-1], text)
    return paths


def draw_reliability(bins: pl.DataFrame) -> str:
    """Draw accuracy against confidence, all splits together, one panel per method."""
    present = list(dict.fromkeys(bins["method"]))
    methods = [name for name in SHOWN if name in present] or present[: len(SHOWN)]
    columns = min(4, len(methods))
    rows = -(-len(methods) // columns)

    def draw(figure: Any) -> None:
        for number, name in enumerate(methods, 1):
            ax = figure.add_subplot(rows, columns, number)
            figures.reliability(bins, ax, method=name)
            error = reliability_bars(bins, name).error
            ax.set_title(f"{label(name)}: {100 * error:.1f} %")
            ax.label_outer()

    title = "Reliability diagrams, all splits together, with the ECE of each method"
    return draw_svg((2.2 * columns, 2.6 * rows), draw, title)


def draw_splits(results: pl.DataFrame, scores: RunScores) -> str:
    """Draw the ECE of every split and method; the colour is its change."""
    names = {name: label(name) for name in scores.methods}
    draw = partial(figures.heat_map, results, methods=list(names), labels=names)
    size = 2.6 + 0.55 * len(names), 1.6 + 0.24 * len(scores.splits)
    title = "ECE in per cent of every split and method"
    return draw_svg(size, lambda figure: draw(figure.subplots()), title)
