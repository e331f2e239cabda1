"""What is missing is said before anything heavy is imported."""

import resource
import subprocess
import sys

import numpy as np
import pytest

COMMANDS = [
    ("fit", "no.npz", "--out", "c.skops"),
    ("apply", "no.skops", "no.npz", "--out", "p.npy"),
    ("evaluate", "no.skops", "no.npz"),
    ("inspect", "no.skops"),
    ("export", "no.skops", "--onnx", "c.onnx"),
    ("compare", "no.npz"),
    ("report", "no"),
    ("tables", "no"),
    ("extract", "no", "--out", "x.safetensors"),
    ("train", "no.safetensors", "--source", "a", "--out", "x.safetensors"),
    ("sweep", "digits", "--data", "no.npz"),
    ("results", "--pacs", "no.npz"),
]
RUN = "import sys; from coolhead.cli import main; main()"


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_missing_file_is_noticed_before_anything_heavy_is_imported(words, tmp_path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert found.returncode == 1
    assert f"{next(w for w in words if 'no' in w)} does not exist" in found.stderr
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.6


def test_without_features_other_methods_than_auto_name_one_that_needs_none(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "p.npz", logits=rng.normal(size=(40, 2)), labels=np.arange(40) % 2
    )
    words = ("fit", "p.npz", "--out", "c.skops")
    for extra, code in ((), 0), (("--method", "ensemble"), 1):
        found = subprocess.run(
            [sys.executable, "-c", RUN, *words, *extra],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert found.returncode == code
        assert code == 0 or "--method set-level" in found.stderr


def test_help_is_quick():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", RUN, "--help"], capture_output=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.35
