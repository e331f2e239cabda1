"""Problems that every calibrator is fitted on, and the list of all calibrators.

The list is generated from the package: a calibrator added there is tested without a
line here, unless its constructor needs arguments. NumPy and scikit-learn only.
"""

import warnings
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

import coolhead.baselines
import coolhead.calibrators
from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.new_domain import NewDomain

N_ROWS, N_CLASSES, N_FEATURES = 360, 6, 12
Problem = dict[str, Any]

# Constructor arguments of those that need some, or that would take long without.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "OutsideCalibrator": {"calibrator": LogisticRegression()},
    "ParameterizedTemperature": {"max_iter": 30},
}
# Settings under which a calibrator is another function.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "NearestClusterTemperature": [{"scaling": "standardize"}, {"scaling": "l2"}],
    "RegressedTemperature": [
        {"target": "log", "clip": "range", "scaling": "standardize"},
        {"scaling": "l2"},
    ],
    "MultiDomainTemperature": [{"clip": "range"}],
    "DensityAwareTemperature": [{"neighbor": "nearest", "layer_widths": (4, 8)}],
    "ShiftAwareTemperature": [{"descriptors": ("logit_margin", "feature_length")}],
    "HistogramBinning": [{"scheme": "one_vs_all"}],
    "BayesianBinning": [{"scheme": "one_vs_all"}],
    "IsotonicCalibration": [{"scheme": "pooled"}, {"scheme": "top_label"}],
}


def calibrators() -> dict[str, Any]:
    """Name → unfitted calibrator of logits, every one that the package offers."""
    found = {}
    for package in (coolhead.calibrators, coolhead.baselines):
        for name in package.__all__:
            kind = getattr(package, name)
            if is_calibrator(kind):
                found[name] = kind(**ARGUMENTS.get(name, {}))
    return found


def variants() -> dict[str, Any]:
    """Further settings of some of them, among them calibrators made of others."""
    plain = calibrators()
    found = {
        f"{name}({', '.join(f'{key}={value!r}' for key, value in settings.items())})": (
            clone(plain[name]).set_params(**settings)
        )
        for name, several in VARIANTS.items()
        for settings in several
    }
    members = [plain["Identity"], plain["RegressedTemperature"]]
    found["TemperatureEnsemble(own members)"] = clone(
        plain["TemperatureEnsemble"]
    ).set_params(members=members)
    for combine in ("pick", "stack"):
        found[f"SelectByDomain({combine})"] = clone(plain["SelectByDomain"]).set_params(
            candidates=[
                plain["TemperatureScaling"],
                plain["NearestClusterTemperature"],
            ],
            combine=combine,
        )
    found["TwoStageCalibration(of vector scaling)"] = clone(
        plain["TwoStageCalibration"]
    ).set_params(first=plain["TemperatureEnsemble"], base=plain["VectorScaling"])
    for base in ("AutoCalibrator", "TemperatureScaling"):
        found[f"NewDomain({base}).calibrator"] = OffsetTemperature(plain[base])
    return found


def is_calibrator(kind: type) -> bool:
    """A class that fits on logits, and is no base class."""
    bases = (
        coolhead.calibrators.Calibrator,
        coolhead.calibrators.TemperatureCalibrator,
    )
    return isinstance(kind, type) and issubclass(kind, bases[0]) and kind not in bases


def fitted(calibrator: Any, problem: Problem) -> Any:
    """A fitted copy, given of the problem what it takes."""
    if isinstance(calibrator, OffsetTemperature):
        return moved(fitted(calibrator.base, problem), problem)
    data = CalibrationData.of(
        problem["logits"],
        problem["labels"],
        features=problem["features"],
        sample_domain=problem["domains"],
        source_domain=problem["source"],
        reference_features=problem["reference"],
        target_features=problem["features"][::3] + np.float32(0.3),
        target_logits=problem["logits"][::3],
    )
    with warnings.catch_warnings():
        # Merged clusters and absent classes are what some problems are for.
        warnings.simplefilter("ignore")
        return fit_with(clone(calibrator), data)


def moved(calibrator: Any, problem: Problem) -> OffsetTemperature:
    """The calibrator of the problem's own rows as a new domain, some with labels."""
    rows = np.arange(0, len(problem["labels"]), 9)
    there = NewDomain(calibrator, problem["logits"], problem["features"])
    return there.with_labels(rows, problem["labels"][rows]).calibrator


def problems() -> dict[str, Problem]:
    """Name → logits, labels, features, domains, source and reference."""
    ordinary = ordinary_problem()
    largest = np.abs(ordinary["logits"]).max()
    return {
        "ordinary": ordinary,
        "no mistakes": {**ordinary, "labels": ordinary["logits"].argmax(axis=1)},
        "one domain": {
            **ordinary,
            "domains": np.repeat("only", N_ROWS),
            "source": None,
            "reference": None,
        },
        "constant features": {
            **ordinary,
            "features": np.full_like(ordinary["features"], 1.7),
            "reference": np.full_like(ordinary["reference"], 1.7),
        },
        "huge logits": {**ordinary, "logits": ordinary["logits"] * (1e4 / largest)},
        "far-away features": {
            **ordinary,
            "features": ordinary["features"] * np.float32(1e6),
        },
        "masked classes": masked_problem(),
    }


def masked_problem() -> Problem:
    """Some classes are impossible in some rows: their logit is minus infinity."""
    problem = ordinary_problem()
    logits, labels = problem["logits"].copy(), problem["labels"]
    rows = np.arange(0, N_ROWS, 3)
    logits[rows, (labels[rows] + 1) % N_CLASSES] = -np.inf
    # Here the label is all that is left.
    logits[::60] = np.where(
        np.arange(N_CLASSES) == labels[::60, None], logits[::60], -np.inf
    )
    return {**problem, "logits": logits}


def ordinary_problem(
    n_rows: int = N_ROWS, n_classes: int = N_CLASSES, n_features: int = N_FEATURES
) -> Problem:
    """Three domains; overconfidence grows along the first feature."""
    rng = np.random.default_rng(3)
    shift = np.repeat([0.0, 2.0, 4.0], n_rows // 3)
    features = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    features[:, 0] += shift
    honest = rng.normal(scale=2, size=(n_rows, n_classes))
    return {
        "logits": (honest * (1 + shift[:, None] / 2)).astype(np.float32),
        "labels": (honest + rng.gumbel(size=honest.shape)).argmax(axis=1),
        "features": features,
        "domains": np.repeat(["a", "b", "c"], n_rows // 3),
        "source": "a",
        "reference": rng.normal(size=(200, n_features)).astype(np.float32),
    }


def fitted_parts(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Name and value of everything that a fitted calibrator remembers."""
    if isinstance(value, BaseEstimator) or is_dataclass(value):
        value = vars(value)
    elif isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        yield name, value
        return
    for key in sorted(value, key=str):
        yield from fitted_parts(value[key], f"{name}.{key}")


EVERY = calibrators() | variants()
PROBLEMS = problems()
