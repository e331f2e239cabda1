"""Killed, interrupted, run twice at once: the same bits in the end, nothing in halves.

The ordinary suite tries a few moments of each command, `make test-long` thirty.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from coolhead.lab.record import read_run_record
from faults.commands import (
    hidden,
    kill_at_random,
    make_commands,
    python_path,
    timed,
)

NAMES = ("fit", "apply", "extract", "train", "sweep", "report")
each = pytest.mark.parametrize("name", NAMES)
long = pytest.mark.long


@pytest.fixture(scope="session")
def commands(tmp_path_factory):
    return make_commands(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="session")
def whole(commands, tmp_path_factory):
    """What each command writes when nothing happens, and how long it takes."""
    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = timed(lambda: commands[name].finish(folder))
        return made[name]

    return get


@each
@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=long)])
def test_killed_and_started_again(commands, whole, noted, tmp_path, name, kills):
    command, (wanted, seconds) = commands[name], whole(name)
    draw, killed = random.Random(f"{name} {kills}"), 0
    while killed < kills:
        folder, before = tmp_path / str(killed), killed
        folder.mkdir()
        for _ in range(min(5, kills)):
            killed += kill_at_random(command, folder, seconds, draw)
            # A long sweep writes tables of what is done already, too.
            found = {} if name == "sweep" else command.contents(folder)
            for file, content in found.items():
                assert content == wanted[file], "half-written, or of other bits"
        assert command.finish(folder) == wanted
        assert not hidden(folder)
        shutil.rmtree(folder)
        noted("kill -9 at random moments, then again", name, killed - before)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
@pytest.mark.parametrize(
    "name",
    [
        name if name in ("fit", "train") else pytest.param(name, marks=long)
        for name in NAMES
    ],
)
def test_asked_to_end(commands, whole, noted, tmp_path, name, number, code):
    command, (wanted, seconds) = commands[name], whole(name)
    draw, ended = random.Random(name), 0
    while ended < 2:
        process = command.start(tmp_path)
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.uniform(0.05, 0.6 * seconds))
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
        if process.returncode == 0:
            # The work was done, and nothing may be missing. Sooner, next time.
            assert command.contents(tmp_path) == wanted, errors
            assert not hidden(tmp_path)
            assert "Traceback" not in errors
            seconds *= 0.7
            assert seconds > 0.05, errors
            continue
        assert process.returncode == code, errors
        assert "Traceback" not in errors
        assert not hidden(tmp_path)
        ended += 1
    assert command.finish(tmp_path) == wanted
    noted(f"{signal.Signals(number).name}: exit code {code}", name, ended)


@pytest.mark.parametrize("name", ["sweep", pytest.param("extract", marks=long)])
def test_two_at_once_in_one_place(commands, whole, noted, tmp_path, name):
    command, (wanted, _) = commands[name], whole(name)
    both = [command.start(tmp_path) for _ in range(2)]
    errors = [process.communicate(timeout=300)[1] for process in both]
    codes = [process.returncode for process in both]
    assert 0 in codes, errors
    for code, text in zip(codes, errors, strict=True):
        assert code == 0 or ("is in use by process" in text and "Trace" not in text)
    assert command.contents(tmp_path) == wanted
    assert not hidden(tmp_path)
    noted("two processes in one folder", name, 2)


ODD = {
    "LC_ALL=C": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"},
    "no HOME": {"HOME": None, "XDG_CACHE_HOME": None, "USER": None},
    "a HOME that cannot be written": {"HOME": "/proc"},
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "name",
    [n if n in ("fit", "report") else pytest.param(n, marks=long) for n in NAMES],
)
def test_odd_environments(commands, whole, noted, tmp_path, name, odd):
    command, (wanted, _) = commands[name], whole(name)
    kept = os.environ | {"PYTHONPATH": python_path()} | ODD[odd]
    environment = {key: value for key, value in kept.items() if value is not None}
    assert command.finish(tmp_path, env=environment) == wanted
    noted(odd, name, 1)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte; where mounting is not allowed, none."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize(
    "name",
    [n if n in ("apply", "report") else pytest.param(n, marks=long) for n in NAMES],
)
def test_a_disk_that_is_full(commands, noted, small_disk, name):
    if small_disk is None:
        return  # limits on file size are tried in test_hostile_files.py
    command = commands[name]
    # Almost nothing is left: a calibrator is but a few kilobytes.
    with open(small_disk / "ballast", "wb") as stream:
        stream.write(bytes(2**16 - 2**12))
    before = sorted(small_disk.iterdir())
    process = command.start(small_disk, cwd="/")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1, errors
    assert "Traceback" not in errors and "No space left" in errors
    assert not command.contents(small_disk) and not hidden(small_disk)
    if not command.keeps:
        assert sorted(small_disk.iterdir()) == before
    noted("full disk (tmpfs)", name, 1)


@pytest.mark.parametrize(
    "name", [n if n in ("fit", "train") else pytest.param(n, marks=long) for n in NAMES]
)
def test_a_read_only_file_system(commands, noted, tmp_path, name):
    place = tmp_path / "read-only"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        return  # permissions are tried in test_hostile_files.py
    try:
        process = commands[name].start(place, cwd="/")
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 1, errors
        assert "Traceback" not in errors and errors.strip().count("\n") == 0
        noted("read-only file system", name, 1)
    finally:
        subprocess.run(["umount", str(place)], check=True)


# Every question is answered with another year, most of them before the last.
JUMPING = """
import itertools, time
real, years = time.time, itertools.cycle([0, -3, 2, -20, 1])
time.time = lambda: real() + next(years) * 3.15e7
"""


@pytest.mark.parametrize(
    "name",
    [n if n == "sweep" else pytest.param(n, marks=long) for n in NAMES],
)
def test_a_clock_that_jumps(commands, whole, noted, tmp_path, name):
    command, (wanted, _) = commands[name], whole(name)
    odd = replace(command, before=JUMPING + command.before)
    assert odd.finish(tmp_path) == wanted
    if name == "sweep":
        assert read_run_record(tmp_path / "runs" / "small")["seconds_of_last_run"] >= 0
    noted("a clock that jumps, mostly backwards", name, 1)


# A thread that is still at work when the command is done keeps Python waiting.
LATE = """
import threading, time
from coolhead.cli import program
threading.Thread(target=lambda: (print("ready", flush=True), time.sleep(30))).start()
program()
"""


def test_interrupted_after_the_end():
    words = [sys.executable, "-c", LATE, "--version"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # The version is printed last of all.
    assert sorted([process.stdout.readline(), process.stdout.readline()])[1] == (
        "ready\n"
    )
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ""
