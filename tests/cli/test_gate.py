"""--fail-if: exit codes, JSON and JUnit for a gate in continuous integration."""

import json
from xml.etree import ElementTree

import pytest
import typer

from coolhead.cli.evaluate import SCORES, read_condition


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
    answer = json.loads(out)
    assert code == 1
    assert [v["value"] for v in answer["failed"]] == [
        line["ece_after"]["estimate"] for line in answer["domains"]
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
    code, _, answer = run("evaluate", npz, npz, "--fail-if", condition)
    assert code == 2 and said in answer


def test_junit_alone_says_nothing(run, npz, tmp_path):
    assert run("evaluate", npz, npz, "--junit", tmp_path / "x.xml")[0] == 2


SHARES = {"ece": 0, "ece_before": 0, "ece_change": -1, "accuracy": 0, "confidence": 0}
SHARES |= {"classwise": 0, "class_ece": 0}
LOSSES = ("nll", "nll_before")
ENDS = ("ece.low", "ece.high", "ece_before.high", "ece_change.low")
ONE_UNIT = [
    (f"{name} {sign} {limit}", float(limit))
    for name, lowest in {**SHARES, "ece.high": 0, "ece_change.low": -1}.items()
    for sign in (">", "<", ">=", "<=")
    for limit in ("0.05", "5e-2", "0.5", *(["-0.05", "-1e-3"] if lowest else []))
]
ONE_UNIT += [
    (f"{name} {sign} {limit}", float(limit))
    for name in LOSSES
    for sign in (">", "<", ">=", "<=")
    for limit in ("0.7", "1e3", "5", "1e-3")
]
PER_CENT = [
    (f"{name} > {limit}", share)
    for name in (*SHARES, *ENDS)
    for limit, share in (("5%", 0.05), ("5 %", 0.05), ("0.1\t%", 0.001), ("1e1%", 0.1))
]
PER_CENT += [("ece_change<-5%", -0.05), ("accuracy<80%", 0.8), ("ece >= 100%", 1.0)]


def test_every_score_is_tried():
    assert set(SCORES) == {*SHARES, *LOSSES}


@pytest.mark.parametrize(("text", "limit"), [*ONE_UNIT, *PER_CENT])
def test_limits_in_their_unit(text, limit):
    assert read_condition(text).limit == pytest.approx(limit, rel=1e-12)


OUT_OF_RANGE = [
    (f"{name} {sign} {limit}", "a share from")
    for name in (*SHARES, *ENDS)
    for sign in (">", "<", ">=", "<=")
    for limit in ("5", "1e3", "-5", "1.0001", "101%", "-101 %")
]
OUT_OF_RANGE += [
    (f"{name} {sign} {limit}", "nats per row")
    for name in LOSSES
    for sign in (">", "<", ">=", "<=")
    for limit in ("-1", "-1e-9", "5%", "5 %")
]
NEVER = [(f"{name} > 1", f"{name} is never > 1") for name in SHARES]
NEVER += [(f"{name} > 100%", f"{name} is never > 1") for name in SHARES]
NEVER += [(f"{name} < {low}", "is never <") for name, low in SHARES.items()]
NEVER += [(f"{name} < 0", "is never < 0") for name in LOSSES]
NO_NUMBER = [
    (f"{name} > {limit}", "is no condition")
    for name in SCORES
    for limit in ("nan", "inf", "-inf", "nan%", "inf %", "%", "5%%", "5% %", "1e999")
]


@pytest.mark.parametrize(("text", "reason"), [*OUT_OF_RANGE, *NEVER, *NO_NUMBER])
def test_limits_that_decide_nothing(text, reason):
    with pytest.raises(typer.BadParameter, match=reason):
        read_condition(text)


def test_per_cent_fails_like_the_share(cal, npz, run):
    words = ("evaluate", cal, npz, "--draws", 10, "--json", "--fail-if")
    code, out, _ = run(*words, "ece > 1%")
    assert code == 1
    wanted = json.loads(run(*words, "ece > 0.01")[1])["failed"]
    found = json.loads(out)["failed"]
    assert [v["value"] for v in found] == [v["value"] for v in wanted]
    code, _, said = run(*words, "ece > 5")
    assert code == 2
    assert "the limit of ece is 5; wanted a share from 0 to 1, as in 0.05 or 5%" in said


def test_the_error_of_one_class_with_other_bins(cal, npz, run):
    words = ("evaluate", cal, npz, "--draws", 10, "--json")
    lines = json.loads(run(*words, "--bins", 5, "--class", "2")[1])["domains"]
    for line in lines:
        assert line["n_bins"] == 5
        assert 0 < line["class_after"] < line["class_before"] + 1
    gate = ("--class", "2", "--fail-if", "class_ece >= 0")
    code, out, _ = run(*words, *gate)
    assert code == 1 and len(json.loads(out)["failed"]) == len(lines)
    assert run(*words, "--fail-if", "classwise > 100%")[0] == 2
    code, _, said = run(*words, "--fail-if", "class_ece > 0.1")
    assert code == 2 and "--class NAME" in said
    shown = run("evaluate", cal, npz, "--draws", 10, "--class", "2")[1]
    assert "class-wise" in shown and "the class" in shown


def test_a_comparison_tells_the_class_wise_error(npz, run):
    words = ("compare", npz, "--methods", "set-level", "--draws", 10)
    scores = json.loads(run(*words, "--json", "--class", "0")[1])["scores"]
    assert all(0 < score["classwise"] < 1 > score["class_ece"] for score in scores)
    assert "class-wise" in run(*words)[1]
