"""A `CalibratedClassifier` in a new domain, with its X and its own classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import coolhead as ch
from coolhead.new_domain import NewDomain, learn_evidence

NAMES = np.array(["bird", "cat", "dog"])


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(
        1200, 8, n_informative=5, n_classes=3, flip_y=0.2, random_state=0
    )
    domain = np.array(["home", "b", "c", "new"])[np.arange(len(y)) % 4]
    return X * (1 + 0.3 * (domain == "c"))[:, None], NAMES[y], domain


@pytest.fixture(scope="module", params=[None, ["home"]], ids=["folds", "source"])
def model(request, table):
    X, y, domain = (column[table[2] != "new"] for column in table)
    made = ch.CalibratedClassifier(LogisticRegression(), source=request.param)
    made.fit(X, y, sample_domain=domain)
    made.evidence_ = learn_evidence(made, X, y, sample_domain=domain)
    return made


@pytest.fixture(scope="module")
def new(table):
    away = table[2] == "new"
    return table[0][away], table[1][away]


def test_the_record_is_what_the_calibrator_learned_from(table, monkeypatch):
    X, y, domain = (column[table[2] != "new"] for column in table)
    from coolhead.classifier import classifier

    seen = []
    monkeypatch.setattr(classifier, "fit_with", lambda c, data: seen.append(data))
    model = ch.CalibratedClassifier(LogisticRegression(), source=["home"])
    model.fit(X, y, sample_domain=domain)
    again = model.calibration_data(X, y, sample_domain=domain)
    np.testing.assert_array_equal(again.logits, seen[0].logits)
    np.testing.assert_array_equal(again.features, seen[0].features)
    np.testing.assert_array_equal(again.sample_domain, seen[0].sample_domain)


def test_it_is_its_calibrator_there(model, new):
    X, y = new
    there = NewDomain(model, X)
    inner = NewDomain(model.calibrator_, *model._query(X), evidence=model.evidence_)
    assert there.accuracy == inner.accuracy
    rows = there.rows_to_label(30)
    labelled = there.with_labels(rows, y[rows])
    numbers = np.searchsorted(NAMES, y[rows])
    assert labelled.accuracy == inner.with_labels(rows, numbers).accuracy
    assert (
        labelled.accuracy.low < np.mean(model.predict(X) == y) < labelled.accuracy.high
    )
    assert set(labelled.by_class()) <= set(NAMES)


def test_what_it_hands_out_takes_x(model, new, tmp_path):
    X, y = new
    labelled = NewDomain(model, X).with_labels(range(40), y[:40])
    moved = labelled.calibrator
    assert isinstance(moved, ch.CalibratedClassifier)
    wanted = labelled._state.moved.predict_proba(*model._query(X))
    np.testing.assert_array_equal(moved.predict_proba(X), wanted)
    best = moved.classes_[moved.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(moved.predict(X), best)
    kept = labelled.without("classes").calibrator
    np.testing.assert_array_equal(kept.predict(X), model.estimator_.predict(X))
    assert model.calibrator_ is not moved.calibrator_, "the given one stays as it was"
    ch.save_calibrator(moved, tmp_path / "moved.skops")
    loaded = ch.load_calibrator(tmp_path / "moved.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), wanted)
    assert NewDomain(loaded, X).accuracy.high > 0


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_a_new_fit_forgets_old_evidence(model, table):
    X, y, domain = (column[table[2] != "new"] for column in table)
    copy = ch.CalibratedClassifier(LogisticRegression(), ch.TemperatureScaling())
    copy.fit(X, y, sample_domain=domain).evidence_ = model.evidence_
    assert copy.evidence_ is model.evidence_
    assert copy.fit(X, y, sample_domain=domain).evidence_ is not model.evidence_
    inner = copy.calibrator_
    inner.evidence_ = model.evidence_
    inner.fit(np.eye(3)[[0, 1, 2, 0]] * 2.0, [0, 1, 2, 1])
    assert not hasattr(inner, "evidence_")


def test_mistakes_are_named(model, new):
    X, y = new
    there = NewDomain(model, X)
    with pytest.raises(
        ValueError, match="labels holds 'cow' in row 0, which is no class"
    ):
        there.with_labels([0], ["cow"])
    with pytest.raises(ValueError, match="makes its own; wanted its inputs alone"):
        NewDomain(model, X, X)
    with pytest.raises(ValueError, match="features is given with a Calibrated"):
        learn_evidence(model, X, y, features=X)
    unfitted = ch.CalibratedClassifier(LogisticRegression())
    with pytest.raises(ValueError, match="not fitted yet"):
        NewDomain(unfitted, X)


def test_classes_of_a_frame_go_by_name(world):
    cal, logits, features, labels = world
    names = [f"kind {k}" for k in range(logits.shape[1])]
    frame = pd.DataFrame(logits, columns=names)
    there, plain = NewDomain(cal, frame, features), NewDomain(cal, logits, features)
    labelled = there.with_labels([1, 2], [names[k] for k in labels[1:3]])
    assert labelled.accuracy == plain.with_labels([1, 2], labels[1:3]).accuracy
    assert set(there.by_class()) <= set(names)
    with pytest.raises(ValueError, match="cow"):
        there.with_labels([1], ["cow"])
