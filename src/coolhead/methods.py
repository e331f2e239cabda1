"""The table of methods: a name, a class, and the rows that the method uses.

`rows` names the roles on whose labelled calibration rows a method is fitted. Only the
oracles name ``target``. Unlabelled target rows reach a method only if its class takes
"target", or if it adapts to the target: NAME+batch, NAME+20 and NAME+batch+20 are the
method NAME, adapted by `NewDomain` to unlabelled rows of the target, to some of its
labels, or to both.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from coolhead import baselines, calibrators
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
from coolhead.baselines.error_oracle import OracleErrorTemperature
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.parametric import ParameterizedTemperature
from coolhead.baselines.transfer import (
    CPCS,
    ChosenDomainsTemperature,
    TransCal,
    WeightedClusterTemperature,
    WeightedTemperature,
)
from coolhead.baselines.two_stage import TwoStageCalibration
from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.base import Calibrator, TemperatureCalibrator
from coolhead.calibrators.clustered import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.plugins import installed_methods, is_plugin, load_plugin, suggest

Role = Literal["source", "calibration", "target"]


@dataclass(frozen=True)
class Method:
    """How one method of the table is built, and on which rows it is fitted.

    Attributes
    ----------
    label : str
        Name in tables.
    maker : type or None
        Class of the calibrator; None for the uncalibrated classifier.
    rows : tuple of {"source", "calibration", "target"}
        Roles of the labelled rows of the fit.
    options : dict
        Parameters of the class.
    unlabelled_target : {"small", "large"}
        Part of the target whose unlabelled rows the method uses, if any.
    sees_training_data : bool
        Whether the method uses features of the classifier's training rows.
    paper : str or None
        Key of the paper's tables.
    base : str or None
        Name of the method that a method adapts to the target.
    batch : bool
        Whether it adapts to unlabelled calibration rows of the target.
    labels : int
        Labels of the target's calibration rows that it adapts to.
    """

    label: str
    maker: Any
    rows: tuple[Role, ...] = ("calibration",)
    options: dict[str, Any] = field(default_factory=dict)
    unlabelled_target: Literal["small", "large"] = "small"
    sees_training_data: bool = False
    paper: str | None = None
    base: str | None = None
    batch: bool = False
    labels: int = 0

    @property
    def is_oracle(self) -> bool:
        """True if the method is fitted on all labelled Small rows of the target."""
        return "target" in self.rows

    @property
    def sees_target(self) -> bool:
        """True if the method needs rows of the target domain, labelled or not."""
        return self.seen_of_target != ""

    @property
    def seen_of_target(self) -> str:
        """Rows of the target that the method uses, as text; empty for most."""
        if self.maker is None:
            return ""
        if self.is_oracle:
            return "all labels"
        takes = self.batch or "target" in self.maker(**self.options).takes
        labels = f"{self.labels} label{'' if self.labels == 1 else 's'}"
        parts = [("unlabelled", takes), (labels, self.labels > 0)]
        return ", ".join(text for text, used in parts if used)

    def build(self, *, n_clusters: int, random_state: int) -> Any:
        """Build a calibrator, with clusters and seed where its class has them."""
        if self.maker is None:
            return None
        calibrator = self.maker(**self.options)
        settings = {"n_clusters": n_clusters, "random_state": random_state}
        open_to = set(calibrator.get_params(deep=False)) - set(self.options)
        given = {name: value for name, value in settings.items() if name in open_to}
        return calibrator.set_params(**given)


def known_method(name: str) -> Method:
    """Return `find_method`; of an unknown method, an entry with the name alone."""
    try:
        return find_method(name)
    except (ValueError, ImportError):
        return Method(name, None, ())


def find_method(name: str) -> Method:
    """Find a method of the table, or make one of a class of calibrators.

    Other names are those of the classes of `coolhead.calibrators` and
    `coolhead.baselines`, ``python:MODULE:CLASS``, and the entry points
    ``coolhead.methods`` of installed packages.

    A class lists in `takes` the data that it uses. With "source" in the list, it is
    fitted on the source's calibration rows, too.
    """
    if name in METHODS:
        return METHODS[name]
    for package in (calibrators, baselines):
        if name in package.__all__ and isinstance(getattr(package, name), type):
            return _of_class(getattr(package, name))
    if is_plugin(name):
        return _of_class(load_plugin(name))
    adapting = _find_adapting(name)
    if adapting is None:
        known = [*METHODS, *ADAPTING, *installed_methods()]
        raise ValueError(f"unknown method {name!r}{suggest(name, known)}")
    return adapting


def _of_class(maker: Any) -> Method:
    """Return the method that fits a calibrator of this class with its defaults."""
    name = getattr(maker, "__name__", repr(maker))
    if not callable(maker):
        raise ValueError(f"{name} cannot be called; wanted a class of calibrators")
    try:
        made = maker()
    except TypeError as error:
        raise ValueError(
            f"{name} cannot be called without arguments ({error}); wanted a class of "
            "calibrators whose parameters have defaults"
        ) from error
    if not isinstance(made, Calibrator):
        raise ValueError(
            f"{name} makes a {type(made).__name__}; wanted a subclass of "
            "coolhead.calibrators.Calibrator, such as OutsideCalibrator around it"
        )
    rows: tuple[Role, ...] = ("calibration",)
    return Method(
        getattr(maker, "label", name),
        maker,
        (*rows, "source") if "source" in made.takes else rows,
        sees_training_data="reference" in made.takes,
    )


# Some of the names that `_find_adapting` knows; any base and any number will do.
ADAPTING = (
    "auto+batch",
    "auto+20",
    "auto+100",
    "auto+batch+20",
    "auto+batch+100",
    "plain+20",
    "plain+100",
)
_NAME = re.compile(r"(.+?)(\+batch)?(?:\+([1-9]\d*))?")


def _find_adapting(name: str) -> Method | None:
    """Parse NAME+batch, NAME+20, NAME+batch+20; plain+20 uses the labels alone."""
    found = _NAME.fullmatch(name)
    base, batch, count = found.groups() if found else (name, None, None)
    labels, words = int(count or 0), [] if batch is None else ["batch"]
    if labels:
        words.append(f"{labels} label{'' if labels == 1 else 's'}")
    if base == "plain" and batch is None and labels:
        label = f"Plain scaling, {words[0]}"
        return Method(label, TemperatureScaling, (), labels=labels)
    known = METHODS.get(base)
    if known is None or not words or known.sees_target:
        return None
    if not (known.rows and issubclass(known.maker, TemperatureCalibrator)):
        raise ValueError(
            f"method {name!r} would adapt {known.label}, which fits no temperature; "
            "wanted one that divides the logits, such as auto+batch+20"
        )
    label = " + ".join([known.label, *words])
    return replace(
        known,
        label=label,
        base=base,
        batch=batch is not None,
        labels=labels,
        paper=None,
    )


_SOURCE: tuple[Role, ...] = ("source",)
_TARGET: tuple[Role, ...] = ("target",)
_WITH_SOURCE: tuple[Role, ...] = ("calibration", "source")


def _transfer(label: str, maker: Any, **settings: Any) -> Method:
    """A method that weighs source rows to resemble the unlabelled target."""
    return Method(label, maker, _SOURCE, sees_training_data=True, **settings)


# The weights of TransCal's and CPCS's released code, neither cut nor scaled.
_PUBLISHED = {"estimator": "published"}


METHODS: dict[str, Method] = {
    # References
    "uncalibrated": Method("Uncalibrated", None, (), paper="uncalibrated"),
    "source-only": Method(
        "Source-only", TemperatureScaling, _SOURCE, paper="source_only"
    ),
    "target-only": Method(
        "Target-only (oracle)", TemperatureScaling, _TARGET, paper="target_only"
    ),
    "target-ece-oracle": Method("Target ECE (oracle)", OracleErrorTemperature, _TARGET),
    # The paper's methods
    "set-level": Method("Set-level", TemperatureScaling, paper="set"),
    "nearest-cluster": Method(
        "Nearest cluster", NearestClusterTemperature, paper="cluster_nn"
    ),
    "regression": Method(
        "Regression", RegressedTemperature, paper="cluster_regression"
    ),
    "ensemble": Method("Ensemble", TemperatureEnsemble, paper="ensemble"),
    # The same with the source's Small rows as one more domain
    "set-level+source": Method("Set-level + source", TemperatureScaling, _WITH_SOURCE),
    "nearest-cluster+source": Method(
        "Nearest cluster + source", NearestClusterTemperature, _WITH_SOURCE
    ),
    "regression+source": Method(
        "Regression + source", RegressedTemperature, _WITH_SOURCE
    ),
    "ensemble+source": Method("Ensemble + source", TemperatureEnsemble, _WITH_SOURCE),
    # Beyond the paper
    "shift-aware": Method(
        "Shift-aware", ShiftAwareTemperature, _WITH_SOURCE, sees_training_data=True
    ),
    "auto": Method("Auto", AutoCalibrator, _WITH_SOURCE, sees_training_data=True),
    "auto-temperature": Method(
        "Auto, temperatures alone",
        AutoCalibrator,
        _WITH_SOURCE,
        options={"class_offsets": False},
        sees_training_data=True,
    ),
    # Other methods without target data
    "set-level-equal": Method(
        "Set-level, equal domains",
        TemperatureScaling,
        options={"domain_weights": "equal"},
    ),
    "md-ts": Method("MD-TS", MultiDomainTemperature),
    "pts": Method("PTS", ParameterizedTemperature),
    "dac": Method("DAC", TwoStageCalibration, sees_training_data=True),
    "dac-temperature": Method(
        "DAC, first stage alone", DensityAwareTemperature, sees_training_data=True
    ),
    "ets": Method("ETS", EnsembleTemperatureScaling),
    # Methods that change the class scores
    "vector": Method("Vector scaling", VectorScaling),
    "bcts": Method("Bias-corrected temperature", BiasCorrectedTemperature),
    "matrix": Method("Matrix scaling", MatrixScaling),
    "platt": Method("Platt", PlattScaling),
    "histogram": Method("Histogram binning", HistogramBinning),
    "isotonic": Method("Isotonic", IsotonicCalibration),
    "isotonic-pooled": Method(
        "Isotonic, pooled", IsotonicCalibration, options={"scheme": "pooled"}
    ),
    "bayesian-binning": Method("Bayesian binning", BayesianBinning),
    # Methods that need unlabelled target data, with the published importance weights
    "transcal": _transfer("TransCal", TransCal, options=_PUBLISHED, paper="transcal"),
    "transcal-transductive": _transfer(
        "TransCal, transductive",
        TransCal,
        options=_PUBLISHED,
        unlabelled_target="large",
    ),
    "wts": _transfer("WTS", WeightedTemperature, options=_PUBLISHED, paper="wts"),
    "cpcs": _transfer("CPCS", CPCS, options=_PUBLISHED),
    # The same with ours: cross-fitted, cut and scaled
    "transcal-ours": _transfer("TransCal, our weights", TransCal),
    "transcal-root": _transfer(
        "TransCal, our weights, fixed power", TransCal, options={"solver": "root"}
    ),
    "wts-ours": _transfer("WTS, our weights", WeightedTemperature),
    "cpcs-ours": _transfer("CPCS, our weights", CPCS),
    "wts-calibration": Method("WTS, calibration domains", WeightedTemperature),
    "weighted-cluster": Method("Weighted clusters", WeightedClusterTemperature),
    "chosen-domains": Method("Set-level, chosen domains", ChosenDomainsTemperature),
}
