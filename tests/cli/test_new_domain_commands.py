"""expect, label, update: from a file without labels to a calibrator for it."""

import csv
import json

import numpy as np
import pytest

import coolhead as ch
from coolhead.new_domain import learn_evidence


@pytest.fixture
def files(tmp_path, predictions):
    """A calibrator with evidence of two domains, and a third one without labels."""
    away = predictions["domains"] == "real"
    inside = {name: values[~away] for name, values in predictions.items()}
    named = {"features": inside["features"], "sample_domain": inside["domains"]}
    cal = ch.AutoCalibrator().fit(inside["logits"], inside["labels"], **named)
    cal.evidence_ = learn_evidence(cal, inside["logits"], inside["labels"], **named)
    names = [f"class {number}" for number in range(4)]
    ch.save_calibrator(cal, tmp_path / "cal.skops", metadata={"class_names": names})
    new = {name: predictions[name][away] for name in ("logits", "features")}
    np.savez(tmp_path / "new.npz", **new)
    return tmp_path, predictions["labels"][away], names


def test_from_expectation_to_a_moved_calibrator(files, run):
    folder, truth, names = files
    cal, new = folder / "cal.skops", folder / "new.npz"
    code, out, err = run("expect", cal, new)
    assert code == 0, err
    assert out.startswith("expected accuracy ") or "lie outside" in out
    code, out, err = run("expect", cal, new, "--json")
    told = json.loads(out)
    assert told["accuracy"]["low"] < told["accuracy"]["estimate"]
    assert set(told["evidence"]) == {"left_out", "surer", "agreement"}

    asked = folder / "to_label.csv"
    code, _, err = run("label", cal, new, "--rows", 20, "--out", asked)
    assert code == 0, err
    with asked.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 20
    with asked.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "label"])
        for place, line in enumerate(lines[:19]):
            label = truth[int(line["row"])]
            # By name or by number, as people do.
            writer.writerow([line["row"], names[label] if place % 2 else label])
        writer.writerow([lines[19]["row"], ""])

    there = folder / "there.skops"
    code, out, err = run("update", cal, asked, "--on", new, "--out", there, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["n_labels"] == 19
    moved = ch.load_calibrator(there)
    assert moved.offset == told["offset"] != 0
    code, out, err = run("apply", there, new, "--out", folder / "out.npy")
    assert code == 0, err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("row,label\n1,\n", "has no label yet"),
        ("a,b\n1,2\n", "wanted row and label"),
        ("row,label\n1,cat\n", "wanted a row number and a class name or number"),
        ("row,label\n1,0\n1,2\n", "contradict each other"),
        ("row,label\n5000,0\n", "was not asked for"),
    ],
)
def test_update_refuses_bad_files(files, run, content, message):
    folder = files[0]
    (folder / "bad.csv").write_text(content)
    code, _, err = run(
        "update",
        folder / "cal.skops",
        folder / "bad.csv",
        "--on",
        folder / "new.npz",
        "--out",
        folder / "there.skops",
    )
    assert code == 1
    assert message in err
    assert not (folder / "there.skops").exists()
