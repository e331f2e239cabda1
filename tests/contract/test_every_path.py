"""What is built around a calibrator: the wrapper, a new domain, pixels."""

import importlib
import pkgutil
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import coolhead as ch
from contract.problems import EVERY, PROBLEMS, fitted_parts
from coolhead.calibrators.base import Calibrator
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.classifier import classifier as wrapper
from coolhead.evaluate import evaluate_domains
from coolhead.models.dense import predict_dense

ROWS = PROBLEMS["ordinary"]
WITH_T = [name for name, each in EVERY.items() if hasattr(each, "temperature")]
each = pytest.mark.parametrize("name", EVERY)


def subclasses(kind):
    for found in kind.__subclasses__():
        yield found
        yield from subclasses(found)


def test_the_list_holds_every_calibrator_there_is():
    """Also one that no namespace offers, such as what a new domain hands out."""
    for module in pkgutil.walk_packages(ch.__path__, "coolhead."):
        importlib.import_module(module.name)
    # Examples in docstrings make classes that look like ours, too.
    own = {k for k in subclasses(Calibrator) if k.__module__.startswith("coolhead.")}
    own = {k for k in own if getattr(sys.modules[k.__module__], k.__name__, 0) is k}
    finished = {kind for kind in own if not own & set(kind.__subclasses__())}
    assert len(finished) >= 27
    assert finished == {type(calibrator) for calibrator in EVERY.values()}


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
@each
def test_the_wrapper_hands_over_all_it_knows(name, monkeypatch, tmp_path):
    X, y = ROWS["features"], ROWS["labels"]
    weights = np.linspace(0.5, 1.5, len(y))
    given = {"sample_domain": ROWS["domains"], "sample_weight": weights}
    calibrator = clone(EVERY[name])
    model = ch.CalibratedClassifier(LogisticRegression(), calibrator, source=["a"])
    seen = []
    monkeypatch.setattr(
        wrapper, "fit_with", lambda c, data: seen.append(data) or c.fit_data(data)
    )
    if "target" in calibrator.takes:
        monkeypatch.setattr(LogisticRegression, "fit", lambda *_, **__: 1 / 0)
        with pytest.raises(ValueError, match="needs unlabelled rows of the target"):
            model.fit(X, y, **given)
        return
    if isinstance(calibrator, OffsetTemperature):
        with pytest.raises(
            TypeError, match="is not fitted: it moves a fitted calibrator"
        ):
            model.fit(X, y, **given)
        return
    model.fit(X, y, **given)
    (data,) = seen
    inside = ROWS["domains"] == "a"
    takes_source = "source" in calibrator.takes
    assert data.source_domain == (["a"] if takes_source else None)
    assert len(data) == (len(y) if takes_source else (~inside).sum())
    assert data.weights.sum() == pytest.approx(weights[inside <= takes_source].sum())
    if calibrator.uses_features:
        np.testing.assert_array_equal(data.reference, X[inside])
    assert (data.features is not None) == calibrator.uses_features
    # Everything it says is what its calibrator says of its own logits.
    logits, features = model.estimator_.decision_function(X), X
    details, wanted = model.details(X), model.calibrator_.details(logits, features)
    for found, own in zip(details, wanted, strict=True):
        np.testing.assert_array_equal(found, own)
    assert hasattr(model, "temperature") == hasattr(calibrator, "temperature")
    monitor = ch.DriftMonitor.for_calibrator(model, X, ROWS["domains"], labels=y)
    assert str(monitor.check()).startswith("cannot tell")
    far = model.details(100 * X)
    monitor.update(far, features=model.features_of(100 * X))
    assert monitor.check().alarm or "l2" in name
    ch.save_calibrator(model, tmp_path / "model.skops")
    loaded = ch.load_calibrator(tmp_path / "model.skops")
    for part, found in zip(fitted_parts(model), fitted_parts(loaded), strict=True):
        np.testing.assert_equal(found, part)


@each
def test_a_new_domain_of_it_or_a_refusal_by_name(fits, name, run, tmp_path):
    calibrator, logits, features = fits(name), ROWS["logits"], ROWS["features"]
    saved, new = tmp_path / "cal.skops", tmp_path / "new.npz"
    ch.save_calibrator(calibrator, saved)
    np.savez(new, logits=logits, features=features)
    code, printed, complaint = run("expect", saved, new)
    if name not in WITH_T:
        assert code == 1 and type(calibrator).__name__ in complaint
        with pytest.raises(TypeError, match=type(calibrator).__name__):
            ch.NewDomain(calibrator, logits, features)
        return
    assert code == 0, complaint
    there = ch.NewDomain(calibrator, logits, features)
    assert (there.outside is not None) == calibrator.uses_features
    assert str(there) in printed
    rows = there.rows_to_label(40)
    answer = there.with_labels(rows, ROWS["labels"][rows]).calibrator
    line = np.log(calibrator.temperature(logits, features))
    moved = answer.middle + answer.offset + answer.slope * (line - answer.middle)
    found = answer.temperature(logits, features)
    np.testing.assert_allclose(found, np.exp(moved), rtol=1e-12)
    da = pytest.importorskip("dask.array")
    blocks = [da.from_array(part, chunks=(100, -1)) for part in (logits, features)]
    assert str(ch.dask.new_domain(calibrator, *blocks)) == str(there)


@each
def test_pixels_are_rows(fits, name):
    calibrator = fits(name)
    logits, features = (
        np.moveaxis(ROWS[part].reshape(10, 6, 6, -1), -1, 1)
        for part in ("logits", "features")
    )
    found = predict_dense(calibrator, logits, features)
    wanted = calibrator.predict_proba(ROWS["logits"], ROWS["features"])
    rows = np.moveaxis(found, 1, -1).reshape(wanted.shape)
    np.testing.assert_allclose(rows, wanted, atol=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, data: ch.dask.fit(model, *rows_of(data)),
        lambda model, data: ch.dask.predict_proba(model, rows_of(data)[0]),
        lambda model, data: ch.dask.evaluate(model, *rows_of(data)),
        lambda model, data: ch.dask.new_domain(model, rows_of(data)[0]),
        lambda model, data: evaluate_domains(model, data),
        lambda model, data: predict_dense(model, np.zeros((2, 3, 4, 4))),
        lambda model, data: ch.torch.CalibratedSoftmax(model),
    ],
)
def test_a_classifier_is_never_given_logits_for_rows_of_x(ask):
    data = ch.datasets.simulate_domains([1.0, 2.0], n_features=3)
    model = ch.CalibratedClassifier(LogisticRegression(), ch.TemperatureScaling())
    model.fit(data.features, data.labels)
    with pytest.raises(TypeError, match=r"CalibratedClassifier.*calibrator_"):
        ask(model, data)


def rows_of(data):
    da = pytest.importorskip("dask.array")
    chunks = {0: 200}
    return [da.from_array(part).rechunk(chunks) for part in (data.logits, data.labels)]
