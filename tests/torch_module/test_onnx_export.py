"""Exported graphs, run by onnxruntime, say the same as NumPy."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import Identity, TemperatureScaling
from coolhead.torch import CalibratedModule, CalibratedSoftmax, export_onnx


def run(path, **inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


@pytest.fixture(scope="session")
def graphs():
    """Folder and cache of exported calibrators; each is exported once."""
    return {}


@pytest.fixture
def graph(calibrator, graphs, tmp_path_factory):
    key = id(calibrator)
    if key not in graphs:
        path = tmp_path_factory.mktemp("onnx") / "calibrator.onnx"
        graphs[key] = export_onnx(calibrator, path)
    return graphs[key]


@pytest.mark.parametrize("n_rows", [1, 7, 1000])
def test_calibrator_alone(calibrator, graph, queries, n_rows):
    logits, features = (part[:n_rows] for part in queries)
    extra = {"features": features} if calibrator.uses_features else {}
    (found,) = run(graph, logits=logits, **extra)
    wanted = calibrator.predict_proba(logits, features)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_dynamo(ensemble, queries, tmp_path):
    """The slow exporter, which is the one that will last; all outputs at once."""
    outputs = ("probabilities", "temperature", "covered")
    path = export_onnx(
        ensemble, tmp_path / "c.onnx", outputs=outputs, exporter="dynamo"
    )
    for n_rows in (1, 7, 1000):
        logits, features = (part[:n_rows] for part in queries)
        found = run(path, logits=logits, features=features)
        wanted = ensemble.details(logits, features)
        np.testing.assert_allclose(found[0], wanted.probabilities, atol=1e-5)
        np.testing.assert_allclose(found[1], wanted.temperature, rtol=1e-5)
        np.testing.assert_array_equal(found[2], wanted.covered)


def test_no_features_where_no_member_uses_them(problem, queries, tmp_path):
    constant = TemperatureEnsemble([TemperatureScaling(), Identity()]).fit(**problem)
    path = export_onnx(constant, tmp_path / "c.onnx")
    (found,) = run(path, logits=queries[0])
    wanted = constant.predict_proba(queries[0])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 12, 3)
        self.head = nn.Linear(12, 6)

    def forward(self, image):
        return self.head(self.body(image).mean(dim=(2, 3)))


def test_whole_model(ensemble, tmp_path):
    net = CalibratedModule(Network(), ensemble, feature_layer="body")
    path = export_onnx(net, tmp_path / "net.onnx", torch.randn(2, 3, 8, 8))
    for n_rows in (1, 7, 1000):
        images = torch.randn(n_rows, 3, 8, 8)
        (found,) = run(path, image=images.numpy())
        assert found.shape == (n_rows, 6)
        with torch.no_grad():
            np.testing.assert_allclose(found, net(images).numpy(), atol=1e-5)


def test_whole_model_with_all_it_knows(ensemble, tmp_path):
    net = CalibratedModule(Network(), ensemble, feature_layer="body")
    images = torch.randn(5, 3, 8, 8)
    outputs = ("logits", "temperature", "covered", "probabilities")
    path = export_onnx(net, tmp_path / "net.onnx", images, outputs=outputs)
    found = run(path, image=images.numpy())
    with torch.no_grad():
        wanted = net.details(images)
    for name, values in zip(outputs, found, strict=True):
        np.testing.assert_allclose(
            values, getattr(wanted, name).numpy(), atol=1e-5, err_msg=name
        )


class Counting(Network):
    """Tracing would freeze the number of rows into the graph."""

    def forward(self, image):
        return super().forward(image) * float(len(image))


def test_a_graph_that_is_wrong_never_appears(ensemble, tmp_path):
    net = CalibratedModule(Counting(), ensemble, feature_layer="body")
    path = tmp_path / "net.onnx"
    with pytest.raises(RuntimeError, match=r"ONNX and torch differ by .* in prob"):
        export_onnx(net, path, torch.randn(2, 3, 8, 8), exporter="trace")
    assert list(tmp_path.iterdir()) == []


def test_broken_features_do_not_become_a_probability(calibrator, graph, queries):
    if not calibrator.uses_features:
        return
    logits, features = (part[:4].copy() for part in queries)
    features[1, 4], features[2, 0] = np.nan, np.inf
    (found,) = run(graph, logits=logits, features=features)
    assert np.isnan(found).any(axis=1).tolist() == [False, True, True, False]


def test_what_it_cannot_use_is_named(ensemble, problem, tmp_path):
    path = tmp_path / "c.onnx"
    with pytest.raises(ValueError, match=r"outputs is .'probs',.; wanted names"):
        export_onnx(ensemble, path, outputs=("probs",))
    with pytest.raises(ValueError, match="exporter is 'fast'"):
        export_onnx(ensemble, path, exporter="fast")
    with pytest.raises(ValueError, match="example is missing"):
        export_onnx(CalibratedModule(Network(), ensemble, "body"), path)
    flat = CalibratedSoftmax(TemperatureScaling().fit(**problem))
    with pytest.raises(ValueError, match=r"wanted names out of .'prob.*', 'temp.*'."):
        export_onnx(flat, path, outputs=("covered",))
    assert list(tmp_path.iterdir()) == []
