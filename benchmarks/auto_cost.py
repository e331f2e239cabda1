"""What AutoCalibrator costs in units of one temperature, and where it goes.

    python benchmarks/auto_cost.py [--rows 3000] [--classes 20000] [--columns 64]

Processor time, medians of three after one warm-up. Also counted: how often the
arguments of a fit are checked and how often shift-aware temperatures are fitted.
"""

import argparse
import time
from collections import Counter
from statistics import median
from unittest.mock import patch

import numpy as np

from coolhead.calibrators import AutoCalibrator, data
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.numerics.temperature import fit_temperature


def simulate(n_rows: int, n_classes: int, n_columns: int, n_domains: int):
    """Overconfident logits of several domains, the first of them the source."""
    rng = np.random.default_rng(0)
    honest = rng.normal(scale=2, size=(n_rows, n_classes)).astype(np.float32)
    labels = (honest + rng.gumbel(size=honest.shape).astype(np.float32)).argmax(axis=1)
    domains = np.arange(n_rows) % n_domains
    features = rng.normal(size=(n_rows, n_columns)) + domains[:, None] / n_domains
    logits = honest * (1.5 + domains[:, None] / n_domains).astype(np.float32)
    return logits, labels, features.astype(np.float32), domains


def seconds(work) -> float:
    """Median processor time of three runs."""
    work()
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times)


def count(work) -> Counter:
    """Calls of the checks and of shift-aware fits during `work`."""
    calls = Counter()

    def counted(name, function):
        def call(*arguments, **named):
            calls[name] += 1
            return function(*arguments, **named)

        return call

    learn = ShiftAwareTemperature._learn
    with (
        patch.object(data, "summarise_rows", counted("looks", data.summarise_rows)),
        patch.object(data, "check_labels", counted("checks", data.check_labels)),
        patch.object(ShiftAwareTemperature, "_learn", counted("shift-aware", learn)),
    ):
        work()
    return calls


def run(n_rows: int, n_classes: int, n_columns: int, n_domains: int) -> None:
    """Print one line."""
    logits, labels, features, domains = simulate(
        n_rows, n_classes, n_columns, n_domains
    )

    def auto() -> None:
        AutoCalibrator().fit(
            logits, labels, features=features, sample_domain=domains, source_domain=0
        )

    one = seconds(lambda: fit_temperature(logits, labels))
    all_of_it = seconds(auto)
    calls = count(auto)
    print(
        f"{n_rows} x {n_classes}, {n_columns} features, {n_domains} domains: one "
        f"temperature {one:.3f} CPU s, AutoCalibrator {all_of_it:.2f} CPU s, "
        f"{all_of_it / one:.1f} times; {dict(calls)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--classes", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--domains", type=int, default=3)
    options = parser.parse_args()
    run(options.rows, options.classes, options.columns, options.domains)
