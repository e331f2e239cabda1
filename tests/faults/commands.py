"""Six commands that work on files, each with what it must have written in the end."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from command_line import simulate_predictions
from coolhead.io.calibrators import load_calibrator
from coolhead.lab.results import table_path
from coolhead.report.results import TABLES
from experiment.small_world import DOMAINS, make_archive, protocol_content, write_toml

TESTS = Path(__file__).parents[1]
NETWORK = "python:tiny_networks:tiny"
MAIN = "from coolhead.cli import program; print('ready', flush=True); program()"
# So few rows in a shard that there is something to go on from; the network is made
# anew by every process and must be the same.
IN_SHARDS = """
import torch, coolhead.lab.images.extraction as extraction
torch.manual_seed(0)
extraction.SHARD_ROWS = 8
"""


@dataclass(frozen=True)
class Command:
    """Words with {folder} for the place of the results, and which files count.

    keeps : whether a killed run leaves finished parts for the next.
    """

    words: tuple[str, ...]
    results: Callable[[Path], list[Path]]
    before: str = ""
    keeps: bool = False

    def start(self, folder: Path, **options) -> subprocess.Popen:
        """Begin in a process group of its own."""
        words = [word.format(folder=folder) for word in self.words]
        defaults = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "start_new_session": True,
            "cwd": folder,
            "env": os.environ | {"PYTHONPATH": python_path()},
        }
        program = [sys.executable, "-c", self.before + MAIN, *words]
        return subprocess.Popen(program, **defaults | options)

    def finish(self, folder: Path, **options) -> dict[str, bytes]:
        """Run to the end; the bytes of the results by their name."""
        process = self.start(folder, **options)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        return self.contents(folder)

    def contents(self, folder: Path) -> dict[str, bytes]:
        """Bytes of the results that are there."""
        found = {}
        for path in self.results(folder):
            if path.is_file():
                found[path.name] = bytes_of(path)
        return found


def bytes_of(path: Path) -> bytes:
    """A file's bytes or, where those tell when and how it was written, its content."""
    if path.suffix == ".skops":
        rows = simulate_predictions(300)
        answer = load_calibrator(path).predict_proba(rows["logits"], rows["features"])
        return answer.tobytes()
    if path.name == "p.parquet":
        # Pages of a streamed table end where the threads that wrote them met.
        return pl.read_parquet(path).write_ipc(None).getvalue()
    return path.read_bytes()


def python_path() -> str:
    """Where the small network is found beside what the tests themselves use."""
    return os.pathsep.join([str(TESTS / "extract"), os.environ.get("PYTHONPATH", "")])


def files(*names: str) -> Callable[[Path], list[Path]]:
    return lambda folder: [folder / name for name in names]


def tables(folder: Path) -> list[Path]:
    run = folder / "runs" / "small"
    return [table_path(run, name) for name in TABLES if name != "runtimes"]


def make_commands(inputs: Path) -> dict[str, Command]:
    """The commands, on files that are written into `inputs` first."""
    predictions = simulate_predictions(1800)
    np.savez(inputs / "preds.npz", **predictions)
    _write_images(inputs / "images")
    (inputs / "world").mkdir()
    for number, name in enumerate(DOMAINS):
        path = inputs / "world" / f"source={name}.safetensors"
        make_archive(random_state=number).save(path)
    toml = write_toml(inputs / "small.toml", protocol_content(inputs / "world"))
    images, preds = str(inputs / "images"), str(inputs / "preds.npz")
    fit = Command(("fit", preds, "--out", "{folder}/c.skops"), files("c.skops"))
    fit.finish(inputs)
    sweep = Command(
        ("sweep", str(toml), "--jobs", "2", "--folder", "{folder}/runs"),
        tables,
        keeps=True,
    )
    sweep.finish(inputs)
    saved, run = str(inputs / "c.skops"), str(inputs / "runs" / "small")
    tuned = (
        "--finetune",
        "--backbone",
        NETWORK,
        "--epochs",
        "4",
        "--batch-size",
        "4",
        "--workers",
        "1",
    )
    return {
        "fit": fit,
        "apply": Command(
            ("apply", saved, preds, "--out", "{folder}/p.parquet"), files("p.parquet")
        ),
        "extract": Command(
            (
                "extract",
                images,
                "--backbone",
                NETWORK,
                "--out",
                "{folder}/x.safetensors",
            ),
            files("x.safetensors"),
            IN_SHARDS,
            keeps=True,
        ),
        "train": Command(
            (
                "train",
                images,
                "--source",
                "photo",
                *tuned,
                "--out",
                "{folder}/t.safetensors",
            ),
            files("t.safetensors", "t.safetensors.weights.safetensors"),
            IN_SHARDS,
            keeps=True,
        ),
        "sweep": sweep,
        "report": Command(("report", run, "--out", "{folder}/r.html"), files("r.html")),
    }


def _write_images(root: Path) -> None:
    rng = np.random.default_rng(0)
    for domain in ("photo", "sketch"):
        for number, name in enumerate(("cat", "dog")):
            (root / domain / name).mkdir(parents=True)
            for i in range(16):
                pixels = rng.integers(0, 200, (48, 48, 3), dtype=np.uint8)
                pixels[..., number] += 50
                Image.fromarray(pixels).save(root / domain / name / f"{i}.png")


def kill_at_random(
    command: Command, folder: Path, seconds: float, draw: random.Random
) -> bool:
    """SIGKILL to all of its processes; False if it was done before that."""
    process = command.start(folder)
    try:
        process.wait(draw.uniform(0.25, 1.0) * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return True
    process.communicate()
    return False


def hidden(folder: Path) -> list[Path]:
    """Half-written files, which have hidden names."""
    return [path for path in folder.rglob(".*") if path.is_file()]


def timed(function: Callable[[], object]) -> tuple[object, float]:
    start = time.monotonic()
    return function(), time.monotonic() - start
