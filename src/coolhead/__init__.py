"""Honest confidence for classifiers in domains they have never seen.

Every name below is imported on first use, so that `import coolhead` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "numerics.inputs": [
        "logits_from_probabilities",
    ],
    "numerics.temperature": [
        "fit_temperature",
        "TemperatureFit",
        "Status",
    ],
    "calibrators.temperature": [
        "TemperatureScaling",
    ],
    "calibrators.clustered": [
        "NearestClusterTemperature",
        "RegressedTemperature",
    ],
    "calibrators.ensemble": [
        "TemperatureEnsemble",
    ],
    "calibrators.shift_aware": [
        "ShiftAwareTemperature",
    ],
    "calibrators.select": [
        "LeaveOneDomainOut",
        "SelectByDomain",
    ],
    "calibrators.auto": [
        "AutoCalibrator",
    ],
    "calibrators.reference": [
        "Identity",
        "SourceTemperature",
        "OracleTemperature",
        "OracleErrorTemperature",
    ],
    "calibrators.weighted": [
        "WeightedTemperature",
        "WeightedClusterTemperature",
    ],
    "calibrators.cpcs": [
        "CPCS",
    ],
    "calibrators.transcal": [
        "TransCal",
    ],
    "calibrators.multidomain": [
        "MultiDomainTemperature",
    ],
    "calibrators.parametric": [
        "ParameterizedTemperature",
    ],
    "calibrators.density_aware": [
        "DensityAwareTemperature",
    ],
    "calibrators.ensemble_ts": [
        "EnsembleTemperatureScaling",
    ],
    "calibrators.vector": [
        "VectorScaling",
        "BiasCorrectedTemperature",
    ],
    "calibrators.matrix": [
        "MatrixScaling",
    ],
    "calibrators.platt": [
        "PlattScaling",
    ],
    "calibrators.histogram": [
        "HistogramBinning",
    ],
    "calibrators.isotonic": [
        "IsotonicCalibration",
    ],
    "calibrators.bayesian_binning": [
        "BayesianBinning",
    ],
    "calibrators.outside": [
        "OutsideCalibrator",
    ],
    "calibrators.two_stage": [
        "TwoStageCalibration",
    ],
    "calibrators.classifier": [
        "CalibratedClassifier",
    ],
    "metrics": [
        "expected_calibration_error",
        "classwise_calibration_error",
        "debiased_calibration_error",
        "maximum_calibration_error",
        "signed_calibration_gap",
        "kernel_calibration_error",
        "expected_calibration_error_null",
        "negative_log_likelihood",
        "brier_score",
        "top_label_brier_score",
        "calibration_gain",
        "improvement_ratio",
        "reliability_curve",
        "risk_coverage_curve",
        "draw_subsamples",
        "subsample_ece",
        "subsample_mean",
        "paired_bootstrap",
        "paired_bootstrap_mean",
        "is_significant",
        "pooled_sigma",
        "sigma_counts",
    ],
    "archive": [
        "DomainArchive",
        "load_archive",
    ],
    "datasets": [
        "load_dataset",
        "list_images",
        "split_large_small",
    ],
    "paper": [
        "paper_table",
    ],
    "shift": [
        "coverage",
        "density_ratio",
        "shift_report",
    ],
    "heads": [
        "train_head",
    ],
    "persist": [
        "load_calibrator",
        "save_calibrator",
    ],
    "monitor": [
        "DriftMonitor",
    ],
}
_ROOMS = ["dask", "heads", "plot", "report", "shift", "torch"]
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME, *_ROOMS]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from coolhead.archive import DomainArchive, load_archive
    from coolhead.calibrators.auto import AutoCalibrator
    from coolhead.calibrators.bayesian_binning import BayesianBinning
    from coolhead.calibrators.classifier import CalibratedClassifier
    from coolhead.calibrators.clustered import (
        NearestClusterTemperature,
        RegressedTemperature,
    )
    from coolhead.calibrators.cpcs import CPCS
    from coolhead.calibrators.density_aware import DensityAwareTemperature
    from coolhead.calibrators.ensemble import TemperatureEnsemble
    from coolhead.calibrators.ensemble_ts import EnsembleTemperatureScaling
    from coolhead.calibrators.histogram import HistogramBinning
    from coolhead.calibrators.isotonic import IsotonicCalibration
    from coolhead.calibrators.matrix import MatrixScaling
    from coolhead.calibrators.multidomain import MultiDomainTemperature
    from coolhead.calibrators.outside import OutsideCalibrator
    from coolhead.calibrators.parametric import ParameterizedTemperature
    from coolhead.calibrators.platt import PlattScaling
    from coolhead.calibrators.reference import (
        Identity,
        OracleErrorTemperature,
        OracleTemperature,
        SourceTemperature,
    )
    from coolhead.calibrators.select import LeaveOneDomainOut, SelectByDomain
    from coolhead.calibrators.shift_aware import ShiftAwareTemperature
    from coolhead.calibrators.temperature import TemperatureScaling
    from coolhead.calibrators.transcal import TransCal
    from coolhead.calibrators.two_stage import TwoStageCalibration
    from coolhead.calibrators.vector import BiasCorrectedTemperature, VectorScaling
    from coolhead.calibrators.weighted import (
        WeightedClusterTemperature,
        WeightedTemperature,
    )
    from coolhead.datasets import list_images, load_dataset, split_large_small
    from coolhead.heads import train_head
    from coolhead.metrics import (
        brier_score,
        calibration_gain,
        classwise_calibration_error,
        debiased_calibration_error,
        draw_subsamples,
        expected_calibration_error,
        expected_calibration_error_null,
        improvement_ratio,
        is_significant,
        kernel_calibration_error,
        maximum_calibration_error,
        negative_log_likelihood,
        paired_bootstrap,
        paired_bootstrap_mean,
        pooled_sigma,
        reliability_curve,
        risk_coverage_curve,
        sigma_counts,
        signed_calibration_gap,
        subsample_ece,
        subsample_mean,
        top_label_brier_score,
    )
    from coolhead.monitor import DriftMonitor
    from coolhead.numerics.inputs import logits_from_probabilities
    from coolhead.numerics.temperature import Status, TemperatureFit, fit_temperature
    from coolhead.paper import paper_table
    from coolhead.persist import load_calibrator, save_calibrator
    from coolhead.shift import coverage, density_ratio, shift_report


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"coolhead.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"coolhead.{name}")
    raise AttributeError(f"module 'coolhead' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
