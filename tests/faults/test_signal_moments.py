"""`coolhead apply`, asked to end at many moments from its first line to its last."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import coolhead as ch
from command_line import simulate_predictions
from faults.commands import Command, files, hidden

SCRIPT = "import sys; from coolhead.cli import program; sys.exit(program())"
STARTS = (("-m", "coolhead"), ("-c", SCRIPT))
NUMBERS = (signal.SIGTERM, signal.SIGINT)
# Seconds after the handlers are set, shares of a whole run, and seconds after the
# result has its name, when little but the end of Python is left.
EARLY = (0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
SHARES = (0.2, 0.4, 0.55, 0.7, 0.8, 0.9)
LATE = (0, 0.005, 0.03)


@pytest.fixture(scope="module")
def apply(tmp_path_factory):
    """The command, what it writes, and its seconds once its handlers are set."""
    folder = tmp_path_factory.mktemp("inputs")
    # skops imports torch where there is one, which would be most of a run.
    (folder / "torch.py").write_text("raise ImportError")
    rows = simulate_predictions(150_000)
    np.savez(folder / "p.npz", **rows)
    fitted = ch.TemperatureScaling().fit(rows["logits"][:900], rows["labels"][:900])
    ch.save_calibrator(fitted, folder / "c.skops")
    words = ("apply", f"{folder}/c.skops", f"{folder}/p.npz")
    command = Command((*words, "--out", "{folder}/p.parquet"), files("p.parquet"))
    process, began = start(command, STARTS[0], folder), time.monotonic()
    process.communicate(timeout=120)
    return command, command.contents(folder), time.monotonic() - began


def start(command, words, folder):
    """Begin, and wait until the process itself handles SIGTERM."""
    own = [word.format(folder=folder) for word in command.words]
    without_torch = os.path.dirname(command.words[1])
    process = subprocess.Popen(
        [sys.executable, *words, *own],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([without_torch, *sys.path])},
    )
    wait_until(lambda: process.poll() is not None or handles_signals(process.pid))
    return process


def wait_until(true):
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def handles_signals(process):
    with open(f"/proc/{process}/status") as status:
        (caught,) = [line.split()[1] for line in status if line.startswith("SigCgt")]
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


def ask_to_end(apply, folder, words, number, seconds, late):
    """Start, send the signal, and check everything but the exit code."""
    command, wanted, _ = apply
    folder.mkdir()
    process = start(command, words, folder)
    if late:
        result = folder / "p.parquet"
        wait_until(lambda: result.exists() or process.poll() is not None)
    time.sleep(seconds)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors and errors.count("\n") <= 1, errors
    assert not hidden(folder), "a temporary file is left"
    complete = command.contents(folder) == wanted
    assert complete or not list(folder.iterdir()), "half of a result"
    assert complete or process.returncode != 0
    return process.returncode


def check(apply, noted, tmp_path, moments):
    """Every moment with both signals in turn, and both ways to start."""
    cases = [
        (tmp_path / str(i), STARTS[i % 2], NUMBERS[i // 2 % 2], *moment)
        for i, moment in enumerate(moments)
    ]
    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda case: ask_to_end(apply, *case), cases))
    for code, case in zip(codes, cases, strict=True):
        assert code in (0, 128 + case[2]), case
    assert sum(code != 0 for code in codes) >= len(EARLY)
    noted("SIGTERM and SIGINT at moments of a run", "apply", len(cases))


def test_moments_of_a_run(apply, noted, tmp_path):
    seconds = apply[2]
    moments = [(delay, False) for delay in EARLY]
    moments += [(share * seconds, False) for share in SHARES]
    moments += [(delay, True) for delay in LATE]
    check(apply, noted, tmp_path, moments)


@pytest.mark.long
def test_a_hundred_moments(apply, noted, tmp_path):
    draw, seconds = random.Random(0), apply[2]
    moments = [(draw.uniform(0, 0.1), False) for _ in range(30)]
    moments += [(draw.uniform(0, 1.1 * seconds), False) for _ in range(50)]
    moments += [(draw.uniform(0, 0.1), True) for _ in range(20)]
    check(apply, noted, tmp_path, moments)
