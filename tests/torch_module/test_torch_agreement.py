"""NumPy = torch = onnxruntime, for every calibrator and on hostile problems."""

import numpy as np
import pytest
import torch
from exported import CALIBRATORS, EXPORTED, PROBLEMS
from sklearn.linear_model import LogisticRegression

import coolhead as ch
from contract.problems import calibrators, fitted, masked_problem
from coolhead.torch import CalibratedSoftmax
from coolhead.torch.onnx import Batch, hostile_batches

ORDINARY = PROBLEMS["ordinary"]
HOSTILE = hostile_batches(ORDINARY["logits"], ORDINARY["features"])


def in_torch(module, logits, features):
    found = module.details(torch.tensor(logits), torch.tensor(features))
    return {name: getattr(found, name).numpy() for name in module.outputs}


def assert_same(calibrator, found, batch):
    """No row is left out: on these problems there are no ties."""
    wanted = calibrator.predict_proba(batch.logits, batch.features)
    np.testing.assert_allclose(
        found["probabilities"], wanted, rtol=0, atol=1e-5, err_msg=batch.name
    )
    if hasattr(calibrator, "temperature"):
        wanted = calibrator.temperature(batch.logits, batch.features)
        np.testing.assert_allclose(
            found["temperature"], wanted, rtol=1e-5, err_msg=batch.name
        )
    if "covered" in found:
        wanted = calibrator.details(batch.logits, batch.features).covered
        np.testing.assert_array_equal(found["covered"], wanted, err_msg=batch.name)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", EXPORTED)
def test_torch_and_onnx_say_what_numpy_says(cases, name, problem):
    case, own = cases(name, problem), PROBLEMS[problem]
    for batch in [Batch("own rows", own["logits"], own["features"]), *HOSTILE]:
        rows = batch.logits, np.ascontiguousarray(batch.features)
        assert_same(case.calibrator, in_torch(case.module, *rows), batch)
        assert_same(case.calibrator, case.run(*rows), batch)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_precisions_of_the_logits(case, dtype):
    for batch in HOSTILE:
        exact = batch._replace(logits=batch.logits.astype(dtype))
        rows = exact.logits, np.ascontiguousarray(exact.features)
        found = in_torch(case.module, *rows)
        assert_same(case.calibrator, found, exact)
        wide = np.float64 if dtype == np.float64 else np.float32
        assert found["probabilities"].dtype == wide


def test_what_was_wrong_about_auto(cases):
    """Its bounds were known to NumPy alone: probabilities were off by 0.5."""
    case = cases("AutoCalibrator", "no mistakes")
    lowest = np.exp(case.calibrator.bounds_[0])
    found = in_torch(case.module, ORDINARY["logits"], ORDINARY["features"])
    assert np.isclose(found["temperature"], lowest, rtol=1e-9).all()


LIMITS = {
    "AutoCalibrator": lambda c: np.exp(c.bounds_),
    "ShiftAwareTemperature": lambda c: np.exp(c.bounds_),
    "RegressedTemperature": lambda c: c.bounds_,
    "MultiDomainTemperature": lambda c: c.bounds_,
    "ParameterizedTemperature": lambda c: c.bounds_,
    "DensityAwareTemperature": lambda c: [c.floor_],
}


# One temperature has a share of the average, which therefore stays below the highest.
UNREACHED = {"AutoCalibrator": {1}}


@pytest.mark.parametrize("name", LIMITS)
def test_every_bound_is_seen_at_work(cases, name):
    """Equality on hostile problems says little if no guard was active in them."""
    reached = set()
    for problem in PROBLEMS:
        calibrator = cases(name, problem).calibrator
        for batch in HOSTILE:
            found = calibrator.temperature(batch.logits, batch.features)
            for side, limit in enumerate(LIMITS[name](calibrator)):
                if np.isclose(found, limit, rtol=1e-9).any():
                    reached.add(side)
    finite = {
        side
        for side, limit in enumerate(LIMITS[name](cases(name, "ordinary").calibrator))
        if np.isfinite(limit)
    }
    assert reached == finite - UNREACHED.get(name, set())


def test_masked_classes_have_probability_zero(case):
    masked = masked_problem()
    rows = masked["logits"], masked["features"]
    impossible = np.isneginf(masked["logits"])
    for found in (in_torch(case.module, *rows), case.run(*rows)):
        probabilities = found["probabilities"]
        assert (probabilities[impossible] == 0).all()
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        # Where one class is left, it is certain.
        assert (probabilities[::60].max(axis=1) > 1 - 1e-6).all()
        if "temperature" in found:
            assert np.isfinite(found["temperature"]).all()


@pytest.mark.parametrize("name", ["TemperatureScaling", "EnsembleTemperatureScaling"])
def test_masked_classes_might_as_well_not_exist(cases, name):
    calibrator = cases(name, "ordinary").calibrator
    logits = ORDINARY["logits"].copy()
    logits[:, 2] = -np.inf
    found = in_torch(CalibratedSoftmax(calibrator), logits, ORDINARY["features"])
    kept = np.delete(ORDINARY["logits"], 2, axis=1).astype(np.float64)
    plain, cooled = (
        np.exp(kept / t) / np.exp(kept / t).sum(axis=1, keepdims=True)
        for t in (1.0, calibrator.temperature_)
    )
    shares = getattr(calibrator, "mixture_", (1.0, 0.0, 0.0))
    wanted = shares[0] * cooled + shares[1] * plain + shares[2] / kept.shape[1]
    np.testing.assert_allclose(
        np.delete(found["probabilities"], 2, axis=1), wanted, atol=1e-6
    )


def test_nan_stays_nan(case, queries):
    logits, features = (part[:5].copy() for part in queries)
    features[1], features[2, 3] = np.nan, -np.inf
    logits[3, 0], logits[4, 1] = np.nan, np.inf
    uses = case.module.n_features is not None
    for found in (in_torch(case.module, logits, features), case.run(logits, features)):
        bad = np.isnan(found["probabilities"]).all(axis=1)
        assert bad.tolist() == [False, uses, uses, True, True]


def test_what_torch_cannot_do_is_refused_by_name():
    """The list is the package's own, so a new calibrator fails here."""
    for name in calibrators():
        assert name in EXPORTED or name == "OutsideCalibrator"
    outside = fitted(CALIBRATORS["OutsideCalibrator"], ORDINARY)
    with pytest.raises(TypeError, match="OutsideCalibrator, which torch does not know"):
        CalibratedSoftmax(outside)
    wrapper = ch.CalibratedClassifier(LogisticRegression())
    wrapper.fit(ORDINARY["features"], ORDINARY["labels"])
    with pytest.raises(TypeError, match=r"CalibratedClassifier.*its calibrator_"):
        CalibratedSoftmax(wrapper)
