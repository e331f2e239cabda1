"""A parameter of the wrong kind is refused by `fit`, in a sentence that names it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import coolhead as ch
from contract.problems import calibrators, fitted, problems

ORDINARY = problems()["ordinary"]
PAIRS = [
    (name, parameter)
    for name, calibrator in calibrators().items()
    for parameter in calibrator.get_params(deep=False)
    if name != "OutsideCalibrator" or parameter != "calibrator"
]


@pytest.mark.parametrize("name, parameter", PAIRS, ids="-".join)
def test_every_parameter_of_every_calibrator(name, parameter):
    for wrong in (object(), {}, 1j, b"4", ch.TemperatureScaling):
        if parameter == "metric" and callable(wrong):
            continue  # a class is a function, too
        calibrator = calibrators()[name].set_params(**{parameter: wrong})
        with pytest.raises(ValueError, match=f"^{parameter} is .*; wanted "):
            fitted(calibrator, ORDINARY)


@pytest.mark.parametrize(
    "calibrator, told",
    [
        (ch.TemperatureEnsemble(4), r"members is 4; wanted a list \(a Temp"),  # type: ignore
        (ch.TemperatureEnsemble([4]), r"members holds 4; wanted a list"),  # type: ignore
        (ch.AutoCalibrator(random_state=-1), "random_state is -1; wanted an integer"),
        (ch.TemperatureEnsemble(n_clusters=0), "n_clusters is 0; wanted an integer >="),
        (ch.baselines.ParameterizedTemperature(n_top=0), "n_top is 0; wanted"),
        (
            ch.baselines.ParameterizedTemperature(hidden=(5, 0)),
            "hidden holds 0; wanted",
        ),
        (ch.baselines.MultiDomainTemperature(penalty=np.nan), "penalty is nan; wanted"),
        (ch.baselines.TransCal(weight_power="no"), "weight_power is 'no'; wanted"),
    ],
)
def test_in_these_words(calibrator, told):
    with pytest.raises(ValueError, match=told):
        fitted(calibrator, ORDINARY)
    rows = ORDINARY["features"], ORDINARY["labels"]
    with pytest.raises(ValueError, match=told):
        ch.CalibratedClassifier(LogisticRegression(), calibrator).fit(*rows)


@pytest.mark.parametrize(
    "estimator, calibrator, told",
    [
        (4, None, "does not seem to be a scikit-learn estimator"),
        (LogisticRegression, None, "estimator instead of a class"),
        (LogisticRegression(), "auto", "calibrator is a str; wanted a calibrator"),
        (
            LogisticRegression(),
            ch.TemperatureScaling,
            "estimator instead of a class",
        ),
        (
            LogisticRegression(),
            LogisticRegression(),
            "calibrator is a LogisticRegression; wanted",
        ),
    ],
)
def test_parts_of_the_wrapper(estimator, calibrator, told):
    model = ch.CalibratedClassifier(estimator, calibrator)
    with pytest.raises(TypeError, match=told):
        model.fit(ORDINARY["features"], ORDINARY["labels"])


def test_numpy_numbers_are_numbers():
    settings = {"n_clusters": np.int64(3), "penalty": np.float32(0.5)}
    fitted(ch.NearestClusterTemperature(**settings), ORDINARY)
