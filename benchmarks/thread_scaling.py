"""Wall time on one and on two threads, of what reads the logits as a whole.

    python benchmarks/thread_scaling.py [--rows 50000] [--classes 1000] [--threads 2]

Medians of seven in one process, best beside; the machine must be otherwise idle. The
results are compared bit by bit. Markdown on standard output;
experiments/thread-scaling.md is kept so.
"""

import argparse
import time

import numpy as np
from origin import print_origin
from threadpoolctl import threadpool_limits

import coolhead as ch
from coolhead.evaluate import evaluate_domains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=2)
    wanted = parser.parse_args()
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((wanted.rows, wanted.classes), np.float32) * 2
    labels = rng.integers(0, wanted.classes, wanted.rows)
    logits[np.arange(wanted.rows), labels] += 4
    calibrator = ch.TemperatureScaling().fit(logits[:2_000], labels[:2_000])
    archive = ch.DomainArchive(logits, None, labels, np.arange(wanted.rows) % 4)
    work = {
        "fit_temperature": lambda: ch.fit_temperature(logits, labels).temperature,
        "confidence": lambda: calibrator.confidence(logits)[0],
        "predict_proba": lambda: calibrator.predict_proba(logits),
        "evaluate": lambda: [
            line.ece_after.estimate
            for line in evaluate_domains(calibrator, archive, n_draws=100)
        ],
    }
    print_origin()
    print("| work | 1 thread, s | best | threads, s | best | times faster | bits |")
    print("|---|---|---|---|---|---|---|")
    for name, call in work.items():
        with threadpool_limits(1):
            one, found = measure(call)
        many, again = measure(call)
        same = "same" if np.array_equal(found, again) else "DIFFER"
        cells = [f"{value:.3f}" for times in (one, many) for value in times]
        print(f"| {name} | {' | '.join(cells)} | {one[0] / many[0]:.2f} | {same} |")


def measure(call, repeats: int = 7):
    """Median and best wall time, and what it gave."""
    found = call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return (float(np.median(times)), min(times)), found


if __name__ == "__main__":
    main()
