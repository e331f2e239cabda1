"""Where a command writes: never over its input, a device, or what others write."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.io.archive import DomainArchive
from coolhead.io.calibrators import load_calibrator, save_calibrator
from coolhead.io.files import atomic_path, check_input, check_output
from coolhead.io.reading import load_archive


@pytest.fixture
def skops(tmp_path, predictions):
    method = TemperatureScaling().fit(predictions["logits"], predictions["labels"])
    save_calibrator(method, tmp_path / "cal.skops")
    return tmp_path / "cal.skops"


@pytest.fixture
def features(tmp_path, predictions):
    path = tmp_path / "features.safetensors"
    given = {name: predictions[name] for name in ("features", "labels", "domains")}
    DomainArchive(**given).save(path)
    return path


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "filled.csv"
    path.write_text("row,label\n0,1\n")
    return path


def words_of(command, npz, skops, features, out):
    filled, folder = npz.parent / "filled.csv", npz.parent
    return {
        "fit": ("fit", npz, "--method", "set-level", "--out", out),
        "apply": ("apply", skops, npz, "--out", out),
        "evaluate": ("evaluate", skops, npz, "--draws", "20", "--report", out),
        "junit": ("evaluate", skops, npz, "--fail-if", "ece > 0.99", "--junit", out),
        "export": ("export", skops, "--onnx", out),
        "label": ("label", skops, npz, "--rows", "3", "--out", out),
        "update": ("update", skops, filled, "--on", npz, "--out", out),
        "new-protocol": ("new-protocol", "--data", features, out),
        "train": ("train", features, "--source", "real", "--out", out),
        "extract": ("extract", folder, "--out", out),
        "report": ("report", folder, "--out", out),
        "results": ("results", "--pacs", npz, "--run", folder, "--out", out),
    }[command]


ENDINGS = {
    "fit": ".skops",
    "apply": ".npy",
    "evaluate": ".html",
    "junit": ".xml",
    "export": ".onnx",
    "label": ".csv",
    "update": ".skops",
    "new-protocol": ".toml",
    "train": ".safetensors",
    "extract": ".safetensors",
    "report": ".html",
    "results": ".md",
}


@pytest.mark.parametrize("command", ENDINGS)
def test_no_command_writes_over_its_input(command, run, npz, skops, features, filled):
    for given in (npz, skops, features, filled):
        words = words_of(command, npz, skops, features, given)
        if given not in words[:-1]:
            continue
        # Another name of the same file, with the ending that the command wants.
        out = npz.parent / f"other{ENDINGS[command]}"
        os.link(given, out)
        before = given.read_bytes()
        code, _, err = run(*words[:-1], out)
        assert code == 1
        assert "it is the input" in err
        assert given.read_bytes() == before
        out.unlink()


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "missing folder"])
@pytest.mark.parametrize("command", ENDINGS)
def test_special_places_are_refused_before_the_work(
    command, kind, run, npz, skops, features, filled, monkeypatch
):
    out = npz.parent / f"place{ENDINGS[command]}"
    if kind == "pipe":
        os.mkfifo(out)
    elif kind == "socket":
        monkeypatch.chdir(out.parent)
        with socket.socket(socket.AF_UNIX) as place:
            place.bind(out.name)
    elif kind == "folder":
        out.mkdir()
    else:
        if command == "results":
            return
        out = npz.parent / "nowhere" / out.name
    for name in ("io.load_calibrator", "io.reading.load_archive"):
        monkeypatch.setattr(f"coolhead.{name}", None)
    code, _, err = run(*words_of(command, npz, skops, features, out))
    assert code == 1
    assert f"cannot write {out}" in err
    assert kind in err or "does not exist" in err
    assert err.count("\n") == 1


def test_a_calibrator_is_a_skops_file(run, npz, tmp_path):
    for name in ("c.pkl", "c.joblib", "c"):
        code, _, err = run("fit", npz, "--out", tmp_path / name)
        assert code == 1
        assert "wanted .skops" in err


def test_a_folder_of_arrays_is_an_input_too(run, skops, tmp_path, predictions):
    folder = tmp_path / "arrays"
    folder.mkdir()
    np.save(folder / "logits.npy", predictions["logits"])
    out = folder / "logits.npy"
    code, _, err = run("apply", skops, folder, "--out", out)
    assert code == 1
    assert "it is the input" in err
    assert run("apply", skops, folder, "--out", folder / "new.npy")[0] == 0


@pytest.mark.parametrize("words", [("report",), ("results", "--run")])
def test_a_report_leaves_the_run_alone(run, tmp_path, words):
    (tmp_path / "run.json").write_text("{}")
    code, _, err = run(*words, tmp_path, "--out", tmp_path / "run.json")
    assert code == 1
    assert "it is the input" in err


def test_two_outputs_want_two_places(run, npz, skops, tmp_path):
    (tmp_path / "link").symlink_to("same")
    places = ("--report", tmp_path / "same", "--junit", tmp_path / "link")
    code, _, err = run("evaluate", skops, npz, "--fail-if", "ece > 0.99", *places)
    assert code == 2
    assert "--report and --junit are both" in err
    assert not (tmp_path / "same").exists()


def test_the_library_refuses_its_input_too(skops, npz):
    from coolhead.apply import apply_calibrator
    from coolhead.io.reading import open_predictions

    out = npz.with_suffix(".npy")
    os.link(npz, out)
    with pytest.raises(ValueError, match="it is the input"):
        apply_calibrator(load_calibrator(skops), open_predictions(npz), out)


def test_tables_and_sweep_want_folders(run, npz, tmp_path):
    code, _, err = run("tables", tmp_path, "--out", npz)
    assert code == 1
    assert "is a file; wanted a folder" in err
    for words in (("sweep", "digits"), ("demo",), ("results", "--out", tmp_path / "x")):
        code, _, err = run(*words, "--folder", npz / "runs")
        assert code == 1
        assert "is a file; wanted a folder" in err


def test_a_link_stays_a_link_and_its_file_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    link.symlink_to("there/target")
    for text in ("new", "newer"):
        with atomic_path(link) as temporary:
            temporary.write_text(text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


def test_a_link_to_the_input_is_the_input(tmp_path):
    (tmp_path / "data").touch()
    (tmp_path / "link").symlink_to("data")
    for out, given in (("data", "link"), ("link", "data")):
        with pytest.raises(ValueError, match="it is the input"):
            check_output(tmp_path / out, inputs=[tmp_path / given])


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises((ValueError, OSError), match="a"):
        check_output(tmp_path / "a")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_a_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "secret"
    path.touch()
    path.chmod(mode)
    if not os.access(path, os.W_OK):
        with pytest.raises(PermissionError, match="no permission to change it"):
            check_output(path)
        return
    with atomic_path(path) as temporary:
        # Not even for a moment is it open to more people than the file was.
        assert not temporary.stat().st_mode & 0o077 & ~mode
        temporary.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_follows_the_mask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "new") as temporary:
            temporary.write_text("new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


WRITE = """
import sys, time
from coolhead.io.files import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print(temporary, flush=True)
    time.sleep(60)
"""


def writer(path):
    words = [sys.executable, "-c", WRITE, str(path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "out.txt"
    dead, left = writer(path)
    living, kept = writer(path)
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    assert os.path.exists(left)
    (tmp_path / ".out.txt.notes").write_text("mine")
    with atomic_path(path) as temporary:
        temporary.write_text("whole")
    assert not os.path.exists(left)
    assert os.path.exists(kept), "a living process writes it"
    living.kill()
    living.wait()
    living.stdout.close()
    dead.stdout.close()
    assert (tmp_path / ".out.txt.notes").exists()
    assert path.read_text() == "whole"


def test_a_request_to_end_leaves_nothing_and_code_143(skops, tmp_path):
    big = np.lib.format.open_memmap(
        tmp_path / "big.npy", "w+", np.float16, (60_000_000, 4)
    )
    del big
    folder = tmp_path / "out"
    folder.mkdir()
    program = "import sys; from coolhead.cli import main; main()"
    words = ["apply", skops, tmp_path / "big.npy", "--out", folder / "p.npy"]
    process = subprocess.Popen([sys.executable, "-c", program, *map(str, words)])
    while not list(folder.iterdir()):
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    assert process.wait(60) == 143
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["x.npz", "x.skops", "x.csv"])
def test_a_pipe_as_input_is_refused_at_once(run, skops, npz, tmp_path, name):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="is a pipe"):
        check_input(pipe)
    with pytest.raises(ValueError, match="is a pipe"):
        load_calibrator(pipe) if name == "x.skops" else load_archive(pipe)
    words = ("inspect", pipe) if name == "x.skops" else ("compare", pipe)
    code, _, err = run(*words)
    assert code == 1
    assert "is a pipe" in err
