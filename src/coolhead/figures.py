"""Figures of a run for papers and notebooks; the report draws the same ones.

Each function takes a table of a run (a polars frame as `read_table` gives it) or the
folder of the run, draws on `ax` (a new figure by default) and returns the Axes.
"""

from collections.abc import Iterable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from coolhead.experiment.results import read_table
from coolhead.experiment.tables.run_scores import label

INK, GREY, PALE = "#1f2933", "#5b6670", "#aeb6bf"
BEFORE, AFTER = "#d9731a", "#2b6cb0"
# Orange dark enough to read as text.
BEFORE_WORDS = "#a8540b"
BASELINE = "uncalibrated"
MIDDLE_HALF = 0.25, 0.75
MOST = 0.05, 0.95


def before_after(
    results: Any, ax: Any = None, *, method: str, baseline: str = BASELINE
) -> Any:
    """ECE of every split before and after one method, the worst split on top."""
    wide = _ece(results, [baseline, method]).drop_nulls().sort(baseline)
    before, after = wide[baseline].to_numpy(), wide[method].to_numpy()
    ax = _axes(ax, (4.6, 0.9 + 0.21 * len(wide)))
    rows = np.arange(len(wide))
    worse = after > before
    for chosen, colour in ((~worse, AFTER), (worse, BEFORE)):
        ax.hlines(rows[chosen], before[chosen], after[chosen], colour, lw=2, alpha=0.45)
    ax.scatter(before, rows, s=26, facecolor="white", edgecolor=BEFORE, zorder=3)
    ax.scatter(after, rows, s=26, color=AFTER, zorder=4)
    ax.set_yticks(rows, wide["split"])
    ax.set_xlim(left=0)
    ax.set_ylim(-0.6, len(wide) - 0.4)
    ax.set_xlabel("ECE (%): ○ before, ● after")
    ax.grid(axis="x")
    return ax


def by_target(results: Any, ax: Any = None, *, methods: Sequence[str]) -> Any:
    """Mean ECE of each target domain, in the order of the protocol."""
    frame = _ece(results, methods, by="target")
    ax = _axes(ax)
    places = np.arange(len(frame))
    styles = [(BEFORE, "--", "o"), (AFTER, "-", "o"), (GREY, ":", "s")]
    drawn = zip((name for name in methods if name in frame.columns), styles)  # noqa: B905
    for name, (colour, line, marker) in drawn:
        values = frame[name].to_numpy()
        ax.plot(places, values, line, color=colour, marker=marker, ms=4, mfc="white")
        ax.annotate(
            label(name),
            (places[-1], values[-1]),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=BEFORE_WORDS if colour == BEFORE else colour,
        )
    ax.set_xticks(places, frame["target"], rotation=0 if len(frame) < 7 else 40)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("ECE (%)")
    ax.grid(axis="y")
    return ax


def heat_map(results: Any, ax: Any = None, *, metric: str = "ece_mean") -> Any:
    """A metric of every split and method in per cent; dark is high."""
    frame = _table(results, "results").filter(pl.col("metric") == metric)
    wide = frame.pivot(
        on="method", index="split", values="value", aggregate_function="mean"
    )
    names = wide.columns[1:]
    values = 100 * wide.select(names).to_numpy().astype(float)
    ax = _axes(ax, (1.6 + 0.45 * len(names), 1.3 + 0.2 * len(wide)))
    ax.imshow(np.ma.masked_invalid(values), cmap="Blues", aspect="auto")
    limit = np.nanmean([np.nanmin(values), np.nanmax(values)])
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if value > limit else INK
        text = "" if np.isnan(value) else f"{value:.1f}"
        ax.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
    ax.set_xticks(range(len(names)), map(label, names), rotation=40, ha="right")
    ax.set_yticks(range(len(wide)), wide["split"])
    return ax


def reliability(bins: Any, ax: Any = None) -> Any:
    """Accuracy against confidence in bars, the gap to the mean confidence shaded.

    `bins` : rows of the table ``reliability``, summed where there are several, or the
    result of `coolhead.reliability_curve`.
    """
    count, sure, right, n_bins = _bins(bins)
    ax = _axes(ax, (3.0, 3.0))
    middle, width = (np.flatnonzero(count) + 0.5) / n_bins, 0.88 / n_bins
    sure, right = sure[count > 0], right[count > 0]
    ax.bar(middle, right, width, color=AFTER)
    ax.bar(
        middle,
        np.abs(sure - right),
        width,
        bottom=np.minimum(sure, right),
        facecolor="none",
        edgecolor=BEFORE,
        hatch="////",
        linewidth=0.8,
    )
    ax.plot([0, 1], [0, 1], "--", color=GREY, lw=0.8)
    error = float(np.abs(sure - right) @ count[count > 0] / max(count.sum(), 1))
    ax.set_title(f"ECE {100 * error:.1f} %, n = {count.sum():,}")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
    ax.set_aspect("equal")
    return ax


def feature_map(points: Any, ax: Any = None) -> Any:
    """Calibration points coloured by their cluster's temperature, target over them."""
    frame = _table(points, "map")
    ax = _axes(ax, (4.6, 3.6))
    roles = {role: frame.filter(pl.col("role") == role) for role in set(frame["role"])}
    known, centres = roles["calibration"], roles["centre"]
    spots = ax.scatter(
        known["x"], known["y"], c=known["temperature"], s=5, cmap="plasma", alpha=0.7
    )
    new = roles.get("target", frame.head(0))
    ax.scatter(new["x"], new["y"], s=9, marker="+", color=INK, lw=0.5, alpha=0.7)
    for centre in centres.iter_rows(named=True):
        text = f"{centre['temperature']:.1f}"
        place = centre["x"], centre["y"]
        ax.annotate(text, place, ha="center", va="center", weight="bold")
    ax.figure.colorbar(spots, ax=ax, label="temperature of the cluster")
    ax.set(xticks=[], yticks=[], title="● calibration, + target")
    return ax


def temperatures(quantiles: Any, ax: Any = None) -> Any:
    """The spread of T(x) of every method: median, middle half, and 90 per cent."""
    from matplotlib.ticker import LogLocator, NullLocator

    frame = _table(quantiles, "temperature")
    names = [name for name in dict.fromkeys(frame["method"]) if name != BASELINE]
    ax = _axes(ax, (4.6, 0.9 + 0.22 * len(names)))
    for row, name in enumerate(reversed(names)):
        own = frame.filter(pl.col("method") == name)["value"].to_numpy()
        ax.hlines(row, *np.quantile(own, MOST), AFTER, lw=1.2, alpha=0.5)
        ax.hlines(row, *np.quantile(own, MIDDLE_HALF), AFTER, lw=5, alpha=0.5)
        ax.plot(np.median(own), row, "|", color=INK, ms=9, mew=1.6)
    ax.axvline(1, color=GREY, lw=0.8, ls="--")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_yticks(range(len(names)), [label(name) for name in reversed(names)])
    ax.set_xlabel("temperature (log scale)")
    return ax


def confidence_histogram(bins: Any, ax: Any = None, *, method: str = BASELINE) -> Any:
    """How often each confidence occurs, right and wrong answers apart."""
    frame = _table(bins, "histogram").filter(pl.col("method") == method)
    sums = frame.group_by("low", "high").agg(pl.col("n", "n_correct").sum()).sort("low")
    ax = _axes(ax, (4.6, 2.4))
    total = max(int(sums["n"].sum()), 1)
    right = 100 * sums["n_correct"].to_numpy() / total
    wrong = 100 * sums["n"].to_numpy() / total - right
    low, width = sums["low"].to_numpy(), (sums["high"] - sums["low"]).to_numpy()
    ax.bar(low, right, width, align="edge", color=AFTER, label="right")
    ax.bar(
        low,
        wrong,
        width,
        right,
        align="edge",
        facecolor=BEFORE,
        edgecolor="white",
        linewidth=0,
        label="wrong",
        hatch="///",
    )
    ax.legend(loc="upper left", reverse=True)
    ax.set(xlim=(0, 1), xlabel="confidence", ylabel="rows (%)", title=label(method))
    return ax


def selective_prediction(curves: Any, ax: Any = None, *, methods: Sequence[str]) -> Any:
    """Accuracy when only the most confident share of the rows is answered."""
    frame = _table(curves, "selective")
    ax = _axes(ax)
    styles = ((BEFORE, "--"), (AFTER, "-"), (GREY, ":"))
    for name, (colour, line) in zip(methods, styles, strict=False):
        own = frame.filter(pl.col("method") == name)
        mean = own.group_by("coverage").agg(pl.col("accuracy").mean()).sort("coverage")
        share, right = (100 * mean[c].to_numpy() for c in ("coverage", "accuracy"))
        ax.plot(share, right, line, color=colour, label=label(name))
    ax.legend(loc="upper right")
    ax.set(xlim=(0, 100), xlabel="rows answered, the surest first (%)")
    ax.set_ylabel("accuracy among them (%)")
    ax.grid(axis="y")
    return ax


def figure_style() -> Any:
    """A context in which new figures look like those of the report."""
    import matplotlib

    with as_file(files("coolhead.report") / "style.mplstyle") as path:
        settings = matplotlib.rc_params_from_file(path, use_default_template=False)
    return matplotlib.rc_context(settings)


def _axes(ax: Any, size: tuple[float, float] = (4.6, 3.0)) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def _table(table: Any, name: str) -> pl.DataFrame:
    """The frame itself, or that table of the run whose folder is given."""
    return read_table(table, name) if isinstance(table, str | Path) else table


def _ece(results: Any, methods: Iterable[str], by: str = "split") -> pl.DataFrame:
    """Mean ECE in per cent: one row per split or target, one column per method."""
    frame = _table(results, "results")
    wanted = pl.col("method").is_in(list(methods)), pl.col("metric") == "ece_mean"
    wide = frame.filter(*wanted).with_columns(pl.col("value") * 100)
    return wide.pivot(on="method", index=by, values="value", aggregate_function="mean")


def _bins(bins: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Count, mean confidence and accuracy of every bin, and their number."""
    if hasattr(bins, "accuracy"):
        return bins.count, bins.confidence, bins.accuracy, len(bins.count)
    frame = _table(bins, "reliability")
    columns = ("n", "sum_confidence", "sum_correct")
    sums = frame.group_by("bin").agg(pl.col(*columns).sum()).sort("bin")
    count, sure, right = (sums[name].to_numpy().astype(float) for name in columns)
    safe = np.maximum(count, 1)
    return count.astype(int), sure / safe, right / safe, len(count)
