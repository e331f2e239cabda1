"""Classifiers: trained once per source set, kept under a key of all settings."""

import subprocess
import sys

import numpy as np
import pytest
from small_world import DOMAINS, make_archive, protocol_content

import coolhead.lab.sweep as sweep_module
from coolhead.io.reading import load_archive
from coolhead.lab.classifiers import (
    Training,
    archive_checksum,
    divide,
    reference_path,
    train_classifier,
)
from coolhead.lab.plan import make_plan
from coolhead.lab.protocol import Classifier, Protocol
from coolhead.lab.results import read_table
from coolhead.lab.sweep import run_sweep

METHODS = {"names": ["uncalibrated", "source-only", "set-level"], "clusters": 3}


def trained_protocol(folder, classifier=None, **changes) -> Protocol:
    path = folder / "features.safetensors"
    if not path.is_file():
        make_archive(logits=None).save(path)
    content = protocol_content(folder, methods=METHODS)
    content["data"] = {"kind": "archive", "path": str(path)}
    head = {"kind": "logistic", "max_iter": 200}
    content["classifiers"] = {"plain": classifier or head}
    return Protocol.model_validate(content | changes)


def test_one_classifier_per_source_set(tmp_path):
    protocol = trained_protocol(tmp_path)
    outcome = run_sweep(protocol, tmp_path, jobs=1)
    assert (outcome.n_cells, outcome.n_failed) == (12, 0)
    kept = sorted((outcome.run / "classifiers").glob("*.safetensors"))
    assert len(kept) == 4
    archive = load_archive(kept[0])
    assert archive.logits.shape == (640, 4)
    assert np.array_equal(archive.features, make_archive().features)


@pytest.mark.parametrize(
    "change",
    [
        {"classifiers": {"plain": {"kind": "logistic", "C": 0.5}}},
        {"division": {"small": 0.3}},
        {"seeds": [1]},
    ],
)
def test_a_changed_setting_is_a_new_classifier(tmp_path, change):
    keys = {t.key for t in make_plan(trained_protocol(tmp_path), tmp_path).trainings}
    changed = trained_protocol(tmp_path, **change)
    others = {t.key for t in make_plan(changed, tmp_path).trainings}
    assert len(keys) == len(others) == 4
    assert not keys & others


def test_changed_data_is_a_new_classifier(tmp_path):
    protocol = trained_protocol(tmp_path)
    before = {t.key for t in make_plan(protocol, tmp_path).trainings}
    archive = make_archive(logits=None)
    labels = archive.labels.copy()
    labels[-1] = (labels[-1] + 1) % 4
    archive.replace(labels=labels).save(tmp_path / "features.safetensors")
    assert not before & {t.key for t in make_plan(protocol, tmp_path).trainings}


def test_checksum_sees_values_names_and_types():
    archive = make_archive()
    other = archive.replace(features=archive.features.astype(np.float64))
    renamed = make_archive(domain_names=("a", "b", "c", "d"))
    sums = {archive_checksum(a) for a in (archive, other, renamed)}
    assert len(sums) == 3
    assert archive_checksum(make_archive()) == archive_checksum(archive)


def test_target_rows_do_not_reach_the_training(tmp_path):
    protocol = trained_protocol(tmp_path)
    first = run_sweep(protocol, tmp_path / "clean", jobs=1)
    archive = make_archive(logits=None)
    west = archive.domain_codes == DOMAINS.index("west")
    labels = np.where(west, 0, archive.labels)
    features = np.where(west[:, None], 100.0, archive.features)
    poisoned = archive.replace(labels=labels, features=features.astype(np.float32))
    poisoned.save(tmp_path / "features.safetensors")
    second = run_sweep(protocol, tmp_path / "poisoned", jobs=1)

    def logits(outcome, source):
        (path,) = (outcome.run / "classifiers").glob(f"{source}-*.safetensors")
        return load_archive(path).logits

    for source in ("north", "east", "south"):
        clean, dirty = logits(first, source), logits(second, source)
        assert np.array_equal(clean[~west], dirty[~west])
    assert not np.array_equal(logits(first, "west"), logits(second, "west"))


def test_penultimate_features_are_those_of_the_head(tmp_path):
    head = {"kind": "mlp", "hidden": [6], "epochs": 2, "features": "penultimate"}
    protocol = trained_protocol(tmp_path, classifier=head)
    outcome = run_sweep(protocol, tmp_path, jobs=1)
    assert outcome.n_failed == 0
    for path in (outcome.run / "classifiers").glob("*.safetensors"):
        assert load_archive(path).features.shape[1] == 6


def test_a_train_archive_of_its_own(tmp_path):
    protocol = trained_protocol(tmp_path)
    make_archive(logits=None, random_state=7).save(tmp_path / "train.safetensors")
    data = protocol.data.model_copy(
        update={"train_path": tmp_path / "train.safetensors"}
    )
    outcome = run_sweep(protocol.model_copy(update={"data": data}), tmp_path, jobs=1)
    assert outcome.n_failed == 0
    archives = [
        path
        for path in (outcome.run / "classifiers").iterdir()
        if ".reference" not in path.name
    ]
    assert len(archives) == 4
    reference = load_archive(reference_path(archives[0]))
    assert len(reference) == 160


def test_calibration_rows_end_the_training_on_another_archive(tmp_path):
    make_archive(logits=None, random_state=7).save(tmp_path / "train.safetensors")
    protocol = trained_protocol(tmp_path)
    data = protocol.data.model_copy(
        update={"train_path": tmp_path / "train.safetensors"}
    )
    stopped = Classifier(kind="mlp", hidden=64, epochs=200, patience=1)
    training = Training(data, "", stopped, ("north",), protocol.division, 0, 0)
    path = train_classifier(training, tmp_path)
    head = load_archive(path).metadata["head"]
    assert head["n_train"] == 160 and head["patience"] == 1
    # The other rows of the target archive decide nothing.
    archive = load_archive(data.path)
    small = divide(archive, protocol.division, 0)
    changed = np.array(archive.features)
    changed[~(small & (archive.domains == "north"))] += 1
    archive.replace(features=changed).save(data.path)
    first, again = (
        load_archive(path).logits[:],
        load_archive(train_classifier(training, tmp_path)).logits[:],
    )
    kept = small & (archive.domains == "north")
    np.testing.assert_array_equal(first[kept], again[kept])


def test_a_classifier_that_fails_takes_only_its_own_cells_along(tmp_path, monkeypatch):
    whole = sweep_module.train_classifier

    def broken(training, folder):
        if training.source == ("north",):
            raise RuntimeError("no north")
        return whole(training, folder)

    monkeypatch.setattr(sweep_module, "train_classifier", broken)
    outcome = run_sweep(trained_protocol(tmp_path), tmp_path, jobs=1)
    failures = read_table(outcome.run, "failures")
    assert outcome.n_failed == len(failures) == 3
    assert set(failures["source"]) == {"north"}
    assert set(failures["error"]) == {"RuntimeError: no north"}


def test_missing_domains_are_named_before_anything_runs(tmp_path):
    protocol = trained_protocol(tmp_path)
    roles = protocol.roles.model_copy(update={"domains": ("north", "moon", "a", "b")})
    with pytest.raises(ValueError, match="names moon, a, b, but the data has north"):
        run_sweep(protocol.model_copy(update={"roles": roles}), tmp_path)


def test_a_missing_archive_of_given_logits_is_named(tmp_path):
    protocol = Protocol.model_validate(protocol_content(tmp_path))
    with pytest.raises(ValueError, match=r"no archive .*source=east"):
        run_sweep(protocol, tmp_path)


TRAIN_TWICE = """
import sys
from pathlib import Path
from coolhead.lab.plan import make_plan
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.sweep import _train_one

folder = Path(sys.argv[1])
settings = ["classifiers.mlp.kind=erm", "classifiers.mlp.epochs=2"]
training = make_plan(load_protocol("digits", settings), folder).trainings[0]
paths = []
for name in ("first", "second"):
    (folder / name).mkdir()
    path, error = _train_one(training, folder / name)
    assert error is None, error
    paths.append(path)
assert paths[0].read_bytes() == paths[1].read_bytes()
"""


def test_the_first_training_of_a_process_is_on_one_thread_too(tmp_path):
    # In a process of its own, where torch is not loaded yet.
    subprocess.run([sys.executable, "-c", TRAIN_TWICE, tmp_path], check=True)
