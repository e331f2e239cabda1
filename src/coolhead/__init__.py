"""Honest confidence for classifiers in domains they have never seen.

Every name below is imported on first use, so that `import coolhead` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "numerics.inputs": ["logits_from_probabilities"],
    "numerics.temperature": ["fit_temperature", "TemperatureFit", "Status"],
    "calibrators.temperature": ["TemperatureScaling"],
    "calibrators.clustered": ["NearestClusterTemperature", "RegressedTemperature"],
    "calibrators.ensemble": ["TemperatureEnsemble"],
    "calibrators.classifier": ["CalibratedClassifier"],
    "archive": ["DomainArchive", "load_archive"],
}
_ROOMS = ["dask", "heads", "plot", "shift", "torch"]
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME, *_ROOMS]

if TYPE_CHECKING:
    from coolhead.archive import DomainArchive, load_archive
    from coolhead.calibrators.classifier import CalibratedClassifier
    from coolhead.calibrators.clustered import (
        NearestClusterTemperature,
        RegressedTemperature,
    )
    from coolhead.calibrators.ensemble import TemperatureEnsemble
    from coolhead.calibrators.temperature import TemperatureScaling
    from coolhead.numerics.inputs import logits_from_probabilities
    from coolhead.numerics.temperature import Status, TemperatureFit, fit_temperature


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"coolhead.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"coolhead.{name}")
    raise AttributeError(f"module 'coolhead' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
