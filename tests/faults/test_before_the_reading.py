"""Refusals before the rows of a file are read, and names in tables made from it."""

import numpy as np
import polars as pl
import pytest

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.io.calibrators import save_calibrator
from coolhead.io.reading import load_archive


@pytest.fixture
def calibrator(tmp_path, predictions):
    path = tmp_path / "c.skops"
    method = TemperatureScaling().fit(predictions["logits"], predictions["labels"])
    save_calibrator(method, path)
    return path


def test_missing_labels_and_other_classes(
    run, tmp_path, predictions, calibrator, monkeypatch
):
    path = tmp_path / "x.npz"
    np.savez(path, logits=np.zeros((6, 9)))

    def read(*_):
        raise AssertionError("the rows are read")

    monkeypatch.setattr("coolhead.io.arrays.native", read)
    code, _, err = run("fit", path, "--out", tmp_path / "new.skops")
    assert code == 1 and "x.npz has no labels" in err
    for words in (("apply", "--out", tmp_path / "o.npy"), ("evaluate",), ("expect",)):
        code, _, err = run(words[0], calibrator, path, *words[1:])
        assert code == 1 and "x.npz has scores of 9 classes; wanted 4" in err


def test_rows_that_no_machine_holds(tmp_path, predictions, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", **predictions)
    assert len(load_archive(tmp_path / "x.npz")) == 300
    monkeypatch.setattr("coolhead.io.reading.machine_memory", lambda: 5000)
    with pytest.raises(ValueError, match=r"x\.npz unpacks to .* GB, of 5e-06 GB"):
        load_archive(tmp_path / "x.npz")
    # What is mapped takes no memory.
    np.save(tmp_path / "x.npy", predictions["logits"])
    assert len(load_archive(tmp_path / "x.npy")) == 300


def test_features_of_another_width_are_named(run, tmp_path, predictions, npz):
    path, wide = tmp_path / "f.skops", tmp_path / "wide.npz"
    assert run("fit", npz, "--method", "set-level", "--out", path)[0] == 0
    twice = np.hstack([predictions["features"]] * 2)
    np.savez(wide, **predictions | {"features": twice})
    code, _, err = run("expect", path, wide)
    assert code == 1
    assert "12 columns" in err and "6" in err and "matmul" not in err


def test_formulas_reach_no_spreadsheet(run, tmp_path, predictions, calibrator):
    names = ["=HYPERLINK(1)", "@x", "-1"]
    domains = np.array(names)[np.arange(300) % 3]
    table = {f"logit_{i}": predictions["logits"][:, i] for i in range(4)}
    kept = np.where(np.arange(300) % 2, "+cmd|calc", "+1.5e3")
    path = tmp_path / "x.parquet"
    frame = pl.DataFrame(table | {"domain": domains, "=note": kept})
    frame = frame.with_columns(
        category=pl.lit("=1+1").cast(pl.Categorical),
        choice=pl.lit("@x").cast(pl.Enum(["@x"])),
    )
    frame.write_parquet(path)
    for name in ("o.csv", "o.parquet"):
        words = ("apply", calibrator, path, "--keep", "=note,category,choice", "--out")
        assert run(*words, tmp_path / name)[0] == 0
    found = pl.read_csv(tmp_path / "o.csv")
    # A number stays what it is: -1 is the name of a class in many data sets.
    assert set(found["domain"]) == {"'=HYPERLINK(1)", "'@x", "-1"}
    assert set(found["'=note"]) == {"'+cmd|calc", "+1.5e3"}
    assert set(found["category"]) == {"'=1+1"} and set(found["choice"]) == {"'@x"}
    exact = pl.read_parquet(tmp_path / "o.parquet")
    assert exact["domain"].to_list() == domains.tolist() and "=note" in exact.columns
