"""What is said beforehand of time and disk."""

import sys
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from small_tree import DOMAINS, N_PER_CLASS, TRAINING, reproduce

from coolhead.lab.images import extraction, list_images
from coolhead.lab.images.engines import open_engine
from coolhead.lab.plan import make_splits
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.reproduce import Recipe, estimate, plan_steps


@pytest.mark.parametrize("finetune", [None, {"epochs": 5, "batch_size": 8}])
def test_the_estimate_is_of_the_images_not_of_the_start(
    protocol, tree, tmp_path, monkeypatch, finetune
):
    # A clock that only waiting moves, ten times too fast: no other load is seen in it.
    clock, opened = [0.0], []

    def wait(seconds):
        clock[0] += 10 * seconds

    def later_every_time(*arguments, **options):
        wait(2 + len(opened))
        opened.append(arguments)
        return open_engine(*arguments, **options)

    watch = SimpleNamespace(
        monotonic=lambda: clock[0], process_time=time.process_time, sleep=wait
    )
    monkeypatch.setattr("tiny_networks.time", watch)
    monkeypatch.setattr(sys.modules[estimate.__module__], "time", watch)
    monkeypatch.setattr(extraction, "open_engine", later_every_time)
    options = {"engine": "torch", "workers": 1}
    recipe = Recipe("python:tiny_networks:slow", finetune=finetune, options=options)
    steps, sweep = plan_steps(
        load_protocol(protocol), list_images(tree), tmp_path, recipe
    )
    cost = estimate(steps, recipe, sweep)
    n_images, n_learned = 2 * N_PER_CLASS * len(DOMAINS), 2 * N_PER_CLASS * 0.6
    passes = len(steps) * n_images
    passes += 0 if finetune is None else 5 * len(steps) * n_learned
    assert cost.seconds == pytest.approx(0.1 * passes, rel=0.1)
    n_cells = len(make_splits(sweep.roles)) * len(sweep.seeds)
    assert cost.n_cells == n_cells * (1 if finetune else len(sweep.classifiers))
    share = len(sweep.methods.names) / 27
    assert 4 * share < cost.sweep_seconds / cost.n_cells < 5 * share
    # Waiting is no work.
    assert cost.cpu_seconds < 0.5 * cost.seconds


@pytest.mark.parametrize("more", [(), TRAINING])
def test_the_estimate_of_the_disk_counts_every_archive(
    run, protocol, tree, tmp_path, monkeypatch, more
):
    costs = []
    monkeypatch.setattr(
        "coolhead.lab.reproduce.estimate",
        lambda *arguments: costs.append(estimate(*arguments)) or costs[0],
    )
    only = ("--set", "methods.names=['uncalibrated']")
    assert reproduce(run, protocol, tree, tmp_path, *more, *only)[0] == 0
    kept = [p for p in tmp_path.rglob("*.safetensors") if "partitions" not in str(p)]
    # What a file tells of itself in words is most of a small one.
    files = [path.read_bytes() for path in kept]
    words = sum(8 + int.from_bytes(file[:8], "little") for file in files)
    n_bytes = sum(map(len, files)) - words
    assert 0.7 < costs[0].n_bytes / n_bytes < 1.5
