"""What the demo prints: the default beside the simplest alternative, and the harm."""

import re

import pytest
from small_world import DOMAINS, make_archive, protocol_content

import coolhead.lab.commands.demo as demo
from coolhead.lab.protocol import Protocol
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.results import load_scores
from coolhead.lab.sweep import run_sweep

NAMES = list(dict.fromkeys([*demo.ROWS, *demo.EXPECTED]))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    for number, name in enumerate(DOMAINS):
        path = folder / f"source={name}.safetensors"
        make_archive(n_rows=500, random_state=number).save(path)
    content = protocol_content(folder)
    content["methods"] = {"names": NAMES, "clusters": 3, "sensitivity": []}
    content["evaluation"]["size"] = 200
    return run_sweep(Protocol.model_validate(content), folder, jobs=1).run


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 100])
def test_the_demo_shows_seven_rows_that_fit(run, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    (scores,) = load_scores(run).values()
    demo.print_errors(scores)
    demo.print_expected_accuracy(run)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(len(line) <= width for line in shown.splitlines())
    for label in demo.ROWS.values():
        line = next(line for line in shown.splitlines() if line.startswith(label))
        assert re.search(r"[\d.]+ \[[\d.]+, [\d.]+\] +[\d.]+ +\d+$", line)
    prose = " ".join(shown.split())
    assert "Auto, the default, takes the mean ECE from" in prose
    assert "simplest alternative, one temperature for all calibration domains" in prose
    assert "20 labels change the accuracy from" in prose
    # All splits and draws, not one of them: 12 splits, 3 draws of labels.
    for n_labels, n in ((0, 12), (20, 36), (100, 36)):
        assert re.search(rf"^{n_labels} +[\d.]+ +\d+ of {n} +[\d.]+$", shown, re.M)


def test_the_bundled_protocol_has_every_method_of_the_demo():
    assert set(NAMES) <= set(load_protocol(demo.PROTOCOL).methods.names)
