"""Calibrators on disk: the same after reading, safe to read, small, atomic."""

import io
import json
import os
import pickle
import sys
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.io.calibrators import (
    HEADER,
    load_calibrator,
    read_header,
    save_calibrator,
)
from coolhead.methods import METHODS

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(400, 4)) * 3
LABELS = np.where(RNG.random(400) < 0.6, LOGITS.argmax(axis=1), RNG.integers(0, 4, 400))
FEATURES = RNG.normal(size=(400, 7))
DOMAINS = np.repeat(["a", "b"], 200)


def methods_without_target():
    return [
        name
        for name, method in METHODS.items()
        if "calibration" in method.rows and not name.endswith("+source")
    ]


@pytest.mark.parametrize("name", methods_without_target())
def test_every_method_comes_back_the_same(name, tmp_path):
    import inspect

    method = METHODS[name].build(n_clusters=3, random_state=0)
    wanted = inspect.signature(method.fit).parameters
    target = {"target_features": FEATURES + 0.1, "target_logits": LOGITS}
    extra = {key: value for key, value in target.items() if key in wanted}
    method.fit(LOGITS, LABELS, features=FEATURES, sample_domain=DOMAINS, **extra)
    save_calibrator(method, tmp_path / "c.skops")
    again = load_calibrator(tmp_path / "c.skops")
    assert np.array_equal(
        again.predict_proba(LOGITS, FEATURES), method.predict_proba(LOGITS, FEATURES)
    )
    assert again.get_params() == method.get_params()


def test_metadata_and_versions_are_readable_without_loading(tmp_path):
    save_calibrator(
        TemperatureScaling().fit(LOGITS, LABELS),
        tmp_path / "c.skops",
        metadata={"domains": {"ärt": 3}, "nested": [1, 2.5, None]},
    )
    header = read_header(tmp_path / "c.skops")
    assert header["format_version"] == 2
    assert header["class"] == "TemperatureScaling"
    assert header["metadata"] == {"domains": {"ärt": 3}, "nested": [1, 2.5, None]}
    with zipfile.ZipFile(tmp_path / "c.skops") as archive:
        assert json.loads(archive.read(HEADER)) == header


def test_nine_clusters_of_2048_features_take_less_than_a_megabyte(tmp_path):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 2048)).astype(np.float32)
    logits = rng.normal(size=(300, 10)).astype(np.float32)
    labels = rng.integers(0, 10, 300)
    calibrator = TemperatureEnsemble(n_clusters=9)
    calibrator.fit(logits, labels, features=features)
    save_calibrator(calibrator, tmp_path / "c.skops")
    assert (tmp_path / "c.skops").stat().st_size < 1_000_000


def test_what_is_not_fitted_or_not_json_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save_calibrator(TemperatureScaling(), tmp_path / "c.skops")
    with pytest.raises(ValueError, match="metadata is not plain JSON"):
        save_calibrator(
            TemperatureScaling().fit(LOGITS, LABELS),
            tmp_path / "c.skops",
            metadata={"rows": {1, 2}},
        )
    assert not list(tmp_path.iterdir())


class HarmlessForeign(TemperatureScaling):
    """Somebody's own calibrator."""


def test_a_foreign_type_is_refused_by_name_unless_trusted(tmp_path):
    name = f"{HarmlessForeign.__module__}.HarmlessForeign"
    calibrator = HarmlessForeign().fit(LOGITS, LABELS)
    with pytest.raises(ValueError, match="HarmlessForeign"):
        save_calibrator(calibrator, tmp_path / "c.skops")
    skops.io.dump(calibrator, tmp_path / "c.skops")
    with pytest.raises(ValueError, match=f"not coolhead's.*{name}"):
        load_calibrator(tmp_path / "c.skops")
    again = load_calibrator(tmp_path / "c.skops", trusted=[name])
    assert again.temperature_ == calibrator.temperature_


def renamed(path, old, new):
    """A forged copy of a skops file in which one type has another name."""
    source = zipfile.ZipFile(path)
    buffer = io.BytesIO()
    with source, zipfile.ZipFile(buffer, "w") as target:
        for member in source.namelist():
            content = source.read(member)
            if member == "schema.json":
                content = content.replace(old.encode(), new.encode())
            target.writestr(member, content)
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("coolhead.io.files", "os"),
        ("coolhead.calibrators.base", "BaseEstimator"),
        ("coolhead.calibrators.temperature", "set_level"),
        ("coolhead.calibrators.temperature.os", "system"),
        ("coolhead.calibrators", "temperature"),
        ("trap_module", "Trap"),
    ],
)
def test_forged_names_are_refused_and_nothing_is_imported(
    module, name, tmp_path, monkeypatch
):
    trap = tmp_path / "trap_module.py"
    trap.write_text("raise SystemExit('this file ran code')")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "c.skops"
    save_calibrator(TemperatureScaling().fit(LOGITS, LABELS), path)
    renamed(path, '"TemperatureScaling"', f'"{name}"')
    renamed(path, '"coolhead.calibrators.temperature"', f'"{module}"')
    with pytest.raises(ValueError, match=r"not coolhead's"):
        load_calibrator(path)
    assert "trap_module" not in sys.modules


def test_a_pickle_is_never_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trap"),)

    (tmp_path / "c.skops").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="pickle"):
        load_calibrator(tmp_path / "c.skops")
    assert not (tmp_path / "trap").exists()


def test_other_models_are_no_calibrators(tmp_path):
    model = LogisticRegression().fit(FEATURES, LABELS)
    skops.io.dump(model, tmp_path / "c.skops")
    with pytest.raises(ValueError, match="LogisticRegression; wanted a fitted calib"):
        load_calibrator(tmp_path / "c.skops")


def test_a_file_of_format_zero_loads_and_one_of_the_future_says_what_to_do(tmp_path):
    calibrator = NearestClusterTemperature(3).fit(LOGITS, LABELS, features=FEATURES)
    skops.io.dump(calibrator, tmp_path / "old.skops")
    again = load_calibrator(tmp_path / "old.skops")
    assert np.array_equal(again.cluster_temperatures_, calibrator.cluster_temperatures_)
    save_calibrator(calibrator, tmp_path / "new.skops")
    header = read_header(tmp_path / "new.skops")
    future = header | {"format_version": 7, "coolhead_version": "9.1"}
    with zipfile.ZipFile(tmp_path / "new.skops") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "new.skops", "w") as archive:
        for name, content in (parts | {HEADER: json.dumps(future)}).items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"format 7.*install coolhead 9\.1"):
        load_calibrator(tmp_path / "new.skops")


def test_every_cut_of_a_file_is_refused_in_one_line(tmp_path):
    save_calibrator(TemperatureScaling().fit(LOGITS, LABELS), tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    path = tmp_path / "cut.skops"
    for length in range(0, len(content), 13):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"cut\.skops") as failure:
            load_calibrator(path)
        assert "\n" not in str(failure.value)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    save_calibrator(TemperatureScaling().fit(LOGITS, LABELS), tmp_path / "c.skops")
    monkeypatch.setattr("coolhead.io.calibrators.MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="unpacks to"):
        load_calibrator(tmp_path / "c.skops")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    first = TemperatureScaling().fit(LOGITS, LABELS)
    save_calibrator(first, tmp_path / "c.skops")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        save_calibrator(
            TemperatureScaling().fit(LOGITS * 2, LABELS), tmp_path / "c.skops"
        )
    assert load_calibrator(tmp_path / "c.skops").temperature_ == first.temperature_
    assert [path.name for path in tmp_path.iterdir()] == ["c.skops"]
