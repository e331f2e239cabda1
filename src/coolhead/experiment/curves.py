"""Curves of one method that the report draws: bins, histogram, abstention, T."""

import numpy as np

from coolhead.experiment.predictions import Predictions
from coolhead.experiment.results import CellResult
from coolhead.metrics import reliability_curve, risk_coverage_curve

HISTOGRAM_BINS = 40
COVERAGES = np.arange(1, 41) / 40
QUANTILES = np.arange(41) / 40


def add_curves(name: str, found: Predictions, n_bins: int, result: CellResult) -> None:
    """Add reliability bins, confidence histogram, selective curve, temperatures."""
    curve = reliability_curve(found.correct, found.confidence, n_bins=n_bins)
    for bin_number, n in enumerate(curve.count):
        sure, right = curve.confidence[bin_number], curve.accuracy[bin_number]
        result.add(
            "reliability",
            method=name,
            bin=bin_number,
            n=int(n),
            sum_confidence=float(sure * n) if n else 0.0,
            sum_correct=round(right * n) if n else 0,
        )
    _add_histogram(name, found, result)
    _add_selective(name, found, result)
    if found.temperature is not None:
        values = np.quantile(found.temperature, QUANTILES)
        for quantile, value in zip(QUANTILES, values, strict=True):
            result.add(
                "temperature", method=name, quantile=float(quantile), value=float(value)
            )


def _add_histogram(name: str, found: Predictions, result: CellResult) -> None:
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


def _add_selective(name: str, found: Predictions, result: CellResult) -> None:
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
