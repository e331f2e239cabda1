"""What a billion rows would ask of a Dask scheduler: blocks of almost nothing.

    python benchmarks/dask_blocks.py 100 1000 10000

A billion rows in blocks of 100,000 are 10,000 blocks. What the rows cost is known
(`dask_scale.py --passes`); here the blocks hold ten rows each, so that only the tasks,
the graph and what comes back of every block are left. Client and scheduler are this
process, the worker another. Linux only: memory is read from /proc.
"""

import argparse
import resource
import time
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from origin import print_origin

import coolhead.dask
from coolhead.calibrators.temperature import TemperatureScaling

ROWS, CLASSES = 10, 10


def tiny_blocks(n_blocks: int) -> tuple[da.Array, da.Array]:
    """Logits and labels of ten rows a block, made where they are asked for."""
    seeds = da.arange(n_blocks, chunks=1)
    tall = (ROWS,) * n_blocks
    return (
        seeds[:, None].map_blocks(_logits, chunks=(tall, (CLASSES,)), dtype="f4"),
        seeds.map_blocks(_labels, chunks=(tall,), dtype=np.int64),
    )


def _logits(seed: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(int(seed.ravel()[0]))
    return 3 * rng.standard_normal((ROWS, CLASSES), dtype=np.float32)


def _labels(seed: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng([int(seed[0]), 1]).gumbel(size=(ROWS, CLASSES))
    return (_logits(seed) / 2 + noise).argmax(axis=1)


def memory() -> float:
    """Megabytes of this process now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(row for row in lines if row.startswith("VmRSS")).split()[1]) / 1024


def measure(n_blocks: int) -> None:
    """Fit and evaluate; a line of the table."""
    logits, labels = tiny_blocks(n_blocks)
    before, passes = memory(), Counted()
    wall, work = time.perf_counter(), time.process_time()
    with passes:
        model = coolhead.dask.fit(TemperatureScaling(), logits, labels)
    fitted = time.perf_counter() - wall
    coolhead.dask.evaluate(model, logits, labels)
    seconds, work = time.perf_counter() - wall, time.process_time() - work
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    each = 1e3 * work / n_blocks / (passes.number + 1)
    least = 1e3 * own_work(logits.max().compute) / n_blocks
    aligned = (_match, "i", logits, "ij", labels, "i")
    both = da.blockwise(*aligned, dtype=bool, concatenate=True)
    usual = 1e3 * own_work(both.sum().compute) / n_blocks
    print(
        f"| {n_blocks:,} | {passes.number} + 1 | {fitted:.1f} | {seconds:.1f} | "
        f"{each:.2f} | {least:.2f} | {usual:.2f} | {before:.0f} | {peak:.0f} |",
        flush=True,
    )


def own_work(function) -> float:
    """Processor seconds of client and scheduler."""
    start = time.process_time()
    function()
    return time.process_time() - start


def _match(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return logits.argmax(axis=1) == labels


class Counted:
    """How often a fit asked the cluster for something."""

    number = 0

    def __enter__(self) -> "Counted":
        self.get = Client.get

        def get(*arguments, **settings):
            self.number += 1
            return self.get(*arguments, **settings)

        Client.get = get
        return self

    def __exit__(self, *_) -> None:
        Client.get = self.get


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("blocks", type=int, nargs="*", default=[100, 1_000, 10_000])
    options = parser.parse_args()
    print_origin()
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")
    print(
        "| blocks | passes | fit s | fit and evaluate s | client's CPU ms a block and "
        "pass | of a plain `max` | of `blockwise` over two arrays | MB before | MB at "
        "most |\n|---|---|---|---|---|---|---|---|---|"
    )
    with cluster, Client(cluster):
        for n_blocks in options.blocks:
            measure(n_blocks)


if __name__ == "__main__":
    main()
