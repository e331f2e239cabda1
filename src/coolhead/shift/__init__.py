"""How far a target lies from the calibration domains, from features alone."""

from coolhead.shift.bounds import TransferBounds, transfer_bounds
from coolhead.shift.clusters import Clusters, find_regions
from coolhead.shift.coverage import Coverage, coverage
from coolhead.shift.decomposition import ClusterDecomposition, decompose_divergence
from coolhead.shift.ratio import DensityRatio, density_ratio, summarise_weights
from coolhead.shift.report import ShiftReport, shift_report
from coolhead.shift.weights import (
    domain_sample_sizes,
    effective_sample_size,
    renyi_divergence,
    weight_variance,
)

__all__ = [
    "ClusterDecomposition",
    "Clusters",
    "Coverage",
    "DensityRatio",
    "ShiftReport",
    "TransferBounds",
    "coverage",
    "decompose_divergence",
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
