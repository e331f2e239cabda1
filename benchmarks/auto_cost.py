"""What AutoCalibrator costs in units of one temperature, and for one row.

    python benchmarks/auto_cost.py

Processor time, medians of five after one warm-up. Also counted: how often the
arguments of a fit are checked and how often shift-aware temperatures are fitted.
"""

import time
from collections import Counter
from statistics import median
from unittest.mock import patch

import numpy as np
from origin import print_origin

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
    """Median processor time of five runs."""
    work()
    times = []
    for _ in range(5):
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
        f"| {n_rows:,} × {n_classes:,} × {n_columns} | {n_domains} | {one:.3f} | "
        f"{all_of_it:.2f} | {all_of_it / one:.1f} | {calls['checks']} | "
        f"{calls['shift-aware']} |",
        flush=True,
    )


def one_row(n_classes: int, n_columns: int) -> None:
    """Print what the probabilities of a single row take."""
    logits, labels, features, domains = simulate(3_000, n_classes, n_columns, 3)
    auto = AutoCalibrator().fit(
        logits, labels, features=features, sample_domain=domains, source_domain=0
    )
    times = []
    for i in range(len(logits)):
        row = logits[i : i + 1], features[i : i + 1]
        start = time.process_time_ns()
        auto.predict_proba(*row)
        times.append((time.process_time_ns() - start) / 1000)
    print(
        f"\nOne row of {n_classes} classes and {n_columns} features: "
        f"{median(times):.0f} µs (best {min(times):.0f}) of processor time."
    )


if __name__ == "__main__":
    print_origin()
    print(
        "| rows × classes × features | domains | one temperature, CPU s | "
        "AutoCalibrator, CPU s | times | checks | shift-aware fits |"
    )
    print("|---|---|---|---|---|---|---|")
    run(3_000, 20_000, 64, 3)
    run(10_000, 345, 512, 6)
    one_row(65, 512)
