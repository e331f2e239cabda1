"""Every temperature method, fitted on one small problem with three domains."""

import numpy as np
import pytest

from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.baselines.error_oracle import OracleErrorTemperature
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.parametric.calibrator import ParameterizedTemperature
from coolhead.baselines.transfer.cpcs import CPCS
from coolhead.baselines.transfer.transcal import TransCal
from coolhead.baselines.transfer.weighted import (
    WeightedClusterTemperature,
    WeightedTemperature,
)
from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.clustered.calibrators import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.select.calibrator import SelectByDomain
from coolhead.calibrators.shift_aware.calibrator import ShiftAwareTemperature
from coolhead.calibrators.temperature import Identity, TemperatureScaling

N_ROWS, N_CLASSES, N_FEATURES = 900, 6, 12

CALIBRATORS = {
    "set": TemperatureScaling(),
    "identity": Identity(),
    "oracle-error": OracleErrorTemperature(),
    "nearest": NearestClusterTemperature(5, n_init=2),
    "nearest-standardize": NearestClusterTemperature(
        5, scaling="standardize", n_init=2
    ),
    "nearest-l2": NearestClusterTemperature(5, scaling="l2", n_init=2),
    "regression": RegressedTemperature(5, n_init=2),
    "regression-log": RegressedTemperature(
        5, target="log", clip="range", scaling="standardize", n_init=2
    ),
    "ensemble": TemperatureEnsemble(),
    "ensemble-own": TemperatureEnsemble(
        [Identity(), RegressedTemperature(3, n_init=1), MultiDomainTemperature()]
    ),
    "multidomain": MultiDomainTemperature(),
    "multidomain-range": MultiDomainTemperature(clip="range"),
    "weighted": WeightedTemperature(),
    "weighted-cluster": WeightedClusterTemperature(4),
    "transcal": TransCal(),
    "cpcs": CPCS(),
    "parametric": ParameterizedTemperature(max_iter=20),
    "shift-aware": ShiftAwareTemperature(ridge=2.0),
    "shift-aware-logits": ShiftAwareTemperature(["logit_margin", "feature_length"]),
    "pick": SelectByDomain([TemperatureScaling(), MultiDomainTemperature()]),
    "stack": SelectByDomain(
        [TemperatureScaling(), NearestClusterTemperature(3, n_init=1)], combine="stack"
    ),
    "auto": AutoCalibrator(),
    "density": DensityAwareTemperature(5, max_reference=300),
    "density-layers": DensityAwareTemperature(neighbor="nearest", layer_widths=(4, 8)),
}


@pytest.fixture(scope="session")
def problem() -> dict[str, np.ndarray]:
    """Rows whose overconfidence grows along the first feature."""
    rng = np.random.default_rng(3)
    domains = np.repeat(["a", "b", "c"], N_ROWS // 3)
    features = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    features[:, 0] += np.repeat([0.0, 2.0, 4.0], N_ROWS // 3)
    honest = rng.normal(scale=2, size=(N_ROWS, N_CLASSES))
    noise = rng.gumbel(size=honest.shape)
    logits = honest * (1 + np.abs(features[:, :1]) / 2)
    return {
        "logits": logits.astype(np.float32),
        "labels": (honest + noise).argmax(axis=1),
        "features": features,
        "sample_domain": domains,
    }


def fitted(name: str, problem: dict[str, np.ndarray]):
    data = CalibrationData.of(
        **problem,
        target_features=problem["features"][::3] + 0.3,
        target_logits=problem["logits"][::3],
        source_domain="a",
    )
    return fit_with(CALIBRATORS[name], data)


@pytest.fixture(scope="session", params=list(CALIBRATORS))
def calibrator(request, problem):
    return fitted(request.param, problem)


@pytest.fixture(scope="session")
def ensemble(problem):
    return TemperatureEnsemble().fit(**problem)


@pytest.fixture(scope="session")
def queries():
    """Rows of another batch, some far from everything that was calibrated."""
    rng = np.random.default_rng(8)
    logits = rng.normal(scale=4, size=(1000, N_CLASSES)).astype(np.float32)
    features = rng.normal(scale=1.5, size=(1000, N_FEATURES)).astype(np.float32)
    return logits, features
