"""Every method of the comparison: how it is made, and whose labels it is fitted on."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from coolhead.calibrators.bayesian_binning import BayesianBinning
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
from coolhead.calibrators.parametric import ParameterizedTemperature
from coolhead.calibrators.platt import PlattScaling
from coolhead.calibrators.reference import (
    Identity,
    OracleErrorTemperature,
    OracleTemperature,
    SourceTemperature,
)
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.calibrators.transcal import TransCal
from coolhead.calibrators.vector import BiasCorrectedTemperature, VectorScaling
from coolhead.calibrators.weighted import (
    WeightedClusterTemperature,
    WeightedTemperature,
)


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
