"""Broken, forged and unlucky files: one line, an exit code, nothing half-written."""

import os
import pickle
import resource
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
import skops.io

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.io.archive import DomainArchive
from coolhead.io.calibrators import save_calibrator

NAN_ROW = 12_345_678


@pytest.fixture
def folder(tmp_path):
    """Where output goes; nothing may be left in it."""
    place = tmp_path / "out"
    place.mkdir()
    return place


@pytest.fixture
def calibrator(run, npz, tmp_path):
    out = tmp_path / "cal.skops"
    assert run("fit", npz, "--method", "set-level", "--out", out)[0] == 0
    return out


def refused(run, folder, *words, because=()):
    """The command fails with one line that gives the reasons, and leaves no file."""
    code, out, err = run(*words)
    assert code == 1, err
    assert out == ""
    assert err.startswith("coolhead: ")
    assert err.count("\n") == 1
    for reason in because:
        assert reason in err
    assert not list(folder.iterdir())
    return err


class Trap:
    """A pickle that leaves a mark if it is ever read."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("name", ["x.npz", "x.npy", "x.csv", "x.parquet", "x.arrow"])
def test_zero_bytes_and_a_renamed_pickle(run, tmp_path, folder, calibrator, name):
    path, mark = tmp_path / name, tmp_path / "mark"
    path.touch()
    words = ("apply", calibrator, path, "--out", folder / "p.parquet")
    refused(run, folder, *words, because=[name, "empty"])
    path.write_bytes(pickle.dumps(Trap(mark)))
    refused(run, folder, *words, because=[name, "pickle"])
    refused(run, folder, "fit", path, "--out", folder / "c.skops", because=["pickle"])
    assert not mark.exists()


def written(kind, path, predictions):
    if kind == "npz":
        np.savez(path, **predictions)
    elif kind == "compressed":
        np.savez_compressed(path, **predictions)
    elif kind == "npy":
        np.save(path, predictions["logits"])
    elif kind == "safetensors":
        DomainArchive(predictions["logits"], labels=predictions["labels"]).save(path)
    else:
        table = pl.DataFrame(
            predictions["logits"], schema=[f"logit_{i}" for i in range(4)]
        )
        table.write_parquet(path) if kind == "parquet" else table.write_ipc(path)


@pytest.mark.parametrize(
    "kind", ["npz", "compressed", "npy", "safetensors", "parquet", "arrow"]
)
def test_truncated_files(run, tmp_path, folder, calibrator, predictions, kind):
    ending = {"compressed": "npz"}.get(kind, kind)
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"cut.{ending}"
    written(kind, whole, predictions)
    content = whole.read_bytes()
    for share in (0.02, 0.3, 0.7, 0.98):
        path.write_bytes(content[: int(len(content) * share)])
        words = ("apply", calibrator, path, "--out", folder / "p.parquet")
        refused(run, folder, *words, because=[path.name])


def test_a_damaged_byte_in_a_zip_is_noticed(run, tmp_path, folder, calibrator, npz):
    content = bytearray(npz.read_bytes())
    content[1000] ^= 0x40
    npz.write_bytes(content)
    words = ("apply", calibrator, npz, "--out", folder / "p.parquet")
    refused(run, folder, *words, because=[npz.name, "CRC"])


def test_a_skops_file_with_a_foreign_type(run, tmp_path, folder, npz):
    path = tmp_path / "foreign.skops"
    skops.io.dump(Trap(tmp_path / "mark"), path)
    for words in (
        ("apply", path, npz, "--out", folder / "p.parquet"),
        ("evaluate", path, npz),
        ("inspect", path),
        ("export", path, "--onnx", folder / "c.onnx"),
    ):
        refused(run, folder, *words, because=["test_hostile_files.Trap"])
    assert not (tmp_path / "mark").exists()


def test_object_arrays_are_not_unpickled(run, tmp_path, folder, calibrator):
    mark, path = tmp_path / "mark", tmp_path / "objects.npz"
    objects = np.array([[Trap(mark), 1.0], [2.0, 3.0]], dtype=object)
    np.savez(path, logits=objects, labels=[0, 1])
    words = ("apply", calibrator, path, "--out", folder / "p.parquet")
    refused(run, folder, *words, because=["Python objects"])
    refused(run, folder, "fit", path, "--out", folder / "c.skops", because=["objects"])
    assert not mark.exists()


def test_a_csv_with_a_missing_column(run, tmp_path, folder, calibrator, predictions):
    logits = predictions["logits"]
    table = pl.DataFrame({f"logit_{i}": logits[:, i] for i in range(4)})
    path = tmp_path / "x.csv"
    table.write_csv(path)
    words = ("fit", path, "--method", "set-level", "--out", folder / "c.skops")
    refused(run, folder, *words, because=["no labels", "label"])
    table.drop("logit_2").write_csv(path)
    words = ("apply", calibrator, path, "--out", folder / "p.parquet")
    refused(run, folder, *words, because=["logit_2 is missing"])
    table.drop("logit_3").write_csv(path)
    refused(run, folder, *words, because=["3", "4"])
    table.rename(lambda name: name.upper()).write_csv(path)
    refused(run, folder, *words, because=["logit_*", "LOGIT_0"])


def test_a_file_without_features_for_a_method_that_needs_them(
    run, tmp_path, folder, npz, predictions
):
    cal, path = tmp_path / "c.skops", tmp_path / "x.npz"
    assert run("fit", npz, "--out", cal)[0] == 0
    np.savez(path, logits=predictions["logits"])
    words = ("apply", cal, path, "--out", folder / "p.parquet")
    refused(run, folder, *words, because=["no features", "AutoCalibrator"])


@pytest.mark.parametrize(
    ("bad", "because"),
    [("0.1,two,3,4", ["x.csv", "two"]), ("0.1,,3,4", ["NaN in row 2500"])],
    ids=["text", "an empty cell"],
)
def test_a_bad_cell_far_down_is_named(run, tmp_path, folder, calibrator, bad, because):
    path = tmp_path / "x.csv"
    rows = ["0.1,2,3,4"] * 3000
    rows[2500] = bad
    path.write_text("logit_0,logit_1,logit_2,logit_3\n" + "\n".join(rows) + "\n")
    words = ("apply", calibrator, path, "--out", folder / "p.parquet")
    refused(run, folder, *words, because=because)


def test_files_without_rows(run, tmp_path, folder, calibrator):
    np.savez(tmp_path / "x.npz", logits=np.empty((0, 4)), labels=np.empty(0, int))
    np.save(tmp_path / "x.npy", np.empty((0, 4)))
    (tmp_path / "x.csv").write_text("logit_0,logit_1,logit_2,logit_3,label\n")
    empty = pl.DataFrame({f"logit_{i}": [] for i in range(4)}, schema_overrides=None)
    empty.cast(pl.Float32).write_parquet(tmp_path / "x.parquet")
    for name in ("x.npz", "x.npy", "x.csv", "x.parquet"):
        words = ("apply", calibrator, tmp_path / name, "--out", folder / "p.parquet")
        refused(run, folder, *words, because=[name, "no rows"])
    for name in ("x.npz", "x.csv"):
        words = ("fit", tmp_path / name, "--method", "set-level")
        refused(run, folder, *words, "--out", folder / "c.skops", because=[name])


@pytest.fixture
def with_nan(tmp_path):
    """A sparse file of twelve million rows; one of them holds a NaN."""
    path = tmp_path / "many.npy"
    shape = (NAN_ROW + 1000, 2)
    array = np.lib.format.open_memmap(path, "w+", np.float16, shape)
    array[NAN_ROW, 1] = np.nan
    del array
    return path


def test_nan_is_named_by_its_row_in_the_file(run, tmp_path, folder, with_nan):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "fit.npz",
        logits=rng.normal(size=(200, 2)) * 3,
        labels=rng.integers(0, 2, 200),
    )
    cal = tmp_path / "two.skops"
    words = ("--method", "set-level", "--out", cal)
    assert run("fit", tmp_path / "fit.npz", *words)[0] == 0
    words = ("apply", cal, with_nan, "--out", folder / "p.npy")
    refused(run, folder, *words, because=[with_nan.name, f"NaN in row {NAN_ROW}"])


@pytest.fixture
def without_privileges():
    """Give up the rights of an administrator, who may write everywhere."""
    if os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.fixture
def read_only(predictions):
    """A folder that can be read, not written, by anybody."""
    with TemporaryDirectory() as name:
        place = Path(name)
        np.savez(place / "preds.npz", **predictions)
        method = TemperatureScaling().fit(predictions["logits"], predictions["labels"])
        save_calibrator(method, place / "cal.skops")
        place.chmod(0o555)
        yield place
        place.chmod(0o755)


def test_a_read_only_folder(run, read_only, without_privileges):
    cal, npz = read_only / "cal.skops", read_only / "preds.npz"
    for words in (
        ("fit", npz, "--method", "set-level", "--out", read_only / "c.skops"),
        ("apply", cal, npz, "--out", read_only / "p.parquet"),
    ):
        code, _, err = run(*words)
        assert code == 1
        assert err.count("\n") == 1
        assert "no permission" in err
    assert len(list(read_only.iterdir())) == 2


def test_a_folder_that_does_not_exist(run, folder, npz, calibrator):
    words = ("apply", calibrator, npz, "--out", folder / "sub" / "p.parquet")
    refused(run, folder, *words, because=["does not exist"])


@contextmanager
def largest_file(n_bytes):
    """A limit on file size fails like a full disk: in the middle of a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["p.parquet", "p.arrow", "p.csv", "p.npy", "c.skops"])
def test_a_full_disk(run, npz, calibrator, folder, name):
    words = ("apply", calibrator, npz, "--out", folder / name)
    if name == "c.skops":
        words = ("fit", npz, "--method", "set-level", "--out", folder / name)
    with largest_file(500):
        refused(run, folder, *words, because=[name, "File too large"])
