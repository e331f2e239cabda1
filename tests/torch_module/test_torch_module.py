"""CalibratedModule around networks of several shapes."""

import copy
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

from coolhead.baselines.classwise import VectorScaling
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.torch import CalibratedModule

N_CLASSES, N_FEATURES = 6, 12


class Network(nn.Module):
    """Convolution, global average, dropout, linear; like any image classifier."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, N_FEATURES, 3)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(N_FEATURES, N_CLASSES)

    def forward(self, images):
        return self.head(self.drop(self.pool(self.body(images)).flatten(1)))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network()


@pytest.fixture(scope="module")
def images():
    return torch.randn(9, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def by_hand(network, images, calibrator):
    """Logits and features read without any of our code; T(x) by NumPy."""
    network.eval()
    with torch.no_grad():
        features = network.body(images).mean(dim=(2, 3))
        logits = network.head(features)
    return calibrator.predict_proba(logits.numpy(), features.numpy())


@pytest.mark.parametrize("layer", ["pool", "body", "drop", None])
def test_features_come_from_the_layer(network, images, ensemble, layer):
    net = CalibratedModule(network, ensemble, feature_layer=layer)
    with torch.no_grad():
        found = net(images)
    wanted = by_hand(network, images, ensemble)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)


def test_details_and_no_grad(network, images, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    with torch.inference_mode():
        found = net.details(images)
        again = net(images)
    assert not net.training and not network.training
    torch.testing.assert_close(found.probabilities, again, rtol=0, atol=0)
    assert found.temperature.shape == found.covered.shape == (9,)
    assert found.covered.dtype == torch.bool
    torch.testing.assert_close(found.logits, network(images))


def test_the_predicted_class_never_changes(network, images, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    assert torch.equal(net(images).argmax(dim=1), network(images).argmax(dim=1))


def test_gradients_reach_the_network(network, images, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    net(images)[:, 0].sum().backward()
    assert network.body.weight.grad.abs().sum() > 0
    assert len(list(net.parameters())) == len(list(network.parameters()))


def test_state_dict_round_trip(network, images, ensemble, problem, tmp_path):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    torch.save(net.state_dict(), tmp_path / "net.pt")
    shifted = {**problem, "logits": problem["logits"] * 3}
    other = CalibratedModule(Network(), TemperatureEnsemble().fit(**shifted), "pool")
    assert not torch.allclose(other(images), net(images))
    other.load_state_dict(torch.load(tmp_path / "net.pt", weights_only=True))
    torch.testing.assert_close(other(images), net(images), rtol=0, atol=0)


def test_a_copy_reads_its_own_layer(network, images, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    before = net(images)
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.model.body.weight.mul_(3)
    wanted = by_hand(twin.model, images, ensemble)
    np.testing.assert_allclose(twin(images).detach().numpy(), wanted, atol=1e-6)
    torch.testing.assert_close(net(images), before, rtol=0, atol=0)


def test_threads_do_not_mix(network, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    batches = [torch.randn(n % 5 + 1, 3, 8, 8) * n for n in range(1, 41)]
    with torch.no_grad():
        wanted = [net(batch) for batch in batches]

    def predict(batch):
        with torch.no_grad():
            return net(batch)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(predict, batches))
    for ours, one_by_one in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, one_by_one)
    assert not net.capture.seen


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled(network, images, ensemble, backend):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    compiled = torch.compile(net, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(images), net(images))


def test_half_precision_network(network, images, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    wanted = net(images)
    net.bfloat16()
    found = net(images.bfloat16())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, wanted, rtol=0, atol=0.05)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu(network, images, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    wanted = net(images)
    found = net.cuda()(images.cuda())
    torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=1e-5)


def test_moves_between_devices(network, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool").to("meta")
    assert {b.device.type for b in net.buffers()} == {"meta"}


Output = namedtuple("Output", ["logits", "hidden"])


class Answering(nn.Module):
    """A network that returns its logits in some wrapping."""

    def __init__(self, network, wrap):
        super().__init__()
        self.network, self.wrap = network, wrap

    def forward(self, images):
        features = self.network.body(images).mean(dim=(2, 3))
        return self.wrap(self.network.head(features), features)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda logits, features: (logits, features),
        lambda logits, features: {"logits": logits},
        lambda logits, features: Output(logits, None),
    ],
)
def test_wrapped_outputs(network, images, ensemble, wrap):
    net = CalibratedModule(Answering(network, wrap), ensemble)
    wanted = by_hand(network, images, ensemble)
    np.testing.assert_allclose(net(images).detach().numpy(), wanted, atol=1e-6)


def test_what_it_cannot_use_is_named(network, images, ensemble):
    with pytest.raises(ValueError, match="feature_layer 'avgpool' is not in the net"):
        CalibratedModule(network, ensemble, feature_layer="avgpool")
    with pytest.raises(NotFittedError):
        CalibratedModule(network, TemperatureEnsemble())
    with pytest.raises(ValueError, match=r"features has shape \(9, 6\); wanted"):
        CalibratedModule(network, ensemble, feature_layer="head")(images)
    odd = CalibratedModule(Answering(network, lambda *found: "text"), ensemble)
    with pytest.raises(TypeError, match="the model returned a str"):
        odd(images)


SHAPES = {0: torch.export.Dim("batch")}


@pytest.mark.parametrize("layer", ["pool", None])
@pytest.mark.parametrize("shapes", [(SHAPES,), {"images": SHAPES}])
def test_exported_with_any_number_of_rows(network, images, ensemble, layer, shapes):
    """The names of the arguments are the network's own."""
    net = CalibratedModule(network, ensemble, feature_layer=layer)
    program = torch.export.export(net, (images,), dynamic_shapes=shapes)
    found = program.module()(images[:4])
    torch.testing.assert_close(found, net(images[:4]))


# torch.jit still works, and torch says that it will not for ever.
JIT = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


@JIT
def test_traced(network, images, ensemble):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    traced = torch.jit.trace(net, images)
    torch.testing.assert_close(traced(images[:4]), net(images[:4]))


@JIT
def test_around_a_traced_network(network, images, problem):
    """It has no names for its arguments, and no layers to read features from."""
    constant = TemperatureScaling().fit(**problem)
    traced = torch.jit.trace(network.eval(), images)
    net = CalibratedModule(traced, constant)
    torch.testing.assert_close(net(images), CalibratedModule(network, constant)(images))


def test_saved_whole(network, images, ensemble, tmp_path):
    net = CalibratedModule(network, ensemble, feature_layer="pool")
    torch.save(net, tmp_path / "net.pt")
    again = torch.load(tmp_path / "net.pt", weights_only=False)
    torch.testing.assert_close(again(images), net(images), rtol=0, atol=0)


def test_around_a_method_without_temperature(network, images, problem):
    vector = VectorScaling().fit(problem["logits"], problem["labels"])
    net = CalibratedModule(network, vector)
    found = net.details(images)
    assert found.temperature is None and found.covered is None
    wanted = vector.predict_proba(network(images).detach().numpy())
    np.testing.assert_allclose(found.probabilities.detach().numpy(), wanted, atol=1e-6)
