"""Exported graphs, run by onnxruntime, say the same as NumPy."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from coolhead.calibrators.clustered import RegressedTemperature
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import Identity, TemperatureScaling
from coolhead.torch import CalibratedModule, CalibratedSoftmax, export_onnx
from coolhead.torch.onnx import check_agreement


def run(path, **inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


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


def test_torch_that_differs_from_numpy_is_not_exported(ensemble, problem, tmp_path):
    """A module with the state of another calibrator says other things than NumPy."""
    module = CalibratedSoftmax(ensemble)
    other = TemperatureEnsemble().fit(**{**problem, "logits": problem["logits"] * 3})
    module.load_state_dict(CalibratedSoftmax(other).state_dict())
    with pytest.raises(RuntimeError, match=r"ONNX and NumPy differ by .* in prob"):
        export_onnx(module, tmp_path / "c.onnx")
    assert list(tmp_path.iterdir()) == []


def test_guards_are_compared_too(problem, tmp_path):
    """On ordinary rows the floor of the line is never reached."""
    line = RegressedTemperature(4).fit(**problem)
    module = CalibratedSoftmax(line)
    bounds = dict(module.named_buffers())["probabilities.temperature.bounds"]
    bounds[0] /= 100
    free = ~line.clipped(problem["features"])
    example = tuple(torch.tensor(problem[n][free]) for n in ("logits", "features"))
    with pytest.raises(RuntimeError, match=r"differ by .* \(features times 1e[36]\)"):
        export_onnx(module, tmp_path / "c.onnx", example)


def test_few_differences_are_counted_and_many_are_refused():
    """Rounding decides where a temperature jumps; a wrong graph is wrong everywhere."""
    wanted = {"temperature": np.linspace(0.5, 3, 200)}
    names = "ONNX and NumPy", "rows"

    def check(found):
        return check_agreement(names[0], {"temperature": found}, wanted, names[1])

    exact = wanted["temperature"]
    assert check(exact * (1 + 5e-6)) == 0
    few = np.where(np.arange(200) < 2, 3 - exact, exact)
    assert check(few) == pytest.approx(0.01)
    several = np.where(np.arange(200) < 3, 3 - exact, exact)
    for wrong in (several, exact * (1 + 2e-5), np.full(200, np.nan), exact[:1]):
        with pytest.raises(RuntimeError, match="ONNX and NumPy differ"):
            check(wrong)


def test_a_network_alone_is_refused(tmp_path):
    with pytest.raises(TypeError, match="net is a Network; wanted a CalibratedModule"):
        export_onnx(Network(), tmp_path / "net.onnx")


@pytest.mark.parametrize("size", [(1, 1), (5, 5)])
def test_an_export_prints_nothing(tmp_path, capfd, size):
    """The traced graph of (5, 5) fails, and torch printed it."""
    pooled = torch.nn.AdaptiveAvgPool2d(size)
    flat = torch.nn.Flatten(), torch.nn.Linear(3 * size[0] * size[1], 3)
    net = torch.nn.Sequential(pooled, *flat)
    logits = 4 * np.eye(3).repeat(2, axis=0)
    calibrator = TemperatureScaling().fit(logits, [0, 0, 1, 1, 2, 0])
    module = CalibratedModule(net, calibrator)
    export_onnx(module, tmp_path / "net.onnx", torch.randn(4, 3, 16, 16))
    assert capfd.readouterr() == ("", "")
