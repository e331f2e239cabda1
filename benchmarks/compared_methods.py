"""Every method of the comparison: how it is made, and whose labels it is fitted on."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from coolhead.baselines.binning.bayesian import BayesianBinning
from coolhead.baselines.binning.histogram import HistogramBinning
from coolhead.baselines.binning.isotonic import IsotonicCalibration
from coolhead.baselines.binning.platt import PlattScaling
from coolhead.baselines.classwise.ets import EnsembleTemperatureScaling
from coolhead.baselines.classwise.matrix import MatrixScaling
from coolhead.baselines.classwise.vector import BiasCorrectedTemperature, VectorScaling
from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.parametric.calibrator import ParameterizedTemperature
from coolhead.baselines.reference import (
    Identity,
    OracleErrorTemperature,
    OracleTemperature,
    SourceTemperature,
)
from coolhead.baselines.transfer.cpcs import CPCS
from coolhead.baselines.transfer.transcal import TransCal
from coolhead.baselines.transfer.weighted import (
    WeightedClusterTemperature,
    WeightedTemperature,
)
from coolhead.calibrators.clustered.calibrators import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling


class Method(NamedTuple):
    """`labelled` is "source", "calibration" or "target"."""

    make: Callable[[], Any]
    labelled: str = "calibration"


METHODS = {
    "uncalibrated": Method(Identity),
    "source-only": Method(SourceTemperature, "source"),
    "target-only (oracle)": Method(OracleTemperature, "target"),
    "target-only, least ECE (oracle)": Method(OracleErrorTemperature, "target"),
    "set-level": Method(TemperatureScaling),
    "nearest cluster": Method(NearestClusterTemperature),
    "regression": Method(RegressedTemperature),
    "ensemble": Method(TemperatureEnsemble),
    "weighted TS, source": Method(WeightedTemperature, "source"),
    "weighted TS, calibration": Method(WeightedTemperature),
    "weighted TS, chosen domains": Method(
        lambda: WeightedTemperature(min_domain_share=0.3)
    ),
    "weighted nearest cluster": Method(WeightedClusterTemperature),
    "CPCS": Method(CPCS, "source"),
    "TransCal": Method(TransCal, "source"),
    "TransCal, root": Method(lambda: TransCal(solver="root"), "source"),
    "MD-TS": Method(MultiDomainTemperature),
    "PTS": Method(ParameterizedTemperature),
    "DAC": Method(DensityAwareTemperature),
    "ETS": Method(EnsembleTemperatureScaling),
    "vector": Method(VectorScaling),
    "vector, no bias": Method(lambda: VectorScaling(bias=False)),
    "matrix (ODIR)": Method(MatrixScaling),
    "BCTS": Method(BiasCorrectedTemperature),
    "Platt": Method(PlattScaling),
    "histogram": Method(HistogramBinning),
    "histogram, one-vs-all": Method(lambda: HistogramBinning(scheme="one_vs_all")),
    "isotonic, one-vs-all": Method(IsotonicCalibration),
    "isotonic, pooled": Method(lambda: IsotonicCalibration("pooled")),
    "BBQ": Method(BayesianBinning),
    "BBQ, one-vs-all": Method(lambda: BayesianBinning("one_vs_all")),
}


def fit_with(calibrator: Any, logits: Any, labels: Any, **known: Any) -> Any:
    """Fit with those of the known arrays that the method's `fit` asks for by name."""
    wanted = inspect.signature(calibrator.fit).parameters
    given = {name: value for name, value in known.items() if name in wanted}
    return calibrator.fit(logits, labels, **given)
