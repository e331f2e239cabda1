"""What a person sees in a terminal: whole numbers, whole words, lines that fit."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import warnings
from datetime import timedelta

import numpy as np
import pytest

from coolhead.cli.commands import COMMANDS, GROUPS
from coolhead.cli.terminal import plain_warnings, print_pairs, print_table
from coolhead.progress import time_left

# All commands in one process: imports take longer than what they do.
PROGRAM = """
import sys
from coolhead.cli import main
for line in {commands!r}:
    print("$ coolhead", *line[:1])
    sys.argv = ["coolhead", *line]
    try:
        main()
    except SystemExit as stop:
        assert stop.code in (0, None), stop.code
"""


def in_terminal(width, program, folder):
    """Run a program of Python in a pseudo-terminal; return the lines it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    given = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=given,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the child has closed its end
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert child.wait() == 0, shown.decode()
    return shown.decode().replace("\r", "").split("\n")


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 100])
def test_every_command_fits_the_terminal(width, tmp_path, predictions):
    np.savez(tmp_path / "preds.npz", **predictions)
    unlabelled = {k: v for k, v in predictions.items() if k in ("logits", "features")}
    np.savez(tmp_path / "new.npz", **unlabelled)
    labels = "\n".join(f"{n},{predictions['labels'][n]}" for n in range(20))
    (tmp_path / "filled.csv").write_text(f"row,label\n{labels}\n")
    given = ["cal.skops", "new.npz"]
    commands = [
        ["fit", "preds.npz", "--out", "cal.skops"],
        ["fit", "preds.npz", "--method", "ensemble", "--out", "ensemble.skops"],
        ["inspect", "cal.skops"],
        ["inspect", "ensemble.skops"],
        ["apply", *given, "--out", "out.parquet"],
        ["evaluate", "cal.skops", "preds.npz", "--draws", "10", "--class", "1"],
        ["compare", "preds.npz", "--draws", "10", "--class", "1"],
        ["expect", *given],
        ["label", *given, "--rows", "20", "--out", "rows.csv"],
        ["update", "cal.skops", "filled.csv", "--on", "new.npz", "--out", "b.skops"],
        ["splits", "office-home"],
        ["--help"],
        *([name, "--help"] for name in COMMANDS),
    ]
    shown = in_terminal(width, PROGRAM.format(commands=commands), tmp_path)
    text = "\n".join(shown)
    assert "…" not in text
    assert [line for line in shown if len(line) > width] == []
    for column in ("mean", "ECE after", "radius"):
        assert f" {column} " in text
    for title in GROUPS:
        assert f"\n{title}:\n" in text


def test_help_says_what_each_command_does_in_one_short_line():
    assert list(GROUPS) == ["Calibrate", "New domain", "Monitor", "Experiments"]
    assert all(0 < len(text) < 55 for _, text in COMMANDS.values())


def table(width, monkeypatch, capsys, **settings):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    columns = ("method", "ECE", "accuracy", "role")
    rows = [("set-level", "12.3 [10.1, 14.9]", "51.8", "unseen")]
    print_table(columns, rows, **settings)
    return capsys.readouterr().out


def test_a_wide_terminal_gets_all_columns_beside_each_other(monkeypatch, capsys):
    shown = table(80, monkeypatch, capsys)
    assert shown.splitlines()[0].split() == ["method", "ECE", "accuracy", "role"]


def test_columns_without_room_stand_below(monkeypatch, capsys):
    shown = table(32, monkeypatch, capsys)
    assert all(len(line) <= 32 for line in shown.splitlines())
    assert shown.count("set-level") == 2 and "12.3 [10.1, 14.9]" in shown
    assert "51.8" in shown and "unseen" in shown


def test_columns_that_a_narrow_terminal_does_without(monkeypatch, capsys):
    shown = table(34, monkeypatch, capsys, extra=("accuracy", "role"))
    assert "51.8" not in shown and shown.count("set-level") == 1
    assert "Not shown at this width: accuracy, role." in " ".join(shown.split())
    assert "51.8" in table(38, monkeypatch, capsys, extra=("accuracy", "role"))
    assert "unseen" in table(38, monkeypatch, capsys, extra=("role", "accuracy"))
    assert "51.8" in table(80, monkeypatch, capsys, extra=("accuracy", "role"))


def test_prose_is_wrapped_at_words(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    words = "accuracy of the classifier in the domain " * 3
    print_pairs({"before": words, "n": 3})
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 40 for line in lines) and len(lines) > 3
    assert " ".join(" ".join(lines).split()) == f"before {words}n 3"
    assert all(line.startswith(" " * 8) for line in lines[1:-1])


def test_a_pipe_gets_whole_lines(capsys):
    with plain_warnings():
        warnings.warn("word " * 100, stacklevel=1)
        print_pairs({"long": "word " * 100})
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == len(shown.err.splitlines()) == 1


def test_remaining_time_is_elapsed_time_over_done():
    assert time_left(10.0, 2, 6) == f"left {timedelta(seconds=30)}"
    assert time_left(10.0, 0, 6) == time_left(10.0, 8, 0) == ""
