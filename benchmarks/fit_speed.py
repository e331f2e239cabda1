"""Time of fit and prediction and peak memory of every method on one large set.

    python benchmarks/fit_speed.py [--rows 10000] [--classes 345] [--columns 512]

Time is processor time (both cores of two threads count) and wall time. Memory is the
growth of the resident set at its peak, in multiples of the arrays the method is
given. Linux only, as the peak is read from /proc.
"""

import argparse
import gc
import time
import warnings
from pathlib import Path

import numpy as np

from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.methods import METHODS


def simulate(n_rows: int, n_classes: int, n_columns: int, step: float, seed: int):
    """Overconfident logits that are linear in the features; `step` shifts the rows."""
    rng = np.random.default_rng(seed)
    head = np.random.default_rng(7).normal(size=(n_columns, n_classes))
    features = rng.normal(size=(n_rows, n_columns)) + step / np.sqrt(n_columns)
    logits = features @ head * 4 / np.sqrt(n_columns)
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return (3 * logits).astype(np.float32), labels, features.astype(np.float32)


def resident(field: str) -> int:
    """Bytes of the process, now ("VmRSS") or at the peak ("VmHWM")."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(field))
    return 1024 * int(line.split()[1])


def measure(method, known) -> tuple[float, float, float, float, str]:
    """Processor and wall seconds, peak growth in multiples of the data; processor
    seconds of a prediction of the same rows; status.
    """
    calibrator = method.build(n_clusters=8, random_state=0)
    # What is measured is one fit with its checks, nothing shared with others.
    size = sum(np.asarray(value).nbytes for value in known.values())
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    start, clock = time.process_time(), time.perf_counter()
    fit_with(calibrator, CalibrationData.of(**known))
    seconds, wall = time.process_time() - start, time.perf_counter() - clock
    growth = max(0, resident("VmHWM") - before) / size
    start = time.process_time()
    calibrator.predict_proba(known["logits"], known["features"])
    predict = time.process_time() - start
    return seconds, wall, growth, predict, str(np.ravel(calibrator.status_)[0])


def run(n_rows: int, n_classes: int, n_columns: int, only: list[str]) -> None:
    """Print one Markdown row per method."""
    logits, labels, features = simulate(n_rows, n_classes, n_columns, 0.0, 0)
    target_logits, _, target_features = simulate(n_rows, n_classes, n_columns, 1.0, 1)
    known = {
        "logits": logits,
        "labels": labels,
        "features": features,
        "sample_domain": np.arange(n_rows) % 6,
    }
    beside = {
        "source": {"source_domain": 0},
        "reference": {"reference_features": target_features},
        "target": {"target_features": target_features, "target_logits": target_logits},
    }
    heads = ("method", "CPU s", "wall s", "peak memory / data", "predict CPU s")
    print("| " + " | ".join(heads) + " | status |")
    print("|" + "---|" * (len(heads) + 1))
    for name, method in METHODS.items():
        if method.maker is None or (only and name not in only):
            continue
        takes = method.maker(**method.options).takes
        extra = [value for kind in takes for value in beside.get(kind, {}).items()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            *numbers, status = measure(method, known | dict(extra))
        cells = " | ".join(f"{number:.2f}" for number in numbers)
        print(f"| {name} | {cells} | {status} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=345)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--only", nargs="*", default=[], help="names of methods")
    arguments = parser.parse_args()
    run(arguments.rows, arguments.classes, arguments.columns, arguments.only)
