"""--fail-if: exit codes, JSON and JUnit for a gate in continuous integration."""

import json
from xml.etree import ElementTree

import pytest


@pytest.fixture
def cal(npz, run, tmp_path):
    path = tmp_path / "cal.skops"
    assert run("fit", npz, "--method", "set-level", "--out", path)[0] == 0
    return path


def test_a_gate_that_holds_and_one_that_does_not(cal, npz, run, tmp_path):
    plain = ("evaluate", cal, npz, "--draws", 10)
    junit = tmp_path / "gate.xml"
    held = ("--fail-if", "ece > 0.9", "--fail-if", "accuracy<0.01")
    code, out, said = run(*plain, *held, "--json", "--junit", junit)
    assert (code, said) == (0, "") and json.loads(out)["failed"] == []
    suite = ElementTree.parse(junit).getroot()
    # Three domains and all together, two conditions each.
    assert (suite.get("tests"), suite.get("failures")) == ("8", "0")

    code, out, said = run(*plain, "--fail-if", "ece.high > 0", "--junit", junit)
    assert code == 1 and "failed in clipart: ece.high > 0" in said
    assert "ECE before" in out  # the table is there all the same
    suite = ElementTree.parse(junit).getroot()
    assert suite.get("failures") == "4"
    assert suite[0].get("classname") == "clipart" and len(suite[0]) == 1


def test_the_values_are_those_of_the_table(cal, npz, run):
    code, out, _ = run("evaluate", cal, npz, "--json", "--fail-if", "ece >= 0")
    told = json.loads(out)
    assert code == 1
    assert [v["value"] for v in told["failed"]] == [
        line["ece_after"]["estimate"] for line in told["domains"]
    ]


@pytest.mark.parametrize(
    "condition, said",
    [
        ("ece", "is no condition"),
        ("ece > much", "is no condition"),
        ("ece > nan", "is no condition"),
        ("ece > inf", "is no condition"),
        ("eec > 0.1", "did you mean 'ece'"),
        ("nll.high > 1", "has no interval"),
    ],
)
def test_conditions_that_say_nothing(run, npz, condition, said):
    # The calibrator is not even read.
    code, _, told = run("evaluate", npz, npz, "--fail-if", condition)
    assert code == 2 and said in told


def test_junit_alone_says_nothing(run, npz, tmp_path):
    assert run("evaluate", npz, npz, "--junit", tmp_path / "x.xml")[0] == 2
