"""ONNX Runtime gives what torch gives, or is not used."""

import signal
import sys

import numpy as np
import pytest
from test_extract import SMALL, tiny_network

torch = pytest.importorskip("torch")

from coolhead.lab.images import engines, extract
from coolhead.lab.images.backbones import Backbone


class Scaled(torch.nn.Module):
    """Adds what tracing takes for a constant: right on one image only."""

    def __init__(self):
        super().__init__()
        self.net = tiny_network()

    def forward(self, images):
        return self.net(images + images.mean().item())


class Decomposed(Scaled):
    """Uses a decomposition that ONNX does not have."""

    def forward(self, images):
        square = images.mean(1) @ images.mean(1).transpose(1, 2)
        return self.net(images) * torch.linalg.eigvalsh(square)[:, :1]


def run(tree, net, out, **options):
    given = {"transform": SMALL, "dtype": "float32", "logits": True}
    return extract(tree, net, out, **given | options)


def test_onnx_gives_what_torch_gives_whatever_the_workers(tree, tmp_path):
    net = tiny_network()
    wanted = run(tree, net, tmp_path / "torch", engine="torch")
    record = wanted.metadata["extraction"]
    assert record["engine"] == "torch" and "onnxruntime" not in record["versions"]
    first = None
    for workers, batch_size in ((1, 1), (3, 7), (2, 64)):
        options = {"workers": workers, "batch_size": batch_size}
        found = run(tree, net, tmp_path / "x", **options)
        for name in ("features", "logits"):
            values, right = getattr(found, name), getattr(wanted, name)
            np.testing.assert_allclose(values, right, atol=1e-6 * np.abs(right).max())
        first = first or (tmp_path / "x").read_bytes()
        assert (tmp_path / "x").read_bytes() == first
    record = found.metadata["extraction"]
    assert record["engine"] == "onnx" and record["batch_size"] == 1
    assert {"coolhead", "onnx", "onnxruntime", "pillow", "torch"} == {
        *record["versions"]
    }


def test_without_logits_the_output_may_be_anything(tree, tmp_path):
    class Pair(Scaled):
        def forward(self, images):
            return {"both": self.net(images)}

    found = run(tree, Pair(), tmp_path / "x", logits=False)
    wanted = run(tree, tiny_network(), tmp_path / "y", logits=False)
    np.testing.assert_array_equal(found.features, wanted.features)
    assert found.metadata["extraction"]["engine"] == "onnx"


@pytest.mark.parametrize(
    ("network", "message"), [(Scaled, "differ by"), (Decomposed, "eigvalsh")]
)
def test_a_network_that_onnx_gets_wrong_is_run_by_torch(
    tree, tmp_path, network, message
):
    net = network()
    with pytest.warns(UserWarning, match=f"torch runs the network.*{message}"):
        found = run(tree, net, tmp_path / "x")
    assert found.metadata["extraction"]["engine"] == "torch"
    plain = run(tree, net, tmp_path / "y", engine="torch")
    np.testing.assert_array_equal(found.features, plain.features)
    with pytest.raises(RuntimeError, match=f"engine torch can.*{message}"):
        run(tree, net, tmp_path / "z", engine="onnx")
    assert not list(tmp_path.glob("z*"))


def test_without_the_package_torch_runs_the_network(tree, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    found = run(tree, tiny_network(), tmp_path / "x")
    assert found.metadata["extraction"]["engine"] == "torch"
    with pytest.raises(ImportError, match=r"coolhead\[onnx\]"):
        run(tree, tiny_network(), tmp_path / "y", engine="onnx")


def test_one_thread_per_session():
    """Workers are the only threads, so they are never more than was asked for."""
    probe = np.ones((2, 3, 32, 32), np.float32)
    network = Backbone(tiny_network(), SMALL)
    options = {"n_classes": None, "batch_size": 8, "device": "cpu"}
    with engines.open_engine("onnx", network, probe, **options) as engine:
        threads = engine.session.get_session_options()
        assert threads.intra_op_num_threads == threads.inter_op_num_threads == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_no_reason_to_take_torch(tree, tmp_path, monkeypatch, number):
    """The exporter makes an error of its own of whatever is raised inside it."""
    export = engines._export

    def interrupted(*arguments):
        try:
            signal.raise_signal(number)
            return export(*arguments)
        except BaseException as error:
            raise RuntimeError("some symbol is not known") from error

    def end(number, frame):
        raise SystemExit(128 + number)

    monkeypatch.setattr(engines, "_export", interrupted)
    # Whoever runs the tests in the background may have them ignore interrupts.
    before = signal.signal(number, end)
    try:
        with pytest.raises(SystemExit, match=str(128 + number)):
            run(tree, tiny_network(), tmp_path / "x")
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)
