"""What k-means costs and how good it is: all starts in all columns, or rehearsed.

    python benchmarks/cluster_cost.py [ARCHIVE ...]

Prints the processor time of both and the inertia of the second over that of the first,
on the bundled data and on any archive of features given. One thread, best of three.
"""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import coolhead as ch
from coolhead.io.reading import load_archive
from coolhead.shift import clusters

ROWS = 2_000


def timed(work) -> tuple[float, float]:
    """Return the least processor seconds of three runs, and their inertia."""
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        model = work()
        seconds.append(time.process_time() - begun)
    return min(seconds), float(model.inertia_)


def compare(name: str, features: np.ndarray) -> None:
    """Print one line of the table for each number of clusters."""
    chosen = np.random.default_rng(0).permutation(len(features))[:ROWS]
    rows = np.asarray(features[np.sort(chosen)], np.float32)
    settings = {"max_iter": 300, "random_state": 0, "copy_x": False}
    for k in (2, 8, 32):
        plain, wanted = timed(lambda k=k: KMeans(k, n_init=10, **settings).fit(rows))
        ours, found = timed(lambda k=k: clusters._fit_kmeans(rows, k, 10, settings))
        once = [
            KMeans(k, n_init=1, random_state=seed).fit(rows).inertia_ / wanted - 1
            for seed in range(5)
        ]
        print(
            f"| {name} | {rows.shape[1]} | {k} | {plain:.2f} | {ours:.2f} | "
            f"{plain / ours:.1f} | {100 * (found / wanted - 1):+.2f} | "
            f"{100 * np.mean(once):+.2f} |"
        )


def main() -> None:
    head = ("data", "columns", "k", "ten starts (s)", "rehearsed (s)", "ratio")
    head += ("inertia (%)", "one start, inertia (%)")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    with threadpool_limits(1):
        for name in ("sentiment", "digits"):
            compare(name, ch.load_dataset(name).features)
        for path in map(Path, sys.argv[1:]):
            compare(path.stem, load_archive(path).features)


if __name__ == "__main__":
    main()
