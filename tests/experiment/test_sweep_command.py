"""The commands of an experiment: refusals before any work, and a clean end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_world import make_archive, protocol_content, write_toml

import coolhead.lab.heads
from coolhead.lab.commands.experiments import with_archives
from coolhead.lab.protocol_files import load_protocol


def test_other_data_never_drops_the_training_archive(tmp_path, command):
    data = tmp_path / "test.safetensors"
    make_archive(logits=None).save(data)
    code, _, err = command("sweep", "domainnet", "--data", data, "--folder", tmp_path)
    assert code == 1
    assert f"--data is {data}" in err and "--train-data FILE" in err
    assert not (tmp_path / "domainnet").exists()


def test_other_data_and_training_data_replace_both():
    net = load_protocol("domainnet")
    changed = with_archives(net, Path("a"), Path("b")).data
    assert (changed.path, changed.train_path) == (Path("a"), Path("b"))
    kept = with_archives(net, None, Path("b")).data
    assert (kept.path, kept.train_path) == (net.data.path, Path("b"))
    plain = with_archives(load_protocol("sentiment"), Path("a"), None).data
    assert (plain.path, plain.train_path) == (Path("a"), None)
    with pytest.raises(ValueError, match="give --data FILE too"):
        with_archives(load_protocol("sentiment"), None, Path("b"))


@pytest.mark.parametrize("finetune", [False, True])
def test_a_missing_folder_is_refused_before_training(
    tmp_path, command, monkeypatch, finetune
):
    import coolhead.lab.images.finetuning as finetuned

    def worked(*_, **__):
        raise AssertionError("trained before it looked where to write")

    monkeypatch.setattr(finetuned, "finetune_and_extract", worked)
    monkeypatch.setattr(coolhead.lab.heads, "train_head", worked)
    data, out = tmp_path / "in.safetensors", tmp_path / "missing" / "x.safetensors"
    make_archive(logits=None).save(data)
    words = ["train", data, "--source", "north", "--out", out]
    code, _, err = command(*words, *(["--finetune"] if finetune else []))
    assert code == 1 and f"the folder {out.parent} does not exist" in err


def members(group):
    """Processes of a process group that are not dead."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own = path.read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue
        if int(own) == group and state != "Z":
            found.append(path.parent.name)
    return found


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
def test_workers_end_with_the_sweep(world, tmp_path, number, code):
    content = protocol_content(world, evaluation={"draws": 20_000, "bootstrap": 20_000})
    toml = write_toml(tmp_path / "small.toml", content)
    # Tests that were started by nohup hand down that SIGHUP is ignored.
    heard = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    program = heard + "from coolhead.cli import main; main()"
    words = ["sweep", str(toml), "--jobs", "2", "--folder", str(tmp_path / "runs")]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 120
        # The command itself, the tracker of its workers, and two workers.
        while len(members(process.pid)) < 4:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, number)
        process.wait(60)
        assert process.returncode == code
        deadline = time.monotonic() + 20
        while members(process.pid):
            assert time.monotonic() < deadline, "workers outlive the sweep"
            time.sleep(0.1)
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        _, err = process.communicate()
    if code > 0:
        assert b"coolhead: terminated" in err and b"Traceback" not in err
        assert not list((tmp_path / "runs").rglob(".*"))


def test_a_worker_that_dies_is_told(world, tmp_path):
    toml = write_toml(
        tmp_path / "small.toml", protocol_content(world, evaluation={"draws": 20_000})
    )
    words = ["sweep", str(toml), "--jobs", "2", "--folder", str(tmp_path / "runs")]
    process = subprocess.Popen(
        [sys.executable, "-c", "from coolhead.cli import main; main()", *words],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline, cells = time.monotonic() + 120, tmp_path / "runs" / "small" / "cells"
        while not list(cells.glob("*.json")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        workers = [
            pid
            for pid in members(process.pid)
            if b"LokyProcess" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        os.kill(int(workers[0]), signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1
    assert "coolhead: a worker process died" in err and "Traceback" not in err
    assert list(cells.glob("*.json")), "finished cells are kept"
