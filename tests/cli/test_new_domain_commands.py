"""expect, label, update: from a file without labels to a calibrator for it."""

import csv
import json

import numpy as np
import polars as pl
import pytest

import coolhead as ch
from coolhead.io.archive import DomainArchive
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
    answer = json.loads(out)
    assert answer["accuracy"]["low"] < answer["accuracy"]["estimate"]
    assert set(answer["estimates"]) == {"left_out", "atc", "agreement", "cot"}

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
    answer = json.loads(out)
    assert answer["n_labels"] == 19
    moved = ch.load_calibrator(there)
    assert moved.offset == answer["offset"] != 0
    code, out, err = run("apply", there, new, "--out", folder / "out.npy")
    assert code == 0, err


def test_the_domain_it_was_moved_to_is_no_news(run, npz, predictions, tmp_path):
    cal, there, asked = (tmp_path / n for n in ("c.skops", "there.skops", "l.csv"))
    new, out = tmp_path / "new.npz", tmp_path / "out.npy"
    arrays = {
        "logits": 4 * predictions["logits"],
        "features": predictions["features"] + 20,
    }
    np.savez(new, **arrays)
    assert run("fit", npz, "--calibrate-on", "clipart,product", "--out", cal)[0] == 0
    rows = np.arange(0, 300, 3)
    lines = [f"{row},{predictions['labels'][row]}" for row in rows]
    asked.write_text("\n".join(["row,label", *lines]))
    code, answer, err = run("update", cal, asked, "--on", new, "--out", there)
    assert code == 0, err
    # The expectation before the labels is shown as such.
    assert "300 rows and no labels" in answer and "300 rows and 100 labels" in answer

    def alarm(calibrator, **change):
        np.savez(new, **arrays | change)
        code, answer, err = run("apply", calibrator, new, "--out", out, "--json")
        assert code == 0, err
        return json.loads(answer)["alarm"]

    assert alarm(cal) is True, "what it was fitted on looked otherwise"
    assert alarm(there) is False
    assert alarm(there, features=100 * arrays["features"]) is True
    assert alarm(there, logits=5 * arrays["logits"]) is True
    code, answer, err = run("inspect", there, "--json")
    inside = json.loads(answer)["calibrator"]["members"]
    assert [part["class"] for part in inside] == ["AutoCalibrator"]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "safetensors"])
def test_every_kind_of_file_gives_the_same_answer(files, run, ending):
    folder = files[0]
    new = dict(np.load(folder / "new.npz"))
    path = folder / f"new.{ending}"
    if ending == "safetensors":
        DomainArchive(**new).save(path)
    else:
        columns = {
            f"{name[:-1]}_{number}": column
            for name, array in new.items()
            for number, column in enumerate(array.T)
        }
        table = pl.DataFrame(columns)
        getattr(table, f"write_{'ipc' if ending == 'arrow' else ending}")(path)
    answer = []
    for file in (folder / "new.npz", path):
        code, out, err = run("expect", folder / "cal.skops", file, "--json")
        assert code == 0, err
        answer.append(json.loads(out))
    for found in answer:
        assert found["drawn_from"] is None
    assert answer[0]["accuracy"] == pytest.approx(answer[1]["accuracy"], rel=1e-5)


def test_a_long_file_is_told_from_a_sample_whose_rows_keep_their_numbers(
    files, run, monkeypatch
):
    folder, truth, _ = files
    cal, new = folder / "cal.skops", folder / "new.npz"
    whole = json.loads(run("expect", cal, new, "--json")[1])
    monkeypatch.setattr("coolhead.io.reading.MOST_ROWS", 60)
    code, out, err = run("expect", cal, new, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["n_rows"], found["drawn_from"]) == (60, whole["n_rows"])
    assert f"from 60 rows out of {whole['n_rows']}" in run("expect", cal, new)[1]
    asked, there = folder / "to_label.csv", folder / "there.skops"
    assert run("label", cal, new, "--rows", 10, "--out", asked)[0] == 0
    lines = asked.read_text().splitlines()[1:]
    rows = [int(line.partition(",")[0]) for line in lines]
    assert max(rows) > 60
    # One row that was not asked for and that is not in the sample.
    rows.append(next(row for row in range(len(truth)) if row not in rows))
    lines = [f"{row},{truth[row]}" for row in rows]
    asked.write_text("\n".join(["row,label", *lines]))
    code, out, err = run("update", cal, asked, "--on", new, "--out", there, "--json")
    assert code == 0, err
    assert json.loads(out)["n_labels"] == 11


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("row,label\n1,\n", "has no label yet"),
        ("a,b\n1,2\n", "wanted row and label"),
        ("row,label\n1,cat\n", "bad.csv: labels holds 'cat' in row 1"),
        ("row,label\n1,0\n1,2\n", "contradict each other"),
        ("row,label\n5000,0\n", "is no row of this batch"),
        ("row,label\n1,nan\n", "bad.csv: labels holds 'nan' in row 1"),
        ("row,label\n1,99\n", "bad.csv: labels holds '99' in row 1"),
        (f"row,label\n1,{'9' * 500}\n", "bad.csv: labels holds '999"),
    ],
)
def test_update_refuses_bad_files(files, run, content, message):
    folder = files[0]
    (folder / "bad.csv").write_text(content)
    before = (folder / "cal.skops").read_bytes()
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
    assert (folder / "cal.skops").read_bytes() == before


@pytest.mark.parametrize("command", ["expect", "label", "update"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda new: {name: part[:0] for name, part in new.items()}, "has no rows"),
        (lambda new: new | {"logits": new["logits"] * np.nan}, "NaN in row 0"),
        (lambda new: new | {"features": new["features"] * np.nan}, "NaN in row 0"),
        (lambda new: {"logits": new["logits"]}, "has no features"),
        (lambda new: new | {"features": new["features"][:, :2]}, "2 features per row"),
    ],
)
def test_bad_rows_are_refused_by_every_command(files, run, command, change, message):
    folder = files[0]
    cal, bad, out = (folder / name for name in ("cal.skops", "bad.npz", "out.csv"))
    np.savez(bad, **change(dict(np.load(folder / "new.npz"))))
    (folder / "known.csv").write_text("row,label\n1,0\n")
    words = {
        "expect": ("expect", cal, bad),
        "label": ("label", cal, bad, "--rows", 5, "--out", out),
        "update": (
            *("update", cal, folder / "known.csv", "--on", bad),
            *("--out", folder / "there.skops"),
        ),
    }
    code, shown, err = run(*words[command])
    assert (code, shown) == (1, "")
    assert message in err and err.count("\n") == 1
    assert not out.exists() and not (folder / "there.skops").exists()
