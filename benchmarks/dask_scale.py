"""Temperatures on a local Dask cluster: memory, time, and a worker that dies.

    python benchmarks/dask_scale.py                        # 20 million x 100, 8 GB
    python benchmarks/dask_scale.py --kill --rows 1e6      # and with a worker killed
    python benchmarks/dask_scale.py --compare --rows 1e6   # against one process
    python benchmarks/dask_scale.py --passes               # cost of a row in a pass

Logits are made block by block whenever a pass asks for them, so they never exist as a
whole. Linux only: peak memory is read from /proc. Markdown on standard output, kept as
experiments/dask-*.md; progress on standard error.
"""

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from origin import print_origin

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
    print(f"{name:34s} {seconds:8.1f} s", file=sys.stderr, flush=True)
    return result, seconds


def print_row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def print_head(*columns: str) -> None:
    print_row(*columns)
    print("|" + "---|" * len(columns))


def large(client: Client, n_rows: int, n_classes: int, kill: bool) -> None:
    print_head(
        *("rows", "GB", "worker killed", "T", "standard error of log T", "ECE", "NLL"),
        *("GB of a worker at most", "GB of the client", "fit s", "evaluate s"),
        "making the logits once, s",
    )
    for killed in (False, True) if kill else (False,):
        logits, labels = arrays(n_rows, n_classes)
        labels = client.persist(labels)
        timed("make the labels", lambda found: found.sum().compute(), labels)
        _, reading = timed("one pass that only makes logits", logits.max().compute)
        if killed:
            threading.Timer(1.5 * reading, kill_one, [client]).start()
        model, fitting = timed(
            "fit", coolhead.dask.fit, TemperatureScaling(), logits, labels
        )
        score, scoring = timed(
            "evaluate", coolhead.dask.evaluate, model, logits, labels
        )
        print_row(
            f"{n_rows:,}",
            f"{logits.nbytes / 1e9:.1f}",
            "yes" if killed else "no",
            f"{model.temperature_:.9f}",
            f"{model.log_temperature_se_:.2e}",
            f"{score.expected_calibration_error:.9f}",
            f"{score.negative_log_likelihood:.9f}",
            f"{max(client.run(peak_memory).values()):.2f}",
            f"{peak_memory():.2f}",
            *(f"{seconds:.0f}" for seconds in (fitting, scoring, reading)),
        )


def kill_one(client: Client) -> None:
    victim = next(iter(client.run(os.getpid).values()))
    print(f"killing worker process {victim}", file=sys.stderr, flush=True)
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
    print_head("", "one process", "Dask", "Dask / one process")
    for name, pairs in {"wall s": walls, "CPU s": works}.items():
        theirs, ours = (min(column) for column in zip(*pairs, strict=True))
        print_row(
            f"{name}, best of {repeats}",
            *(f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}"),
        )
    print("\n")
    print_head("", "differs by")
    print_row("T", f"{abs(there[0] / here[0] - 1):.1e}")
    print_row("ECE", f"{abs(there[1] - here[1]):.1e}")


def watched(client: Client, name: str, function, *arguments):
    """Result, wall seconds, and processor seconds of this process and the workers."""
    before = time.process_time() + sum(client.run(time.process_time).values())
    result, seconds = timed(name, function, *arguments)
    after = time.process_time() + sum(client.run(time.process_time).values())
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
        "Newton step": lambda: _sums_of_block(block, *step, np.float32),
        "evaluate": lambda: _states(block, model, 1, 15),
    }
    print_head("pass", "CPU µs a row", "CPU ns a logit")
    for name, function in kinds.items():
        seconds = []
        for _ in range(repeats):
            start = time.process_time()
            function()
            seconds.append(time.process_time() - start)
        row = 1e6 * min(seconds) / BLOCK_ROWS
        print_row(name, f"{row:.2f}", f"{1e3 * row / n_classes:.1f}")


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
    print_origin()
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
