"""Calibration errors and scores, with intervals and tests."""

from coolhead.metrics.bins import Interval, SubsampledScore
from coolhead.metrics.bootstrap import (
    SIGMA_LABELS,
    PairedBootstrap,
    SigmaCounts,
    holm,
    improvement_ratio,
    is_significant,
    paired_bootstrap,
    paired_bootstrap_mean,
    pooled_sigma,
    sigma_counts,
)
from coolhead.metrics.calibration_error import (
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    expected_calibration_error_null,
    maximum_calibration_error,
    signed_calibration_gap,
)
from coolhead.metrics.curves import (
    ReliabilityCurve,
    RiskCoverageCurve,
    reliability_curve,
    risk_coverage_curve,
)
from coolhead.metrics.resampling import (
    Subsamples,
    draw_subsamples,
    subsample_ece,
    subsample_mean,
)
from coolhead.metrics.scores import (
    brier_score,
    calibration_gain,
    negative_log_likelihood,
    top_label_brier_score,
)

__all__ = [
    "Interval",
    "PairedBootstrap",
    "ReliabilityCurve",
    "RiskCoverageCurve",
    "SIGMA_LABELS",
    "SigmaCounts",
    "SubsampledScore",
    "Subsamples",
    "brier_score",
    "calibration_gain",
    "classwise_calibration_error",
    "debiased_calibration_error",
    "draw_subsamples",
    "expected_calibration_error",
    "expected_calibration_error_null",
    "holm",
    "improvement_ratio",
    "is_significant",
    "maximum_calibration_error",
    "negative_log_likelihood",
    "paired_bootstrap",
    "paired_bootstrap_mean",
    "pooled_sigma",
    "reliability_curve",
    "risk_coverage_curve",
    "sigma_counts",
    "signed_calibration_gap",
    "subsample_ece",
    "subsample_mean",
    "top_label_brier_score",
]
