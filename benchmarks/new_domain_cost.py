"""What an answer in a new domain costs: python benchmarks/new_domain_cost.py

CPU seconds of `NewDomain` with accuracy, coverage and calibrator, and of an update with
100 labels, on 100,000 rows of 100 classes with 64 features; the best of three.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from origin import print_origin

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.new_domain import NewDomain, learn_evidence

FITTED_ROWS, N_LABELS, REPETITIONS = 3_000, 100, 3


def draw(
    rng: np.random.Generator, n_rows: int, n_classes: int, n_features: int, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits, labels and features of one domain."""
    true = rng.standard_normal((n_rows, n_classes), np.float32) * 2
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    features = rng.standard_normal((n_rows, n_features), np.float32) + scale
    return scale * true, labels, features


def cpu_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU time of several calls, and what the last one gave."""
    times, found = [], None
    for _ in range(REPETITIONS):
        start = time.process_time()
        found = function()
        times.append(time.process_time() - start)
    return min(times), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--features", type=int, default=64)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rng = np.random.default_rng(0)
    size = given.classes, given.features
    parts = [draw(rng, FITTED_ROWS // 3, *size, scale) for scale in (1.0, 1.5, 2.0)]
    logits, labels, features = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    named = {
        "features": features,
        "sample_domain": np.repeat(["home", "a", "b"], FITTED_ROWS // 3),
        "source_domain": "home",
        "reference_features": parts[0][2],
    }
    cal: Any = AutoCalibrator().fit(logits, labels, **named)
    cal.evidence_ = learn_evidence(cal, logits, labels, **named)
    logits, labels, features = draw(rng, given.rows, *size, 1.8)

    def open_domain() -> NewDomain:
        there = NewDomain(cal, logits, features)
        _ = there.accuracy, there.outside, there.calibrator
        return there

    opened, there = cpu_seconds(open_domain)
    rows = there.rows_to_label(N_LABELS)

    def update() -> NewDomain:
        known = there.with_labels(rows, labels[rows])
        _ = known.accuracy, known.calibrator
        return known

    updated, known = cpu_seconds(update)
    print_origin()
    print("| | CPU s | wanted |\n|---|---|---|")
    print(f"| `NewDomain` of {given.rows} x {size[0]}, {size[1]} features "
          f"| {opened:.2f} | 2 |")  # fmt: skip
    print(f"| update with {N_LABELS} labels | {updated:.3f} | 0.1 |")
    print(f"{there}\n{known}", file=sys.stderr)


if __name__ == "__main__":
    main()
