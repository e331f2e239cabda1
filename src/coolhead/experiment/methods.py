"""The methods of an experiment, in one table: a name, a class, and what it may see.

`rows` says on which labelled Small rows a method is fitted. Only the oracles name
``target``. Unlabelled target arrays reach a method only if its ``fit`` names them.
"""

import inspect
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

Role = Literal["source", "calibration", "target"]


@dataclass(frozen=True)
class Method:
    """How one method of the table is made and on which rows it is fitted."""

    label: str
    place: str | None
    rows: tuple[Role, ...] = ("calibration",)
    options: dict[str, Any] = field(default_factory=dict)
    unlabelled_target: Literal["small", "large"] = "small"
    sees_training_data: bool = False
    paper: str | None = None

    @property
    def is_oracle(self) -> bool:
        """True if the method sees labels of the target domain."""
        return "target" in self.rows

    def build(self, *, n_clusters: int, random_state: int) -> Any:
        """A fresh calibrator, given clusters and seed where its class takes them."""
        if self.place is None:
            return None
        module, name = self.place.split(":")
        maker = getattr(import_module(module), name)
        known = inspect.signature(maker).parameters
        settings = {"n_clusters": n_clusters, "random_state": random_state}
        given = {key: value for key, value in settings.items() if key in known}
        return maker(**(given | self.options))


_TEMPERATURE = "coolhead.calibrators.temperature:TemperatureScaling"
_NEAREST = "coolhead.calibrators.clustered:NearestClusterTemperature"
_REGRESSED = "coolhead.calibrators.clustered:RegressedTemperature"
_ENSEMBLE = "coolhead.calibrators.ensemble:TemperatureEnsemble"
_WITH_SOURCE: tuple[Role, ...] = ("calibration", "source")

METHODS: dict[str, Method] = {
    # References
    "uncalibrated": Method("Uncalibrated", None, (), paper="uncalibrated"),
    "source-only": Method(
        "Source-only", _TEMPERATURE, ("source",), paper="source_only"
    ),
    "target-only": Method(
        "Target-only (oracle)", _TEMPERATURE, ("target",), paper="target_only"
    ),
    # The paper's methods
    "set-level": Method("Set-level", _TEMPERATURE, paper="set"),
    "nearest-cluster": Method("Nearest cluster", _NEAREST, paper="cluster_nn"),
    "regression": Method("Regression", _REGRESSED, paper="cluster_regression"),
    "ensemble": Method("Ensemble", _ENSEMBLE, paper="ensemble"),
    # The same with the source's Small rows as one more domain
    "set-level+source": Method("Set-level + source", _TEMPERATURE, _WITH_SOURCE),
    "nearest-cluster+source": Method(
        "Nearest cluster + source", _NEAREST, _WITH_SOURCE
    ),
    "regression+source": Method("Regression + source", _REGRESSED, _WITH_SOURCE),
    "ensemble+source": Method("Ensemble + source", _ENSEMBLE, _WITH_SOURCE),
    "set-level-equal": Method(
        "Set-level, domains equal", _TEMPERATURE, options={"domain_weights": "equal"}
    ),
    # With unlabelled target rows
    "transcal": Method(
        "TransCal",
        "coolhead.calibrators.transfer:TransCal",
        ("source",),
        sees_training_data=True,
        paper="transcal",
    ),
    "wts": Method(
        "WTS",
        "coolhead.calibrators.transfer:WeightedTemperature",
        ("source",),
        sees_training_data=True,
        paper="wts",
    ),
    "cpcs": Method(
        "CPCS",
        "coolhead.calibrators.transfer:CPCS",
        ("source",),
        sees_training_data=True,
    ),
    "md-ts": Method("MD-TS", "coolhead.calibrators.multidomain:MultiDomainTemperature"),
    "target-ece-oracle": Method(
        "Target ECE (oracle)",
        "coolhead.calibrators.reference:TargetECEOracle",
        ("target",),
    ),
}
