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
    """What one cell found: for each table a list of rows without the key columns."""

    tables: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {name: [] for name in TABLES}
    )

    def add(self, table: str, **row: Any) -> None:
        """Append one row to a table."""
        self.tables[table].append(row)

    @property
    def failed(self) -> bool:
        """True if the cell or one of its methods raised an error."""
        return bool(self.tables["failures"])


def file_safe(name: str) -> str:
    """`name` with every character that a file name may not hold replaced."""
    return "".join(c if c.isalnum() or c in "+-_." else "_" for c in name)


def schema_of(name: str) -> dict[str, Any]:
    """Columns and types of a table, the key columns first."""
    return dict.fromkeys(KEY_COLUMNS, pl.String) | {"seed": pl.Int64} | TABLES[name]


def empty_table(name: str) -> pl.DataFrame:
    """A table of the schema without rows."""
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
    for number in range(n_bins):
        result.add(
            "reliability",
            method=name,
            bin=number,
            n=int(bins.count[number]),
            sum_confidence=float(bins.confidence[number]),
            sum_correct=int(bins.correct[number]),
        )
    _add_histogram(name, found, result)
    _add_selective(name, found, result)
    if found.temperature is not None:
        values = np.quantile(found.temperature, QUANTILES)
        for quantile, value in zip(QUANTILES, values, strict=True):
            result.add(
                "temperature", method=name, quantile=float(quantile), value=float(value)
            )


def _add_histogram(name: str, found: ScoredRows, result: CellResult) -> None:
    edges = np.linspace(0, 1, HISTOGRAM_BINS + 1)
    counts, _ = np.histogram(found.confidence, edges)
    right, _ = np.histogram(found.confidence[found.correct], edges)
    for number, (n, n_correct) in enumerate(zip(counts, right, strict=True)):
        result.add(
            "histogram",
            method=name,
            bin=number,
            low=float(edges[number]),
            high=float(edges[number + 1]),
            n=int(n),
            n_correct=int(n_correct),
        )


def _add_selective(name: str, found: ScoredRows, result: CellResult) -> None:
    """Accuracy and threshold when only the most confident share is answered."""
    curve = risk_coverage_curve(found.correct, found.confidence)
    at = np.searchsorted(curve.coverage, COVERAGES - 1e-12)
    for coverage, position in zip(COVERAGES, at, strict=True):
        place = min(int(position), len(curve.coverage) - 1)
        result.add(
            "selective",
            method=name,
            coverage=float(coverage),
            threshold=float(curve.threshold[place]),
            accuracy=float(1 - curve.risk[place]),
        )


def point_scores(found: ScoredRows, n_bins: int, size: int) -> dict[str, float]:
    """Scores on all rows; the null level is that of `size` of them."""
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
    """Cores, processor architecture and operating system."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide the numbers."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
