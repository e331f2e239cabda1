"""Honest confidence for classifiers in domains they have never seen.

Every name below is imported on first use, so that `import coolhead` costs nothing.
What is not on this screen lives in a namespace: `ch.metrics`, `ch.baselines`, ...
"""

from typing import TYPE_CHECKING

from coolhead.lazy import lazy_names

__version__ = "0.2.0"

if TYPE_CHECKING:
    from coolhead import (
        baselines,
        calibrators,
        dask,
        datasets,
        figures,
        heads,
        metrics,
        new_domain,
        report,
        shift,
        torch,
    )
    from coolhead.archive import DomainArchive, load_archive
    from coolhead.calibrators.auto import AutoCalibrator
    from coolhead.calibrators.classifier import CalibratedClassifier
    from coolhead.calibrators.clustered import (
        NearestClusterTemperature,
        RegressedTemperature,
    )
    from coolhead.calibrators.ensemble import TemperatureEnsemble
    from coolhead.calibrators.select import SelectByDomain
    from coolhead.calibrators.shift_aware import ShiftAwareTemperature
    from coolhead.calibrators.temperature import TemperatureScaling
    from coolhead.datasets import load_dataset
    from coolhead.heads import train_head
    from coolhead.metrics import (
        expected_calibration_error,
        is_significant,
        paired_bootstrap,
        reliability_curve,
    )
    from coolhead.models import logits_from
    from coolhead.monitor import DriftMonitor
    from coolhead.new_domain.domain import NewDomain
    from coolhead.numerics.probabilities import logits_from_probabilities
    from coolhead.numerics.solution import Status
    from coolhead.numerics.temperature import fit_temperature
    from coolhead.persist import load_calibrator, save_calibrator

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead",
    {
        "calibrators.auto": ["AutoCalibrator"],
        "calibrators.temperature": ["TemperatureScaling"],
        "calibrators.clustered": ["NearestClusterTemperature", "RegressedTemperature"],
        "calibrators.ensemble": ["TemperatureEnsemble"],
        "calibrators.shift_aware": ["ShiftAwareTemperature"],
        "calibrators.select": ["SelectByDomain"],
        "calibrators.classifier": ["CalibratedClassifier"],
        "models": ["logits_from"],
        "numerics.probabilities": ["logits_from_probabilities"],
        "numerics.solution": ["Status"],
        "numerics.temperature": ["fit_temperature"],
        "metrics": [
            "expected_calibration_error",
            "reliability_curve",
            "paired_bootstrap",
            "is_significant",
        ],
        "archive": ["DomainArchive", "load_archive"],
        "datasets": ["load_dataset"],
        "heads": ["train_head"],
        "persist": ["load_calibrator", "save_calibrator"],
        "monitor": ["DriftMonitor"],
        "new_domain.domain": ["NewDomain"],
    },
    rooms=(
        "baselines",
        "calibrators",
        "dask",
        "datasets",
        "figures",
        "heads",
        "metrics",
        "new_domain",
        "report",
        "shift",
        "torch",
    ),
)
