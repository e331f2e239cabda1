"""Networks that answer for every pixel or token: exported, and served elsewhere."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import coolhead as ch


class Segmenter(nn.Module):
    """Classes of every pixel, from a map half as fine."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.head = nn.Conv2d(8, 5, 1)
        self.up = nn.Upsample(scale_factor=2)

    def forward(self, images):
        return self.up(self.head(torch.relu(self.body(images))))


class Tagger(nn.Module):
    """Classes of every token."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, images):
        return self.head(torch.relu(self.body(images)))


@pytest.fixture(params=["pixels", "tokens"])
def dense(request):
    """A network with its inputs and labels."""
    torch.manual_seed(0)
    if request.param == "pixels":
        return Segmenter(), torch.randn(5, 3, 8, 6), torch.randint(5, (5, 8, 6))
    return Tagger(), torch.randn(5, 7, 3), torch.randint(5, (5, 7))


CASES = pytest.mark.parametrize(
    ("calibrator", "layer"),
    [(ch.TemperatureScaling(), None), (ch.RegressedTemperature(2), "body")],
    ids=["constant", "by features"],
)


@CASES
def test_onnx_says_what_torch_says(dense, calibrator, layer, tmp_path):
    network, x, y = dense
    net = ch.torch.calibrate(network, [(x, y)], calibrator, feature_layer=layer)
    # A coarse map repeats features, so some calibrated row is on the edge of a ball.
    x = torch.randn_like(x)
    outputs = ("probabilities", "temperature", "logits")
    outputs += ("features", "covered") if layer else ()
    path = tmp_path / "dense.onnx"
    ch.torch.export_onnx(net, path, x, outputs=outputs, exporter="trace")
    session = onnxruntime.InferenceSession(path)
    for n_rows in (1, 4):
        found = session.run(None, {"images": x[:n_rows].numpy()})
        wanted = net.details(x[:n_rows])
        for name, values in zip(outputs, found, strict=True):
            exact = getattr(wanted, name).detach().numpy()
            np.testing.assert_allclose(values, exact, atol=1e-5, err_msg=name)


def test_a_wrong_graph_of_pixels_is_noticed(dense, tmp_path):
    """A module that took its state from another says what its calibrator does not."""
    network, x, y = dense
    net = ch.torch.calibrate(network, [(x, y)], ch.TemperatureScaling())
    net.softmax.calibrator.temperature_ *= 1.5
    with pytest.raises(RuntimeError, match="torch and NumPy differ"):
        ch.torch.export_onnx(net, tmp_path / "dense.onnx", x)
    assert not (tmp_path / "dense.onnx").exists()


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_other_forms_of_a_dense_network(dense, tmp_path):
    network, x, y = dense
    cal = ch.RegressedTemperature(2)
    net = ch.torch.calibrate(network, [(x, y)], cal, feature_layer="body")
    shapes = ({0: torch.export.Dim("batch")},)
    for form in (
        torch.jit.trace(net, x),
        torch.export.export(net, (x,), dynamic_shapes=shapes).module(),
        torch.compile(net, fullgraph=True, backend="aot_eager"),
    ):
        torch.testing.assert_close(form(x[:3]), net(x[:3]))
    new = torch.randn_like(x)
    ch.torch.export_onnx(net, tmp_path / "dense.onnx", new, exporter="dynamo")


def test_crops_are_told_from_tokens():
    network, x = Tagger(), torch.randn(5, 7, 3)
    with pytest.raises(ValueError, match=r"several crops of a row: the mean"):
        ch.torch.calibrate(network, [(x, torch.arange(5))])
    with pytest.raises(ValueError, match="several crops of a row, pass the mean"):
        ch.TemperatureScaling().fit(network(x), torch.arange(5))
