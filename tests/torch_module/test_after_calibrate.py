"""A calibrated network in a new domain, monitored, saved and loaded."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import coolhead as ch

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
    )


def site(shift):
    rng = np.random.default_rng(shift)
    x = torch.from_numpy(rng.normal(size=(120, 4)).astype(np.float32) + shift / 2)
    with torch.no_grad():
        y = (network()(x) + torch.from_numpy(rng.gumbel(size=(120, 3)))).argmax(1)
    return TensorDataset(x, y)


def batches(shift):
    return DataLoader(site(shift), batch_size=50)


@pytest.fixture(scope="module")
def calibrated():
    loaders = {name: batches(shift) for shift, name in enumerate("abc")}
    return ch.torch.calibrate(network(), loaders, source="a", progress=False)


def test_new_domain_of_a_loader(calibrated):
    x, y = site(3).tensors
    there = calibrated.new_domain(batches(3))
    logits, features = calibrated.outputs_of(batches(3))
    same = ch.NewDomain(calibrated.calibrator, logits, features)
    assert str(there) == str(same)
    # Labels are not read, whatever the form of the batches.
    for unlabelled in (x, [x], DataLoader(TensorDataset(x)), DataLoader(x)):
        assert str(calibrated.new_domain(unlabelled)) == str(there)
    rows = there.rows_to_label(20)
    better = there.with_labels(rows, y[rows]).model
    assert isinstance(better, ch.torch.CalibratedModule)
    moved = same.with_labels(rows, y[rows].numpy()).model
    np.testing.assert_allclose(
        better(x).detach(), moved.predict_proba(logits, features), atol=1e-5
    )


def test_monitor_of_a_network(calibrated):
    watch, cal = calibrated.monitor(), calibrated.calibrator
    assert watch.expected.outside and watch.expected.unsure
    watch.update(cal.details(*calibrated.outputs_of(batches(1))))
    assert watch.check().alarm is False
    far, watch = site(1).tensors[0] + 100, calibrated.monitor()
    watch.update(cal.details(*calibrated.outputs_of(far)))
    assert watch.check().alarm


def test_pixels_of_a_new_domain_are_rows():
    net = torch.nn.Conv2d(1, 3, 1)
    cal = ch.TemperatureScaling().fit(np.eye(3) * 2, [0, 1, 2])
    module = ch.torch.CalibratedModule(net, cal)
    logits, features = module.outputs_of(torch.zeros(2, 1, 4, 5))
    assert logits.shape == (40, 3) and features is None
    assert module.new_domain(torch.zeros(2, 1, 4, 5)).n_rows == 40


def test_saved_and_loaded(calibrated, tmp_path):
    x = site(3).tensors[0]
    folder = tmp_path / "service" / "today"
    calibrated.save(folder, metadata={"camera": "north"})
    other = network()
    torch.nn.init.zeros_(other[0].weight)
    loaded = ch.torch.CalibratedModule.load(folder, other)
    assert torch.equal(loaded(x), calibrated(x))
    assert ch.load_calibrator(folder / "calibrator.skops").n_classes_ == 3


def test_a_folder_that_does_not_fit_is_refused(calibrated, tmp_path):
    load = ch.torch.CalibratedModule.load
    with pytest.raises(FileNotFoundError, match="does not exist; wanted the weights"):
        load(tmp_path, network())
    calibrated.save(tmp_path)
    with pytest.raises(ValueError, match="wanted a network of the same architecture"):
        load(tmp_path, torch.nn.Linear(4, 3))
    # As after a kill between the two files.
    weights = tmp_path / "network.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(ValueError, match="wanted both files of one save"):
        load(tmp_path, network())


def test_no_batches_and_features_beside_a_network(calibrated):
    with pytest.raises(ValueError, match="the loader gave no batch"):
        calibrated.new_domain(iter([]))
    with pytest.raises(ValueError, match="CalibratedModule, which makes its own"):
        calibrated.new_domain(batches(3), np.zeros((120, 6)))
