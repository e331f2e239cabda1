"""Calibrator files that are old, forged, too large, or hold more than a calibrator."""

import io
import json
import re
import zipfile
from ast import literal_eval
from importlib import import_module

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits
from xgboost import XGBClassifier

from coolhead import baselines
from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.classifier.classifier import CalibratedClassifier
from coolhead.io import calibrators as types
from coolhead.io.calibrators import HEADER, load_calibrator, save_calibrator

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(200, 3)) * 3
LABELS = np.where(RNG.random(200) < 0.6, LOGITS.argmax(axis=1), RNG.integers(0, 3, 200))
FEATURES = RNG.normal(size=(200, 5))


def rewritten(path, change):
    """The members of a file, changed by a function of the dictionary of them."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in change(members).items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize("changes", [{"format_version": 1}, {"format_version": 1.5}])
def test_a_file_of_the_first_version_says_how_to_fit_again(tmp_path, changes):
    path = tmp_path / "c.skops"
    save_calibrator(TemperatureScaling().fit(LOGITS, LABELS), path)

    def older(members):
        header = json.loads(members[HEADER]) | {"coolhead_version": "0.1.0"} | changes
        return members | {HEADER: json.dumps(header)}

    rewritten(path, older)
    with pytest.raises(ValueError, match=r"written by coolhead 0\.1\.0.*coolhead fit"):
        load_calibrator(path)


@pytest.mark.parametrize("name", [n for n in baselines.__all__ if "Two" in n])
def test_two_stages_come_back_the_same(tmp_path, name):
    method = getattr(baselines, name)()
    method.fit(LOGITS, LABELS, features=FEATURES)
    save_calibrator(method, tmp_path / "c.skops")
    again = load_calibrator(tmp_path / "c.skops")
    assert np.array_equal(
        again.predict_proba(LOGITS, FEATURES), method.predict_proba(LOGITS, FEATURES)
    )


@pytest.fixture
def classifier(tmp_path):
    model = CalibratedClassifier(LogisticRegression())
    model.fit(FEATURES, (FEATURES[:, 0] > 0).astype(int))
    save_calibrator(model, tmp_path / "model.skops")
    return tmp_path / "model.skops", model


def test_a_classifier_comes_back_the_same(classifier):
    path, model = classifier
    again = load_calibrator(path)
    assert np.array_equal(again.predict_proba(FEATURES), model.predict_proba(FEATURES))


@pytest.mark.parametrize(
    "estimator, type_names",
    [
        (HistGradientBoostingClassifier(max_iter=3), ["TreePredictor"]),
        (GradientBoostingClassifier(n_estimators=3), ["_tree.Tree"]),
        (
            KNeighborsClassifier(100, algorithm="kd_tree"),
            ["EuclideanDistance64", "KDTree"],
        ),
        (
            LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1),
            ["LGBMClassifier", "Booster"],
        ),
        (XGBClassifier(n_estimators=3, n_jobs=1), ["XGBClassifier", "Booster"]),
        (MLPClassifier(tol=1.0), []),
        (GridSearchCV(LogisticRegression(), {"C": [1, 2]}), []),
        (VotingClassifier([("a", LogisticRegression())], voting="soft"), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_an_estimator_holds_is_saved_and_read_if_its_package_is_trusted(
    tmp_path, estimator, type_names
):
    model = CalibratedClassifier(estimator, TemperatureScaling())
    with threadpool_limits(1):  # others may be at work on this machine
        model.fit(FEATURES, (FEATURES[:, 0] + LOGITS[:, 0] > 0).astype(int))
    path, trusted = tmp_path / "model.skops", []
    save_calibrator(model, path)
    if type_names:
        asked = r"give trusted=(\[.*\]) to load_calibrator if you know who wrote"
        with pytest.raises(ValueError, match=asked) as refusal:
            load_calibrator(path)
        assert all(name in str(refusal.value) for name in type_names)
        trusted = literal_eval(re.search(asked, str(refusal.value))[1])
        assert trusted == [type(estimator).__module__.partition(".")[0]]
    again = load_calibrator(path, trusted=trusted)
    assert np.array_equal(again.predict_proba(FEATURES), model.predict_proba(FEATURES))


# Who brings each type that is read though it is neither coolhead's nor skops's.
BRINGERS = {
    "dtype": make_pipeline(SimpleImputer(), LogisticRegression()),
    "_PassthroughScorer": GridSearchCV(LogisticRegression(), {"C": [1, 2]}),
    "StratifiedKFold": GridSearchCV(
        LogisticRegression(), {"C": [1, 2]}, cv=StratifiedKFold(3)
    ),
    "AdamOptimizer": MLPClassifier((2,), tol=1.0),
    "SGDOptimizer": MLPClassifier((2,), solver="sgd", tol=1.0),
    "Bunch": VotingClassifier([("a", LogisticRegression())], voting="soft"),
}


@pytest.mark.parametrize("harmless", types.HARMLESS)
def test_every_harmless_type_is_needed_and_does_nothing(
    tmp_path, monkeypatch, harmless
):
    place, _, name = harmless.rpartition(".")
    if place != "numpy":
        kind = getattr(import_module(place), name)
        assert import_module(kind.__module__).__file__.endswith(".py")
        for base in kind.__mro__[:-1]:
            # What skops runs: `__new__`, and `__setstate__` where there is one.
            own = vars(base).keys() if base is not dict else set()
            assert not own & {"__new__", "__del__", "__reduce__", "__reduce_ex__"}
            assert "__setstate__" not in own or name == "Bunch"  # which ignores it
    model = CalibratedClassifier(BRINGERS[name], TemperatureScaling())
    model.fit(FEATURES, (FEATURES[:, 0] > 0).astype(int))
    save_calibrator(model, tmp_path / "model.skops")
    fewer = tuple(other for other in types.HARMLESS if other != harmless)
    monkeypatch.setattr(types, "HARMLESS", fewer)
    with pytest.raises(ValueError, match=f"not loaded: .*{name}"):
        load_calibrator(tmp_path / "model.skops")


@pytest.mark.parametrize("loader", ["MethodNode", "PartialNode", "OperatorFuncNode"])
@pytest.mark.parametrize("harmless", types.HARMLESS)
def test_a_harmless_type_is_no_way_to_a_call(tmp_path, loader, harmless):
    path = tmp_path / "c.skops"
    save_calibrator(TemperatureScaling().fit(LOGITS, LABELS), path)
    place, _, name = harmless.rpartition(".")

    def forge(members):
        schema = json.loads(members["schema.json"])
        node = {"__class__": name, "__module__": place, "__id__": 991}
        empty = {"__class__": "str", "__module__": "builtins", "content": "[]"}
        empty |= {"__loader__": "JsonNode", "is_json": True, "__id__": 992}
        itself = node | {"__loader__": "TypeNode", "__id__": 993}
        content = {"func": "__subclasses__", "obj": itself}
        if loader == "PartialNode":
            content = {"func": itself, "args": empty, "kwds": empty, "namespace": empty}
        node |= {"__loader__": loader, "content": content, "attrs": empty}
        schema["content"]["content"]["status_"] = node
        return members | {"schema.json": json.dumps(schema)}

    rewritten(path, forge)
    with pytest.raises(ValueError, match=r"not loaded: |Expected module|damaged"):
        load_calibrator(path)


def test_the_commands_say_what_to_do_with_a_classifier(classifier, run, npz, tmp_path):
    path, _ = classifier
    for words in (
        ("inspect", path),
        ("apply", path, npz, "--out", tmp_path / "p.parquet"),
        ("evaluate", path, npz),
        ("export", path, "--onnx", tmp_path / "c.onnx"),
    ):
        code, _, err = run(*words)
        assert code == 1
        assert "predicts from X and not from saved logits" in err
        assert "calibrator_" in err
        assert err.count("\n") == 1


def with_temperature(value):
    method = TemperatureScaling().fit(LOGITS, LABELS)
    method.temperature_ = value
    return method


def with_one_cluster(value):
    method = NearestClusterTemperature(3).fit(LOGITS, LABELS, features=FEATURES)
    method.cluster_temperatures_[2] = value
    return method


def with_one_member(value):
    method = TemperatureEnsemble(n_clusters=3).fit(LOGITS, LABELS, features=FEATURES)
    method.members_[-1].cluster_temperatures_[0] = value
    return method


@pytest.mark.parametrize("value", [-1.7, 0.0, np.inf, np.nan])
@pytest.mark.parametrize("forge", [with_temperature, with_one_cluster, with_one_member])
def test_a_forged_temperature_does_not_load(tmp_path, forge, value):
    save_calibrator(forge(value), tmp_path / "c.skops")
    with pytest.raises(ValueError, match="not positive and finite"):
        load_calibrator(tmp_path / "c.skops")


def bomb(n_bytes, n_names):
    """Zeros that pack well, named by many nodes."""
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(n_bytes, np.uint8))

    def change(members):
        schema = json.loads(members["schema.json"])
        node = {
            "__class__": "ndarray",
            "__module__": "numpy",
            "__loader__": "NdArrayNode",
            "type": "numpy",
            "file": "zeros.npy",
        }
        nodes = {f"a{i}_": node | {"__id__": i + 1} for i in range(n_names)}
        schema["content"]["content"] |= nodes
        return members | {
            "schema.json": json.dumps(schema),
            "zeros.npy": zeros.getvalue(),
        }

    return change


@pytest.mark.parametrize(("n_bytes", "n_names"), [(10**8, 1), (10**6, 100)])
def test_zeros_that_are_named_often_are_not_unpacked(tmp_path, n_bytes, n_names):
    path = tmp_path / "c.skops"
    save_calibrator(TemperatureScaling().fit(LOGITS, LABELS), path)
    rewritten(path, bomb(n_bytes, n_names))
    assert path.stat().st_size < 200_000
    with pytest.raises(ValueError, match=f"unpacks to {n_bytes // 10**6}"):
        load_calibrator(path)


def test_a_member_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "c.skops"
    save_calibrator(TemperatureScaling().fit(LOGITS, LABELS), path)
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as archive,
    ):
        archive.writestr("schema.json", archive.read("schema.json"))
    with pytest.raises(ValueError, match="a member is there twice"):
        load_calibrator(path)


@pytest.mark.parametrize("domains", [["clipart", "real"], 3, "clipart", None])
def test_free_metadata_is_no_trap(run, npz, predictions, tmp_path, domains):
    path = tmp_path / "c.skops"
    method = TemperatureScaling().fit(predictions["logits"], predictions["labels"])
    metadata = {"domains": domains, "class_names": 4, "input": 1, "left_out_shares": 2}
    save_calibrator(method, path, metadata=metadata | {"method": [1], "file": 7})
    report = tmp_path / "r.html"
    words = ("evaluate", path, npz, "--report", report, "--input", "logits")
    code, _, err = run(*words, "--draws", 20)
    assert code == 0, err
    assert report.exists()


@pytest.mark.parametrize("expected", [{"a": 1}, [1], "x", {"outside": 5}])
def test_expectations_of_another_kind_are_told(
    run, npz, predictions, tmp_path, expected
):
    path, labels = tmp_path / "c.skops", tmp_path / "l.csv"
    method = TemperatureScaling().fit(predictions["logits"], predictions["labels"])
    save_calibrator(method, path, metadata={"expected": expected, "class_names": 4})
    code, _, err = run("apply", path, npz, "--out", tmp_path / "o.npy")
    assert code == 0
    assert "drift check skipped: what is expected is damaged" in err
    labels.write_text("row,label\n0,1\n")
    code, _, err = run(
        "update", path, labels, "--on", npz, "--out", tmp_path / "u.skops"
    )
    assert code == 0, err
