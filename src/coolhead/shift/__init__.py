"""How far a target lies from the calibration domains, from features alone."""

from coolhead.shift.clusters import Clusters, Coverage, coverage, find_regions
from coolhead.shift.ratio import (
    DensityRatio,
    density_ratio,
    domain_sample_sizes,
    effective_sample_size,
    renyi_divergence,
    summarise_weights,
    weight_variance,
)
from coolhead.shift.report import (
    ShiftReport,
    TransferBounds,
    shift_report,
    transfer_bounds,
)

__all__ = [
    "Clusters",
    "Coverage",
    "DensityRatio",
    "ShiftReport",
    "TransferBounds",
    "coverage",
    "density_ratio",
    "domain_sample_sizes",
    "effective_sample_size",
    "find_regions",
    "renyi_divergence",
    "shift_report",
    "summarise_weights",
    "transfer_bounds",
    "weight_variance",
]
