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

    @property
    def sees_target(self) -> bool:
        """True if the method needs rows of the target domain, labelled or not."""
        if self.place is None:
            return False
        wanted = inspect.signature(self.maker.fit).parameters
        return self.is_oracle or bool(
            {"target_features", "density_ratio"} & set(wanted)
        )

    @property
    def maker(self) -> Any:
        """The class of the calibrator."""
        module, name = str(self.place).split(":")
        return getattr(import_module(module), name)

    def build(self, *, n_clusters: int, random_state: int) -> Any:
        """A fresh calibrator, given clusters and seed where its class takes them."""
        if self.place is None:
            return None
        known = inspect.signature(self.maker).parameters
        settings = {"n_clusters": n_clusters, "random_state": random_state}
        given = {key: value for key, value in settings.items() if key in known}
        return self.maker(**(given | self.options))


_SOURCE: tuple[Role, ...] = ("source",)
_TARGET: tuple[Role, ...] = ("target",)
_WITH_SOURCE: tuple[Role, ...] = ("calibration", "source")

_SET_LEVEL = "coolhead.calibrators.temperature:TemperatureScaling"
_NEAREST = "coolhead.calibrators.clustered.calibrators:NearestClusterTemperature"
_REGRESSED = "coolhead.calibrators.clustered.calibrators:RegressedTemperature"
_ENSEMBLE = "coolhead.calibrators.ensemble:TemperatureEnsemble"
_SOURCE_ONLY = "coolhead.baselines.reference:SourceTemperature"
_ORACLE = "coolhead.baselines.reference:OracleTemperature"
_ERROR_ORACLE = "coolhead.baselines.reference:OracleErrorTemperature"
_TRANSCAL = "coolhead.baselines.transfer.transcal:TransCal"
_WEIGHTED = "coolhead.baselines.transfer.weighted:WeightedTemperature"
_WEIGHTED_CLUSTERS = "coolhead.baselines.transfer.weighted:WeightedClusterTemperature"
_CPCS = "coolhead.baselines.transfer.cpcs:CPCS"
_MULTI_DOMAIN = "coolhead.baselines.multidomain:MultiDomainTemperature"
_PARAMETRIC = "coolhead.baselines.parametric.calibrator:ParameterizedTemperature"
_DENSITY = "coolhead.baselines.density_aware:DensityAwareTemperature"
_TWO_STAGES = "coolhead.baselines.two_stage:TwoStageCalibration"
_MIXTURE = "coolhead.baselines.classwise.ets:EnsembleTemperatureScaling"
_AUTO = "coolhead.calibrators.auto:AutoCalibrator"
_SHIFT_AWARE = "coolhead.calibrators.shift_aware.calibrator:ShiftAwareTemperature"
_VECTOR = "coolhead.baselines.classwise.vector:VectorScaling"
_BIAS_CORRECTED = "coolhead.baselines.classwise.vector:BiasCorrectedTemperature"
_MATRIX = "coolhead.baselines.classwise.matrix:MatrixScaling"
_PLATT = "coolhead.baselines.binning.platt:PlattScaling"
_HISTOGRAM = "coolhead.baselines.binning.histogram:HistogramBinning"
_ISOTONIC = "coolhead.baselines.binning.isotonic:IsotonicCalibration"
_BAYESIAN = "coolhead.baselines.binning.bayesian:BayesianBinning"


def _transfer(label: str, place: str, **settings: Any) -> Method:
    """A method that weighs source rows to resemble the unlabelled target."""
    return Method(label, place, _SOURCE, sees_training_data=True, **settings)


# The weights of TransCal's and CPCS's released code, neither cut nor scaled.
_PUBLISHED = {"estimator": "published"}


METHODS: dict[str, Method] = {
    # References
    "uncalibrated": Method("Uncalibrated", None, (), paper="uncalibrated"),
    "source-only": Method("Source-only", _SOURCE_ONLY, _SOURCE, paper="source_only"),
    "target-only": Method(
        "Target-only (oracle)", _ORACLE, _TARGET, paper="target_only"
    ),
    "target-ece-oracle": Method("Target ECE (oracle)", _ERROR_ORACLE, _TARGET),
    # The paper's methods
    "set-level": Method("Set-level", _SET_LEVEL, paper="set"),
    "nearest-cluster": Method("Nearest cluster", _NEAREST, paper="cluster_nn"),
    "regression": Method("Regression", _REGRESSED, paper="cluster_regression"),
    "ensemble": Method("Ensemble", _ENSEMBLE, paper="ensemble"),
    # The same with the source's Small rows as one more domain
    "set-level+source": Method("Set-level + source", _SET_LEVEL, _WITH_SOURCE),
    "nearest-cluster+source": Method(
        "Nearest cluster + source", _NEAREST, _WITH_SOURCE
    ),
    "regression+source": Method("Regression + source", _REGRESSED, _WITH_SOURCE),
    "ensemble+source": Method("Ensemble + source", _ENSEMBLE, _WITH_SOURCE),
    # Beyond the paper
    "shift-aware": Method(
        "Shift-aware", _SHIFT_AWARE, _WITH_SOURCE, sees_training_data=True
    ),
    "auto": Method("Auto", _AUTO, _WITH_SOURCE, sees_training_data=True),
    # Other methods without target data
    "set-level-equal": Method(
        "Set-level, equal domains", _SET_LEVEL, options={"domain_weights": "equal"}
    ),
    "md-ts": Method("MD-TS", _MULTI_DOMAIN),
    "pts": Method("PTS", _PARAMETRIC),
    "dac": Method("DAC", _TWO_STAGES, sees_training_data=True),
    "dac-temperature": Method(
        "DAC, first stage alone", _DENSITY, sees_training_data=True
    ),
    "ets": Method("ETS", _MIXTURE),
    # Methods that change the class scores
    "vector": Method("Vector scaling", _VECTOR),
    "bcts": Method("Bias-corrected temperature", _BIAS_CORRECTED),
    "matrix": Method("Matrix scaling", _MATRIX),
    "platt": Method("Platt", _PLATT),
    "histogram": Method("Histogram binning", _HISTOGRAM),
    "isotonic": Method("Isotonic", _ISOTONIC),
    "isotonic-pooled": Method(
        "Isotonic, pooled", _ISOTONIC, options={"scheme": "pooled"}
    ),
    "bayesian-binning": Method("Bayesian binning", _BAYESIAN),
    # Methods that need unlabelled target data, with the published importance weights
    "transcal": _transfer("TransCal", _TRANSCAL, options=_PUBLISHED, paper="transcal"),
    "transcal-transductive": _transfer(
        "TransCal, transductive",
        _TRANSCAL,
        options=_PUBLISHED,
        unlabelled_target="large",
    ),
    "wts": _transfer("WTS", _WEIGHTED, options=_PUBLISHED, paper="wts"),
    "cpcs": _transfer("CPCS", _CPCS, options=_PUBLISHED),
    # The same with ours: cross-fitted, cut and scaled
    "transcal-ours": _transfer("TransCal, our weights", _TRANSCAL),
    "transcal-root": _transfer(
        "TransCal, our weights, fixed power", _TRANSCAL, options={"solver": "root"}
    ),
    "wts-ours": _transfer("WTS, our weights", _WEIGHTED),
    "cpcs-ours": _transfer("CPCS, our weights", _CPCS),
    "wts-calibration": Method("WTS, calibration domains", _WEIGHTED),
    "weighted-cluster": Method("Weighted clusters", _WEIGHTED_CLUSTERS),
}
