"""Every key documented, and a file for the user's own archive that runs as written."""

import importlib
from pathlib import Path

import pytest
from small_world import DOMAINS, make_archive

from command_line import run  # noqa: F401
from coolhead.lab.protocol_files import load_protocol

ROOT = Path(__file__).parents[2]


@pytest.fixture
def write_protocol(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("write_protocol")


def test_the_page_is_fresh(write_protocol):
    assert write_protocol.PAGE.read_text() == write_protocol.page()


def test_every_key_says_what_it_means(write_protocol):
    for table in write_protocol.protocol_tables():
        for key in table.keys:
            described = (
                key.meaning or key.name == "kind" or "classifiers" in table.heading
            )
            assert described, (table.heading, key.name)
        assert table.meaning, table.heading


def test_a_protocol_for_an_archive_with_features(tmp_path, run, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    make_archive(logits=None).save(tmp_path / "mine.safetensors")
    code, out, said = run("new-protocol", "mine.toml", "--data", "mine.safetensors")
    assert code == 0 and "coolhead sweep mine.toml" in out, said
    protocol = load_protocol("mine.toml")
    assert protocol.roles.domains == DOMAINS and protocol.roles.calibration == 2
    assert protocol.data.kind == "archive" and "linear" in protocol.classifiers
    short = ("--set", "evaluation.draws=20", "--set", "evaluation.bootstrap=20")
    code, _, said = run("sweep", "mine.toml", "--jobs", "1", *short)
    assert code == 0, said


def test_a_protocol_for_logits_and_refusals(tmp_path, run):  # noqa: F811
    path, out = tmp_path / "mine.safetensors", tmp_path / "mine.toml"
    make_archive(features=None).save(path)
    assert run("new-protocol", out, "--data", path)[0] == 0
    protocol = load_protocol(out)
    assert protocol.data.pattern.endswith("mine-{source}.safetensors")
    make_archive().select("north", "east").save(path)
    code, _, said = run("new-protocol", out, "--data", path)
    assert code == 1 and "wanted three or more" in said
    make_archive(labels=None).save(path)
    code, _, said = run("new-protocol", out, "--data", path)
    assert code == 1 and "has no labels" in said
