"""A network and its data loaders become a calibrated network in one call."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader, TensorDataset

import coolhead as ch
from coolhead.models import dense_rows


@pytest.fixture
def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
    )


def loaders():
    rng = np.random.default_rng(0)
    made = {}
    for number, name in enumerate(["rome", "oslo", "kyiv"]):
        x = rng.normal(size=(90, 4)).astype(np.float32) + number / 2
        y = torch.from_numpy(rng.integers(0, 3, 90))
        made[name] = DataLoader(TensorDataset(torch.from_numpy(x), y), batch_size=40)
    return made


def test_predictions_of_every_domain(network):
    rows = ch.torch.collect_predictions(network.train(), loaders())
    assert rows.domain_sizes() == {"kyiv": 90, "oslo": 90, "rome": 90}
    inputs = torch.cat([x for loader in loaders().values() for x, _ in loader])
    hidden = network[:2](inputs)
    np.testing.assert_allclose(rows.features, hidden.detach(), atol=1e-6)
    np.testing.assert_allclose(rows.logits, network(inputs).detach(), atol=1e-6)
    assert network.training and not network[2]._forward_pre_hooks


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_calibrated_in_one_call(network):
    calibrated = ch.torch.calibrate(network, loaders(), source="rome")
    cal = calibrated.calibrator
    assert isinstance(cal, ch.AutoCalibrator) and "source-only" in cal.names_
    rows = ch.torch.collect_predictions(network, loaders())
    inputs = torch.cat([x for loader in loaders().values() for x, _ in loader])
    np.testing.assert_allclose(
        calibrated(inputs).detach(),
        cal.predict_proba(rows.logits, rows.features),
        atol=1e-5,
    )
    one = ch.torch.calibrate(network, loaders()["oslo"], ch.TemperatureScaling())
    assert one.softmax.calibrator.temperature_ > 0
    with pytest.raises(ValueError, match="without labels"):
        ch.torch.calibrate(network, DataLoader(torch.zeros(5, 4)))


@pytest.mark.parametrize(
    "calibrator, source, message",
    [
        (ch.TemperatureScaling(), "a", "TemperatureScaling treats all domains alike"),
        (ch.baselines.TransCal(), None, "TransCal, which needs unlabelled rows of"),
        (ch.baselines.MultiDomainTemperature(), None, "sample_domain is missing"),
        (LogisticRegression(), None, "LogisticRegression; wanted a calibrator of"),
        (ch.TemperatureEnsemble(n_clusters=0), None, "n_clusters is 0; wanted"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_the_network_runs(
    calibrator, source, message
):
    class Never(torch.nn.Module):
        def forward(self, x):
            raise AssertionError("ran before it was refused")

    batches = [(torch.zeros(2, 3), torch.zeros(2).long())]
    with pytest.raises((ValueError, TypeError), match=message):
        ch.torch.calibrate(Never(), batches, calibrator, source=source)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("labels", [torch.long, torch.float32, torch.bool])
@pytest.mark.parametrize("flat", [False, True])
def test_binary_networks_with_one_unit(labels, flat, tmp_path):
    """As for BCEWithLogitsLoss: logits (n, 1), labels 0.0 and 1.0 of the same shape."""
    torch.manual_seed(0)
    net, x = torch.nn.Linear(4, 1), torch.randn(80, 4)
    y = (torch.rand(80) < torch.sigmoid(net(x)[:, 0] / 2)).to(labels)[:, None]
    if flat:
        net, y = torch.nn.Sequential(net, torch.nn.Flatten(0)), y[:, 0]
    calibrated = ch.torch.calibrate(net, [(x, y)], ch.TemperatureScaling())
    margin = net(x).detach().numpy().ravel()
    cal = ch.TemperatureScaling().fit(margin, y.ravel().long())
    want = cal.predict_proba(margin)
    np.testing.assert_allclose(calibrated(x).detach(), want, atol=1e-6)
    traced = torch.jit.trace(calibrated, x)
    np.testing.assert_allclose(traced(x[:5]).detach(), want[:5], atol=1e-6)
    compiled = torch.compile(calibrated, fullgraph=True, backend="eager")
    np.testing.assert_allclose(compiled(x).detach(), want, atol=1e-6)
    ch.torch.export_onnx(calibrated, tmp_path / "net.onnx", x)


@pytest.mark.parametrize("more", [lambda x: (x, x), lambda x: ([x],), lambda x: ()])
def test_tuples_of_logits_and_more(more):
    class Answering(torch.nn.Linear):
        def forward(self, x):
            return (super().forward(x), *more(x))

    net, x, y = Answering(4, 3), torch.randn(30, 4), torch.arange(30) % 3
    found = ch.torch.calibrate(net, [(x, y)], ch.TemperatureScaling())(x)
    assert found.shape == (30, 3)


def test_the_features_of_an_exported_network_are_those_the_monitor_wants(
    network, tmp_path
):
    import onnxruntime

    cal = ch.NearestClusterTemperature(2)
    calibrated = ch.torch.calibrate(network, loaders()["rome"], cal)
    x = next(iter(loaders()["rome"]))[0]
    names = ("probabilities", "logits", "features")
    ch.torch.export_onnx(calibrated, tmp_path / "net.onnx", x, outputs=names)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    given = {session.get_inputs()[0].name: x[:3].numpy()}
    probabilities, logits, features = session.run(None, given)
    fitted = calibrated.softmax.calibrator
    np.testing.assert_allclose(
        fitted.details(logits, features).probabilities, probabilities, atol=1e-5
    )


@pytest.mark.parametrize("form", ["pixels", "tokens", "classes first"])
def test_pixels_and_tokens(form):
    rng = np.random.default_rng(0)
    z = (
        rng.normal(size=(6, 4, 5, 7))
        if form == "pixels"
        else rng.normal(size=(6, 9, 4))
    )
    axis = 1 if form == "pixels" else 2
    if form == "classes first":
        z, axis = np.moveaxis(z, 2, 1), 1
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=axis)
    y[0, :2] = -100
    rows = dense_rows(3 * z, y)
    assert rows.logits.shape == (int((y != -100).sum()), 4)
    back = rows.restore(rows.logits)
    np.testing.assert_array_equal(back[1:], 3 * z[1:])
    assert np.isnan(np.moveaxis(back, rows.class_axis, -1)[0, :2]).all()
    cal = ch.TemperatureScaling().fit(rows.logits, rows.labels)
    assert cal.temperature_ == pytest.approx(3, rel=0.5)
    if form == "classes first":
        return

    class Fixed(torch.nn.Module):
        def forward(self, x):
            return torch.as_tensor(3 * z)[x]

    index = torch.arange(6)
    loader = DataLoader(TensorDataset(index, torch.from_numpy(y)), batch_size=4)
    net = ch.torch.calibrate(Fixed(), loader)
    assert net.softmax.calibrator.temperature_ == pytest.approx(cal.temperature_)
    found = net(index)
    assert found.shape == z.shape
    flat = dense_rows(3 * z)
    want = flat.restore(cal.predict_proba(flat.logits))
    np.testing.assert_allclose(found, want, atol=1e-6)
    assert net.details(index).temperature.shape == y.shape
    few = ch.torch.collect_predictions(Fixed(), loader, rows_per_batch=10)
    assert len(few) == 20


def test_wrong_shapes_of_pixels():
    with pytest.raises(ValueError, match="dense_rows"):
        ch.TemperatureScaling().fit(np.zeros((2, 3, 4, 4)), np.zeros((2, 4, 4), int))
    with pytest.raises(ValueError, match="one for each position"):
        dense_rows(np.zeros((2, 3, 4, 4)), np.zeros((2, 4, 5), int))
    with pytest.raises(ValueError, match="are rows already"):
        dense_rows(np.zeros((2, 3)))
