"""Honest confidence for classifiers in domains they have never seen.

Every name below is imported on first use, so that `import coolhead` costs nothing.
What is not on this screen lives in a namespace: `ch.metrics`, `ch.baselines`, ...
"""

from typing import TYPE_CHECKING

from coolhead.extras import keep_old_modules, lazy_names

__version__ = "0.3.0"

if TYPE_CHECKING:
    from coolhead import (
        baselines,
        calibrators,
        dask,
        datasets,
        figures,
        lab,
        metrics,
        new_domain,
        report,
        shift,
        torch,
    )
    from coolhead.calibrators.auto import AutoCalibrator
    from coolhead.calibrators.clustered import (
        NearestClusterTemperature,
        RegressedTemperature,
    )
    from coolhead.calibrators.ensemble import TemperatureEnsemble
    from coolhead.calibrators.select import SelectByDomain
    from coolhead.calibrators.shift_aware import ShiftAwareTemperature
    from coolhead.calibrators.temperature import TemperatureScaling
    from coolhead.classifier.classifier import CalibratedClassifier
    from coolhead.datasets import load_dataset
    from coolhead.io.archive import DomainArchive
    from coolhead.io.calibrators import load_calibrator, save_calibrator
    from coolhead.io.reading import load_archive
    from coolhead.lab.heads.train import train_head
    from coolhead.metrics import (
        expected_calibration_error,
        is_significant,
        paired_bootstrap,
        reliability_curve,
    )
    from coolhead.models import logits_from
    from coolhead.monitor import DriftMonitor
    from coolhead.new_domain.domain import NewDomain
    from coolhead.numerics.checks import logits_from_probabilities
    from coolhead.numerics.solver import Status
    from coolhead.numerics.temperature import fit_temperature

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead",
    {
        "calibrators.auto": ["AutoCalibrator"],
        "calibrators.temperature": ["TemperatureScaling"],
        "calibrators.clustered": ["NearestClusterTemperature", "RegressedTemperature"],
        "calibrators.ensemble": ["TemperatureEnsemble"],
        "calibrators.shift_aware": ["ShiftAwareTemperature"],
        "calibrators.select": ["SelectByDomain"],
        "classifier": ["CalibratedClassifier"],
        "models": ["logits_from"],
        "numerics.checks": ["logits_from_probabilities"],
        "numerics.solver": ["Status"],
        "numerics.temperature": ["fit_temperature"],
        "metrics": [
            "expected_calibration_error",
            "reliability_curve",
            "paired_bootstrap",
            "is_significant",
        ],
        "io": ["DomainArchive", "load_archive", "load_calibrator", "save_calibrator"],
        "datasets": ["load_dataset"],
        "monitor": ["DriftMonitor"],
        "new_domain.domain": ["NewDomain"],
        "lab.heads": ["train_head"],
    },
    subpackages=(
        "baselines",
        "calibrators",
        "dask",
        "datasets",
        "figures",
        "lab",
        "metrics",
        "new_domain",
        "report",
        "shift",
        "torch",
    ),
    moved={"heads": "coolhead.lab.heads"},
)
keep_old_modules(
    {
        "coolhead.archive": "coolhead.io",
        "coolhead.heads": "coolhead.lab.heads",
        "coolhead.persist": "coolhead.io",
    }
)
