"""Temperatures in torch: precision, coverage, shapes, and what is refused."""

import numpy as np
import pytest
import torch

import coolhead
from contract.problems import calibrators
from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.shift.clusters import Clusters
from coolhead.torch import CalibratedSoftmax
from coolhead.torch.temperature import NearestCenter

EXPORTED = [name for name in calibrators() if name != "OutsideCalibrator"]


def test_coverage_equals_numpy(ensemble, queries):
    logits, features = queries
    found = CalibratedSoftmax(ensemble).details(*map(torch.tensor, queries)).covered
    wanted = ensemble.details(logits, features).covered
    assert 0.05 < wanted.mean() < 0.95
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_no_clusters_no_coverage(problem, queries):
    calibrator = coolhead.TemperatureScaling().fit(**problem)
    assert (
        CalibratedSoftmax(calibrator).details(torch.tensor(queries[0])).covered is None
    )


def test_descriptors_of_a_user_are_refused(problem):
    own = ShiftAwareTemperature([lambda logits, features, home: features[:, 0]])
    with pytest.raises(TypeError, match="which only NumPy can run"):
        CalibratedSoftmax(own.fit(**problem))


def test_a_constant_of_ones_own_needs_no_module(queries):
    class Lukewarm(TemperatureCalibrator):
        def _learn(self, data):
            self.temperature_, self.status_ = 2.0, "converged"

    class Warming(Lukewarm):
        def _temperature(self, logits, features):
            return np.linspace(1, 2, len(logits))

    rows, labels = queries[0], queries[0].argmax(axis=1)
    found = CalibratedSoftmax(Lukewarm().fit(rows, labels))(torch.tensor(rows))
    torch.testing.assert_close(found, torch.softmax(torch.tensor(rows) / 2, dim=1))
    with pytest.raises(TypeError, match="a Warming, which torch does not know"):
        CalibratedSoftmax(Warming().fit(rows, labels))


def test_nearest_center_survives_large_features():
    """In single precision these two centres are equally far from every row."""
    centers = np.full((2, 512), 1000.0)
    centers[1, 0] += 1e-3
    clusters = Clusters(centers, np.ones(2), None, None, None)
    rows = np.repeat(centers, 50, axis=0)
    wanted = clusters.assign(rows)[0]
    assert wanted.mean() == 0.5
    found, _ = NearestCenter(clusters)(torch.tensor(rows))
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_temperature_keeps_its_precision(ensemble, queries, dtype):
    features = torch.tensor(queries[1])
    logits = torch.tensor(queries[0]).to(dtype)
    exact = CalibratedSoftmax(ensemble)
    cast = CalibratedSoftmax(ensemble).to(dtype)
    assert all(buffer.dtype == torch.float64 for buffer in cast.buffers())
    found = cast(logits, features)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(found, exact(logits, features))


def test_large_logits_over_a_small_temperature(problem):
    """Scaling all logits scales T; adding a constant changes nothing."""
    logits = problem["logits"]
    plain = coolhead.TemperatureScaling().fit(logits, problem["labels"])
    small = coolhead.TemperatureScaling().fit(logits / 1024, problem["labels"])
    found = CalibratedSoftmax(small)(torch.tensor(logits / 1024 + 8))
    wanted = plain.predict_proba(logits)
    np.testing.assert_allclose(found.numpy(), wanted, atol=2e-3)
    wanted = small.predict_proba(logits / 1024 + 8)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)


def test_binary_scores(problem):
    scores = problem["logits"][:, 0]
    calibrator = coolhead.TemperatureScaling().fit(scores, problem["labels"] % 2)
    found = CalibratedSoftmax(calibrator)(torch.tensor(scores))
    np.testing.assert_allclose(
        found.numpy(), calibrator.predict_proba(scores), atol=1e-6
    )


def test_wrong_shapes_are_named(ensemble, queries):
    logits, features = map(torch.tensor, queries)
    module = CalibratedSoftmax(ensemble)
    with pytest.raises(ValueError, match=r"logits has shape \(1000, 5\); wanted .n, 6"):
        module(logits[:, :5], features)
    with pytest.raises(ValueError, match="features is missing"):
        module(logits)
    with pytest.raises(ValueError, match=r"features has shape .1000, 4.; wanted"):
        module(logits, features[:, :4])


@pytest.mark.parametrize("name", EXPORTED)
@pytest.mark.parametrize("value", [-np.inf, -1e9, -1e4])
def test_masked_classes_equal_numpy(cases, queries, name, value):
    calibrator, module, _ = cases(name, "ordinary")
    logits, features = queries[0].copy(), queries[1]
    rng = np.random.default_rng(0)
    hide = rng.random(logits.shape) < 0.3
    hide[np.arange(len(logits)), logits.argmax(axis=1)] = False
    hide[:5] = np.arange(logits.shape[1]) != logits[:5].argmax(axis=1)[:, None]
    logits[hide] = value
    found = module.details(torch.tensor(logits), torch.tensor(features))
    if found.temperature is not None:
        wanted = calibrator.temperature(logits, features)
        np.testing.assert_allclose(found.temperature.numpy(), wanted, rtol=1e-5)
    probabilities = calibrator.predict_proba(logits, features)
    np.testing.assert_allclose(found.probabilities.numpy(), probabilities, atol=1e-5)
    assert (probabilities[hide] == 0).all()
