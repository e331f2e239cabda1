"""Scores of methods as tidy tables: the schema, and the rows of scored predictions."""

import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import polars as pl

from coolhead.metrics import risk_coverage_curve
from coolhead.metrics.scored import ScoredRows, ScoreSums
from coolhead.numerics.weights import infinite_loss_message

KEY_COLUMNS = (
    "experiment",
    "classifier",
    "split",
    "source",
    "calibration",
    "target",
    "seed",
)
TABLES: dict[str, dict[str, Any]] = {
    "results": {"method": pl.String, "metric": pl.String, "value": pl.Float64},
    "reliability": {
        "method": pl.String,
        "bin": pl.Int64,
        "n": pl.Int64,
        "sum_confidence": pl.Float64,
        "sum_correct": pl.Int64,
    },
    "histogram": {
        "method": pl.String,
        "bin": pl.Int64,
        "low": pl.Float64,
        "high": pl.Float64,
        "n": pl.Int64,
        "n_correct": pl.Int64,
    },
    "selective": {
        "method": pl.String,
        "coverage": pl.Float64,
        "threshold": pl.Float64,
        "accuracy": pl.Float64,
    },
    "temperature": {"method": pl.String, "quantile": pl.Float64, "value": pl.Float64},
    "status": {
        "method": pl.String,
        "status": pl.String,
        "n_fallbacks": pl.Int64,
        "clipped_share": pl.Float64,
        "warnings": pl.String,
    },
    "shift": {"diagnostic": pl.String, "value": pl.Float64},
    "map": {
        "x": pl.Float64,
        "y": pl.Float64,
        "role": pl.String,
        "domain": pl.String,
        "cluster": pl.Int64,
        "temperature": pl.Float64,
    },
    "adaptation": {
        "method": pl.String,
        "base": pl.String,
        "batch": pl.Boolean,
        "n_labels": pl.Int64,
        "draw": pl.Int64,
        "ece": pl.Float64,
        "truth": pl.Float64,
        "expected": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    },
    "sensitivity": {"method": pl.String, "n_clusters": pl.Int64, "ece": pl.Float64},
    "ablation": {
        "what": pl.String,
        "level": pl.String,
        "method": pl.String,
        "ece": pl.Float64,
    },
    "examples": {
        "rank": pl.Int64,
        "id": pl.String,
        "label": pl.String,
        "predicted": pl.String,
        "method": pl.String,
        "confidence": pl.Float64,
        "thumbnail": pl.String,
    },
    "notes": {"note": pl.String},
    "failures": {"method": pl.String, "error": pl.String},
    "runtimes": {
        "method": pl.String,
        "fit_seconds": pl.Float64,
        "predict_seconds": pl.Float64,
    },
}


@dataclass
class CellResult:
    """The results of one cell: for each table, rows without the key columns."""

    tables: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {name: [] for name in TABLES}
    )

    def add(self, table: str, **row: Any) -> None:
        """Append one row to a table."""
        self.tables[table].append(row)

    def add_each(self, table: str, method: str, **columns: Any) -> None:
        """Append a row for each entry of the columns, which are equally long."""
        lists = [np.asarray(values).tolist() for values in columns.values()]
        for row in zip(*lists, strict=True):
            self.add(table, method=method, **dict(zip(columns, row, strict=True)))

    @property
    def failed(self) -> bool:
        """True if the cell or one of its methods raised an error."""
        return bool(self.tables["failures"])


def file_safe(name: str) -> str:
    """Replace every character that a file name may not hold."""
    return "".join(c if c.isalnum() or c in "+-_." else "_" for c in name)


def schema_of(name: str) -> dict[str, Any]:
    """Return columns and types of a table, the key columns first."""
    return dict.fromkeys(KEY_COLUMNS, pl.String) | {"seed": pl.Int64} | TABLES[name]


def empty_table(name: str) -> pl.DataFrame:
    """Return a table of the schema without rows."""
    return pl.DataFrame(schema=schema_of(name))


def note_masked(found: ScoredRows, result: CellResult) -> None:
    """Count the rows that the mean log loss leaves out, if there are any."""
    n_masked = int(np.isinf(found.rows.log_loss).sum())
    if n_masked:
        note = infinite_loss_message(n_masked, len(found.labels))
        result.add("notes", note=note)


HISTOGRAM_BINS = 40
COVERAGES = np.arange(1, 41) / 40
QUANTILES = np.arange(41) / 40


def add_curves(name: str, found: ScoredRows, n_bins: int, result: CellResult) -> None:
    """Add reliability bins, confidence histogram, selective curve, temperatures."""
    bins = ScoreSums(found.sums(n_bins)[0], n_bins).bins
    sums = {"sum_confidence": bins.confidence, "sum_correct": bins.correct.astype(int)}
    result.add_each(
        "reliability", name, bin=range(n_bins), n=bins.count.astype(int), **sums
    )
    edges = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    result.add_each(
        "histogram",
        name,
        bin=range(HISTOGRAM_BINS),
        low=edges[:-1],
        high=edges[1:],
        n=np.histogram(found.confidence, edges)[0],
        n_correct=np.histogram(found.confidence[found.correct], edges)[0],
    )
    # Accuracy and threshold when only the most confident share is answered.
    curve = risk_coverage_curve(found.correct, found.confidence)
    at = np.searchsorted(curve.coverage, COVERAGES - 1e-12)
    at = np.minimum(at, len(curve.coverage) - 1)
    right = 1 - curve.risk[at]
    shown = {"coverage": COVERAGES, "threshold": curve.threshold[at], "accuracy": right}
    result.add_each("selective", name, **shown)
    if found.temperature is not None:
        values = np.quantile(found.temperature, QUANTILES)
        result.add_each("temperature", name, quantile=QUANTILES, value=values)


def point_scores(found: ScoredRows, n_bins: int, size: int) -> dict[str, float]:
    """Return scores on all rows; `ece_null` is that of `size` of them."""
    sums = ScoreSums(found.sums(n_bins)[0], n_bins)
    counts = {"n_evaluated": sums.n_rows, "n_masked": sums.n_masked}
    scores = counts | {"subsample_size": size} | sums.scores()
    scores["ece_null"] = sums.bins.null_error(size)
    scores["risk_area"] = risk_coverage_curve(found.correct, found.confidence).area
    if found.temperature is not None:
        scores["temperature_median"] = np.median(found.temperature)
    return {name: float(value) for name, value in (scores | found.extra).items()}


PACKAGES = ("coolhead", "numpy", "scipy", "scikit-learn", "polars", "joblib", "torch")


def describe_machine() -> str:
    """Describe cores, processor architecture and operating system."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"


def package_versions() -> dict[str, str]:
    """Return versions of Python and of the packages that affect the numbers."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
