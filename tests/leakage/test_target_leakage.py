"""Poisoned target arrays: only methods that declare target data may notice."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from coolhead.baselines.binning import (
    BayesianBinning,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
)
from coolhead.baselines.classwise import (
    BiasCorrectedTemperature,
    EnsembleTemperatureScaling,
    MatrixScaling,
    VectorScaling,
)
from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.parametric import ParameterizedTemperature
from coolhead.baselines.transfer import (
    CPCS,
    ChosenDomainsTemperature,
    TransCal,
    WeightedClusterTemperature,
    WeightedTemperature,
)
from coolhead.calibrators.clustered import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import Identity, TemperatureScaling
from simulate import shifted_domains

BLIND = [
    Identity(),
    TemperatureScaling(),
    NearestClusterTemperature(3, n_init=1),
    RegressedTemperature(3, n_init=1),
    TemperatureEnsemble(n_clusters=3),
    MultiDomainTemperature(),
    ParameterizedTemperature(max_iter=5),
    DensityAwareTemperature(),
    EnsembleTemperatureScaling(),
    VectorScaling(),
    MatrixScaling(),
    BiasCorrectedTemperature(),
    PlattScaling(),
    HistogramBinning(),
    IsotonicCalibration(),
    BayesianBinning(),
]
DECLARED = {
    "WeightedTemperature": {"target_features"},
    "WeightedClusterTemperature": {"target_features"},
    "ChosenDomainsTemperature": {"target_features"},
    "CPCS": {"target_features"},
    "TransCal": {"target_features", "target_logits"},
}
SEEING = [
    WeightedTemperature(),
    WeightedClusterTemperature(3),
    # Every change of the weights counts: only the best domain stays.
    ChosenDomainsTemperature(keep=1),
    CPCS(),
    TransCal(),
]
TARGET_ARGUMENTS = {"target_features", "target_logits", "target_labels"}


@pytest.fixture(scope="module")
def data():
    logits, labels, features, domains = shifted_domains(n=120)
    known = {"features": features, "sample_domain": domains}
    return logits, labels, known


def asked_for(method, known):
    names = inspect.signature(method.fit).parameters
    return {name: value for name, value in known.items() if name in names}


@pytest.mark.parametrize("method", BLIND, ids=lambda m: type(m).__name__)
def test_blind_methods_never_receive_target_arrays(method, data):
    logits, labels, known = data
    poison = {
        "target_features": np.full((50, 6), np.nan),
        "target_logits": np.full((50, 5), np.nan),
        "target_labels": np.full(50, np.nan),
    }
    given = asked_for(method, known | poison)
    assert not TARGET_ARGUMENTS & set(given)
    clean = clone(method).fit(logits, labels, **asked_for(method, known))
    poisoned = clone(method).fit(logits, labels, **given)
    np.testing.assert_array_equal(
        clean.predict_proba(logits, known["features"]),
        poisoned.predict_proba(logits, known["features"]),
    )
    with pytest.raises(TypeError):
        clone(method).fit(logits, labels, **known, **poison)


@pytest.mark.parametrize("method", SEEING, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("poisoned", ["target_features", "target_logits"])
def test_declared_methods_look_at_what_they_declare(method, poisoned, data):
    logits, labels, known = data
    target = {
        "target_features": known["features"][::3] + 0.5,
        "target_logits": logits[::3],
    }
    clean = clone(method).fit(logits, labels, **known, **target)
    target[poisoned] = np.full_like(target[poisoned], np.nan)
    if poisoned in DECLARED[type(method).__name__]:
        with pytest.raises(ValueError, match=f"{poisoned} contains NaN"):
            clone(method).fit(logits, labels, **known, **target)
    else:
        again = clone(method).fit(logits, labels, **known, **target)
        assert again.temperature_ == clean.temperature_
