"""Class offsets come out the same wherever a calibrator predicts, or is fitted.

The classifier favours some classes. `AutoCalibrator` learns offsets against that, a new
domain moves them; every path is compared with softmax(z / T(x) + b) by SciPy.
"""

import os
from unittest.mock import patch

import dask
import dask.array as da
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import coolhead as ch
import coolhead.mlflow
from coolhead.calibrators.class_offsets import add_offsets
from coolhead.cli import main
from coolhead.evaluate import evaluate_domains
from coolhead.io.archive import DomainArchive
from coolhead.models.dense import predict_dense
from coolhead.monitor import DriftMonitor
from coolhead.monitor.expected import expect_adapted

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
N, K, WIDTH = 300, 5, 4
BIAS = np.array([1.5, -1.0, 0.0, 0.5, -1.0])


def biased_domains(dtype, masked):
    """Four domains of overconfident logits that favour the first class."""
    rng = np.random.default_rng(11)
    truth = 1.5 * rng.normal(size=(4 * N, K))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    logits = np.repeat([1.0, 1.5, 2.0, 2.5], N)[:, None] * (truth + BIAS)
    if masked:
        rows = np.arange(0, 4 * N, 3)
        logits[rows, (labels[rows] + 1) % K] = -np.inf
    features = rng.normal(size=(4 * N, WIDTH)) + np.repeat(np.arange(4), N)[:, None]
    domains = np.repeat(["a", "b", "c", "new"], N)
    return logits.astype(dtype), labels, features.astype(np.float32), domains


CASES = [(np.float64, False), (np.float32, False), (np.float32, True)]
ids = ["float64", "float32", "masked classes"]


@pytest.fixture(scope="module", params=CASES, ids=ids)
def rows(request):
    """Rows of the calibration domains, and of the new one."""
    logits, labels, features, domains = biased_domains(*request.param)
    seen = domains != "new"
    parts = {"logits": logits, "labels": labels, "features": features}
    old = {name: part[seen] for name, part in parts.items()}
    old["sample_domain"] = domains[seen]
    return old, {name: part[~seen] for name, part in parts.items()}


@pytest.fixture(scope="module")
def auto(rows):
    fitted = ch.AutoCalibrator().fit(**rows[0])
    assert np.abs(fitted.class_offsets_).max() > 0.3
    return fitted


@pytest.fixture(scope="module", params=["fitted", "moved"])
def calibrator(request, auto, rows):
    """Auto, or what a new domain made of it with 30 labels."""
    if request.param == "fitted":
        return auto
    there = ch.NewDomain(auto, rows[1]["logits"], rows[1]["features"])
    asked = there.rows_to_label(30)
    moved = there.with_labels(asked, rows[1]["labels"][asked]).calibrator
    assert np.abs(moved.class_offsets_ - auto.class_offsets_).max() > 0.01
    assert moved.offset != 0
    return moved


@pytest.fixture(scope="module")
def wanted(calibrator, rows):
    """Probabilities of the new rows, by SciPy."""
    new = rows[1]
    temperature = calibrator.temperature(new["logits"], new["features"])
    scaled = new["logits"].astype(np.float64) / temperature[:, None]
    # The offsets matter: they change some of the predicted classes.
    found = softmax(scaled + calibrator.class_offsets_, axis=1)
    changed = found.argmax(axis=1) != new["logits"].argmax(axis=1)
    assert 0.02 < changed.mean() < 0.5
    return found


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier that was handed logits beside the features."""

    def __init__(self):
        self.classes_ = np.array(["p", "q", "r", "s", "t"])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, WIDTH:]

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]


def own_features(estimator, X):
    return np.asarray(X)[:, :WIDTH]


class Network(torch.nn.Module):
    """Gives the logits and the features that it is called with."""

    def forward(self, both):
        return both[:, WIDTH:], both[:, :WIDTH]


def together(part):
    return np.column_stack([part["features"], part["logits"]])


def onnx(net, path, given, *example):
    """Run the exported graph; outputs by name."""
    names = ("probabilities", "temperature")
    ch.torch.export_onnx(net, path, *example, outputs=names)
    session = onnxruntime.InferenceSession(path.read_bytes())
    inputs = [node.name for node in session.get_inputs()]
    found = session.run(None, dict(zip(inputs, given, strict=True)))
    return dict(zip(names, found, strict=True))["probabilities"]


def of_saved(calibrator, new, path):
    ch.save_calibrator(calibrator, path / "cal.skops")
    loaded = ch.load_calibrator(path / "cal.skops")
    return loaded.predict_proba(new["logits"], new["features"])


def of_command_line(calibrator, new, path):
    ch.save_calibrator(calibrator, path / "cal.skops")
    np.savez(path / "new.npz", logits=new["logits"], features=new["features"])
    words = ["coolhead", "apply", "cal.skops", "new.npz", "--out", "out.npy"]
    words = [str(path / word) if "." in word else word for word in words]
    with patch("sys.argv", words), pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    return np.load(path / "out.npy")


def of_torch(calibrator, new, path):
    net = ch.torch.CalibratedSoftmax(calibrator)
    return net(torch.tensor(new["logits"]), torch.tensor(new["features"])).numpy()


def of_onnx(calibrator, new, path):
    net = ch.torch.CalibratedSoftmax(calibrator)
    rows = new["logits"].astype(np.float32), new["features"]
    return onnx(net, path / "cal.onnx", rows)


def of_network(calibrator, new, path):
    net = ch.torch.CalibratedModule(Network(), calibrator)
    return net(torch.tensor(together(new))).numpy()


def of_exported_network(calibrator, new, path):
    net = ch.torch.CalibratedModule(Network(), calibrator)
    both = together(new).astype(np.float32)
    # Masked classes are no part of an example: the check moves its logits.
    example = np.where(np.isneginf(both[:20]), -3, both[:20])
    return onnx(net, path / "net.onnx", [both], torch.tensor(example))


def as_pixels(part):
    return np.moveaxis(part.reshape(3, 10, 10, -1), -1, 1)


def of_pixels(calibrator, new, path):
    maps = as_pixels(new["logits"]), as_pixels(new["features"])
    found = predict_dense(calibrator, *maps)
    return np.moveaxis(found, 1, -1).reshape(-1, K)


def of_pixels_in_torch(calibrator, new, path):
    def network(both):
        return both[:, WIDTH:], both[:, :WIDTH]

    module = torch.nn.Module()
    module.forward = network
    net = ch.torch.CalibratedModule(module, calibrator)
    found = net(torch.tensor(as_pixels(together(new)))).numpy()
    return np.moveaxis(found, 1, -1).reshape(-1, K)


def of_dask(calibrator, new, path):
    return ch.dask.predict_proba(calibrator, *in_blocks(new)).compute()


def in_blocks(part, *names):
    names = names or ("logits", "features")
    return [da.from_array(part[n], chunks=(70, *part[n].shape[1:])) for n in names]


def of_classifier(calibrator, new, path):
    return around(calibrator).predict_proba(together(new))


def around(calibrator):
    """A classifier with this calibrator in place of the one that it fitted."""
    model = ch.CalibratedClassifier(FrozenEstimator(Given()), features=own_features)
    model.estimator_, model.calibrator_ = Given(), calibrator
    model.classes_ = model.estimator_classes_ = Given().classes_
    model.preparation_ = None
    return model


def of_mlflow(calibrator, new, path):
    served = coolhead.mlflow.CalibratedModel(around(calibrator))
    frame = served.predict(pd.DataFrame(together(new)))
    probabilities = frame[[f"prob_{name}" for name in "pqrst"]].to_numpy()
    assert frame["predicted"].tolist() == list(
        Given().classes_[probabilities.argmax(axis=1)]
    )
    np.testing.assert_array_equal(frame["confidence"], probabilities.max(axis=1))
    return probabilities


PATHS = [
    of_saved,
    of_command_line,
    of_torch,
    of_onnx,
    of_network,
    of_exported_network,
    of_pixels,
    of_pixels_in_torch,
    of_dask,
    of_classifier,
    of_mlflow,
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_probabilities_are_scipys(path, calibrator, rows, wanted, tmp_path):
    found = path(calibrator, rows[1], tmp_path)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(found[np.isneginf(rows[1]["logits"])], 0)


def test_confidence_and_class_are_of_corrected_probabilities(calibrator, rows, wanted):
    new = rows[1]
    given = new["logits"], new["features"]
    model, X = around(calibrator), together(new)
    details = calibrator.details(*given)
    lazily = dask.compute(*ch.dask.confidence(calibrator, *in_blocks(new)))
    network = ch.torch.CalibratedSoftmax(calibrator)
    tensors = network.details(*map(torch.tensor, given)).probabilities.max(dim=1)
    for confidence, predicted in (
        calibrator.confidence(*given),
        (details.probabilities.max(axis=1), details.probabilities.argmax(axis=1)),
        model.confidence(X),
        lazily,
        (tensors.values.numpy(), tensors.indices.numpy()),
    ):
        np.testing.assert_allclose(confidence, wanted.max(axis=1), atol=2e-6)
        np.testing.assert_array_equal(predicted, wanted.argmax(axis=1))
    named = model.classes_[wanted.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), named)
    # X is of double precision, its features were of single.
    found = model.details(X).temperature
    np.testing.assert_allclose(found, details.temperature, rtol=1e-6)


def test_scores_are_of_corrected_probabilities(calibrator, rows, wanted):
    new = rows[1]
    right = np.mean(wanted.argmax(axis=1) == new["labels"])
    own = wanted[np.arange(N), new["labels"]]
    logits, labels, features = in_blocks(new, "logits", "labels", "features")
    found = ch.dask.evaluate(calibrator, logits, labels, features=features)
    assert found.accuracy == pytest.approx(right)
    assert found.mean_confidence == pytest.approx(wanted.max(axis=1).mean(), abs=1e-6)
    assert found.negative_log_likelihood == pytest.approx(-np.log(own).mean(), abs=1e-5)
    archive = DomainArchive(
        new["logits"], new["features"], new["labels"], np.repeat("new", N)
    )
    (line,) = evaluate_domains(calibrator, archive, n_draws=20)
    assert line.accuracy == pytest.approx(right)
    logged = coolhead.mlflow.metrics_of([line])
    assert logged["accuracy/new"] == pytest.approx(right)
    assert logged["ece_after/new"] == pytest.approx(found.expected_calibration_error)


def test_every_way_of_fitting_finds_the_same_offsets(auto, rows):
    old, found = rows[0], {}
    blocks = in_blocks(old, *old)
    given = dict(zip(old, blocks, strict=True))
    found["dask"] = ch.dask.fit(ch.AutoCalibrator(), **given)
    names = np.unique(old["sample_domain"])

    def batch(name):
        own = old["sample_domain"] == name
        both = together({part: old[part][own] for part in ("features", "logits")})
        return [(torch.tensor(both), torch.tensor(old["labels"][own]))]

    loaders = {name: batch(name) for name in names}
    net = ch.torch.calibrate(Network(), loaders, progress=False)
    found["torch"] = net.softmax.calibrator
    model = ch.CalibratedClassifier(FrozenEstimator(Given()), features=own_features)
    model.fit(
        together(old),
        Given().classes_[old["labels"]],
        sample_domain=old["sample_domain"],
    )
    found["classifier"] = model.calibrator_
    for name, fitted in found.items():
        np.testing.assert_allclose(
            fitted.class_offsets_, auto.class_offsets_, atol=1e-6, err_msg=name
        )
        assert fitted.evidence_.offset_step == pytest.approx(auto.evidence_.offset_step)


def test_every_new_domain_moves_them_alike(auto, rows):
    new = rows[1]
    here = ch.NewDomain(auto, new["logits"], new["features"])
    asked = here.rows_to_label(30)
    there = ch.dask.new_domain(auto, *in_blocks(new))
    model = ch.NewDomain(around(auto), together(new))
    plain = here.with_labels(asked, new["labels"][asked])
    for other in (
        there.with_labels(asked, new["labels"][asked]),
        model.with_labels(asked, Given().classes_[new["labels"][asked]]),
    ):
        np.testing.assert_allclose(other.class_offsets, plain.class_offsets, atol=1e-6)
        assert other.accuracy.estimate == pytest.approx(plain.accuracy.estimate)
    moved = model.calibrator
    np.testing.assert_array_equal(
        moved.predict(together(new)),
        moved.classes_[moved.predict_proba(together(new)).argmax(axis=1)],
    )
    kept = here.without("classes").calibrator
    _, predicted = kept.confidence(new["logits"], new["features"])
    np.testing.assert_array_equal(predicted, new["logits"].argmax(axis=1))


def test_thresholds_and_sets_are_of_corrected_predictions(auto, rows):
    new = rows[1]
    given = new["logits"], new["features"]
    here = ch.NewDomain(auto, *given)
    asked = here.rows_to_label(60)
    there = here.with_labels(asked, new["labels"][asked])
    found = there.threshold(0.5)
    answered = there.calibrator.confidence(*given)[0] >= found.confidence - 1e-9
    # Rounding may decide about a row at the threshold.
    assert answered.mean() == pytest.approx(found.share, abs=1.01 / N)
    # Sets rest on left-out domains, so on the offsets that the fit has.
    sets = here.sets(0.6, promise="new_domain")
    fitted = auto.predict_proba(*given)
    wanted = 1 - fitted <= sets.limit
    wanted[np.arange(N), fitted.argmax(axis=1)] = True
    assert np.mean(sets.members == wanted) > 0.999


def test_a_monitor_expects_corrected_predictions(calibrator, auto, rows):
    old, new = rows
    given = old["features"], old["sample_domain"]
    model, X = around(calibrator), together(old)
    proba = calibrator.predict_proba(old["logits"], old["features"])
    correct = proba.argmax(axis=1) == old["labels"]
    monitors = [
        DriftMonitor.for_calibrator(
            calibrator, *given, logits=old["logits"], labels=old["labels"]
        ),
    ]
    model.source = ["somewhere"]
    monitors.append(
        DriftMonitor.for_calibrator(
            model, X, old["sample_domain"], labels=Given().classes_[old["labels"]]
        )
    )
    for monitor in monitors:
        assert monitor.expected.middle == pytest.approx(np.median(proba.max(axis=1)))
        for name, (right, seen) in monitor.expected.right.items():
            own = old["sample_domain"] == name
            assert sum(seen) == N
            assert sum(right) == correct[own].sum()
        monitor.update(
            calibrator.details(new["logits"], new["features"]), new["labels"]
        )
        found = calibrator.predict_proba(new["logits"], new["features"])
        right = (found.argmax(axis=1) == new["labels"]).sum()
        assert monitor.counts["bin_correct"].sum() == right
        assert monitor.mean_confidence == pytest.approx(found.max(axis=1).mean())


def test_the_evidence_of_a_monitor_is_of_corrected_predictions(auto, rows):
    """Of left-out domains, by the offsets that were found without them."""
    old = rows[0]
    expected = DriftMonitor.for_calibrator(auto).expected
    left_out = sum(sum(right) for right, _ in expected.right.values())
    corrected = auto.predict_proba(old["logits"], old["features"]).argmax(axis=1)
    plain = np.sum(old["logits"].argmax(axis=1) == old["labels"])
    change = auto.left_out_accuracy_change_ * len(old["labels"])
    assert left_out == pytest.approx(plain + change, abs=1e-6)
    assert change > 0 and np.sum(corrected == old["labels"]) > plain


def test_adapted_monitors_expect_the_moved_predictions(auto, rows):
    new = rows[1]
    there = ch.NewDomain(auto, new["logits"], new["features"])
    details = there.calibrator.details(new["logits"], new["features"])
    expected = expect_adapted("new", details)
    assert expected.middle == pytest.approx(np.median(details.probabilities.max(1)))
    # Offsets inside the logits give the same probabilities without offsets.
    temperature = there.calibrator.temperature(new["logits"], new["features"])
    inside = add_offsets(new["logits"], temperature, there.calibrator.class_offsets_)
    wanted = np.exp(log_softmax(inside / temperature[:, None], axis=1))
    np.testing.assert_allclose(details.probabilities, wanted, atol=2e-6)


def test_offsets_stay_exact_behind_a_network_of_half_precision(calibrator, rows):
    new = rows[1]
    net = ch.torch.CalibratedSoftmax(calibrator).half()
    logits = torch.tensor(new["logits"]).half()
    found = net(logits, torch.tensor(new["features"])).numpy()
    wanted = calibrator.predict_proba(logits.float().numpy(), new["features"])
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    again = ch.torch.CalibratedSoftmax(calibrator)
    again.load_state_dict(net.state_dict())
