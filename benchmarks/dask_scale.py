"""Temperatures on a local Dask cluster: memory, time, and a worker that dies.

    python benchmarks/dask_scale.py                        # 20 million x 100, 8 GB
    python benchmarks/dask_scale.py --kill                 # the same, a worker killed
    python benchmarks/dask_scale.py --compare --rows 1e6   # against one process
    python benchmarks/dask_scale.py --passes               # cost of a row in a pass

Logits are made block by block whenever a pass asks for them, so they never exist as a
whole. Linux only: peak memory is read from /proc.
"""

import argparse
import os
import signal
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import coolhead.dask
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.dask.evaluate import _states
from coolhead.dask.solving import _look_at_block, _sums_of_block
from coolhead.metrics import expected_calibration_error

STRETCH = 2.5
BLOCK_ROWS = 100_000


def make_logits(n_rows: int, n_classes: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((n_rows, n_classes), dtype=np.float32)
    logits *= 2 * STRETCH
    return logits


def make_labels(n_rows: int, n_classes: int, seed: int) -> np.ndarray:
    """Drawn from the softmax of logits / STRETCH, so that STRETCH is the best T."""
    scores = make_logits(n_rows, n_classes, seed) / STRETCH
    noise = np.random.default_rng(seed + 10**6)
    waits = noise.standard_exponential(scores.shape, dtype=np.float32)
    scores -= np.log(np.maximum(waits, np.finfo(np.float32).tiny))
    return scores.argmax(axis=1).astype(np.uint8)


def _block(seeds: np.ndarray, make, n_rows: int, n_classes: int) -> np.ndarray:
    return make(n_rows, n_classes, int(seeds.ravel()[0]))


def arrays(n_rows: int, n_classes: int) -> tuple[da.Array, da.Array]:
    n_blocks = n_rows // BLOCK_ROWS
    seeds = da.arange(n_blocks, chunks=1)
    settings = {"n_rows": BLOCK_ROWS, "n_classes": n_classes}
    tall = (BLOCK_ROWS,) * n_blocks
    logits = seeds[:, None].map_blocks(
        _block, make_logits, chunks=(tall, (n_classes,)), dtype=np.float32, **settings
    )
    labels = seeds.map_blocks(
        _block, make_labels, chunks=(tall,), dtype=np.uint8, **settings
    )
    return logits, labels


def peak_memory() -> float:
    """Gigabytes of this process at its largest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


def timed(name: str, function, *arguments, **settings):
    start = time.perf_counter()
    result = function(*arguments, **settings)
    seconds = time.perf_counter() - start
    print(f"{name:34s} {seconds:8.1f} s", flush=True)
    return result, seconds


def large(client: Client, n_rows: int, n_classes: int, kill: bool) -> None:
    logits, labels = arrays(n_rows, n_classes)
    labels = client.persist(labels)
    timed("make the labels", lambda: labels.sum().compute())
    _, reading = timed("one pass that only makes logits", logits.max().compute)
    if kill:
        threading.Timer(1.5 * reading, kill_one, [client]).start()
    calibrator, _ = timed(
        "fit", coolhead.dask.fit, TemperatureScaling(), logits, labels
    )
    score, _ = timed("evaluate", coolhead.dask.evaluate, calibrator, logits, labels)
    print(f"T {calibrator.temperature_!r} (made with {STRETCH})")
    print(f"standard error of log T {calibrator.log_temperature_se_:.1e}")
    print(f"ECE {score.expected_calibration_error!r}")
    print(f"NLL {score.negative_log_likelihood!r}")
    peaks = client.run(peak_memory)
    shown = ", ".join(f"{gigabytes:.2f}" for gigabytes in peaks.values())
    print(f"peak of the workers: {shown} GB; of this process: {peak_memory():.2f} GB")


def kill_one(client: Client) -> None:
    victim = next(iter(client.run(os.getpid).values()))
    print(f"killing worker process {victim}", flush=True)
    os.kill(victim, signal.SIGKILL)


def compare(client: Client, n_rows: int, n_classes: int, repeats: int = 3) -> None:
    """The same rows in one process and on the cluster, both already in memory."""
    spread = client.persist(list(arrays(n_rows, n_classes)))
    plain = [array.compute() for array in spread]
    walls, works = [], []
    for _ in range(repeats):
        here, one, own = watched(client, "in memory", fit_and_score_here, *plain)
        there, two, all_workers = watched(client, "dask", fit_and_score, *spread)
        walls.append((two, one))
        works.append((all_workers, own))
    print(f"T differs by {abs(there[0] / here[0] - 1):.1e}")
    print(f"ECE differs by {abs(there[1] - here[1]):.1e}")
    for name, pairs in {"wall": walls, "processor": works}.items():
        ours, theirs = (min(column) for column in zip(*pairs, strict=True))
        print(f"dask / in memory, {name} time, best of {repeats}: {ours / theirs:.2f}")


def watched(client: Client, name: str, function, *arguments):
    """Result, wall seconds, and processor seconds of this process and the workers."""
    before = time.process_time() + sum(client.run(time.process_time).values())
    result, seconds = timed(name, function, *arguments)
    after = time.process_time() + sum(client.run(time.process_time).values())
    print(f"{'  processor':34s} {after - before:8.1f} s", flush=True)
    return result, seconds, after - before


def fit_and_score(logits: da.Array, labels: da.Array) -> tuple[float, float]:
    model = coolhead.dask.fit(TemperatureScaling(), logits, labels)
    score = coolhead.dask.evaluate(model, logits, labels)
    return model.temperature_, score.expected_calibration_error


def fit_and_score_here(logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The same, with the same scores, in one process."""
    model = TemperatureScaling().fit(logits, labels)
    sure, predicted = model.confidence(logits)
    given = {"logits": logits, "temperature": model.temperature_}
    coolhead.metrics.negative_log_likelihood(labels, **given)
    coolhead.metrics.brier_score(labels, **given)
    return model.temperature_, expected_calibration_error(predicted == labels, sure)


def passes(n_classes: int, repeats: int = 9) -> None:
    """Processor time of each kind of pass over one block, without Dask around it."""
    block = {
        "logits": make_logits(BLOCK_ROWS, n_classes, 0),
        "labels": make_labels(BLOCK_ROWS, n_classes, 0),
    }
    model = TemperatureScaling().fit(block["logits"], block["labels"])
    before, strides = np.zeros((1, 1), np.intp), np.array([100])
    step = np.array([-np.log(model.temperature_)]), np.array([True])
    kinds = {
        "make the logits": lambda: make_logits(BLOCK_ROWS, n_classes, 0),
        "look": lambda: _look_at_block({**block, "before": before}, strides),
        "Newton step": lambda: _sums_of_block(block, *step),
        "evaluate": lambda: _states(block, model, 1, 15),
    }
    for name, function in kinds.items():
        seconds = []
        for _ in range(repeats):
            start = time.process_time()
            function()
            seconds.append(time.process_time() - start)
        print(f"{name:18s} {1e6 * min(seconds) / BLOCK_ROWS:6.2f} µs a row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=20e6)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1.5GB", help="of each worker")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--passes", action="store_true")
    options = parser.parse_args()
    if options.passes:
        passes(options.classes)
        return
    with (
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            memory_limit=options.memory,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        if options.compare:
            compare(client, int(options.rows), options.classes)
        else:
            large(client, int(options.rows), options.classes, options.kill)


if __name__ == "__main__":
    main()
