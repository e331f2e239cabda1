"""A day's service in minutes: memory and bits of a calibrator that is asked for long.

    nice -n 19 python benchmarks/soak.py

A million predictions, one row and a few rows at a time, and a million updates of a
drift monitor, with the memory of the process at the start, in the middle and at the
end; sixteen threads that share a calibrator; children made by fork and by spawn. The
bits must be the same everywhere.
"""

import argparse
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import coolhead as ch

N_ROWS, N_CLASSES, N_FEATURES = 4096, 10, 32
Rows = tuple[np.ndarray, np.ndarray]


def simulate(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Logits, labels, features and domains; overconfident, more so further out."""
    rng = np.random.default_rng(seed)
    domains = np.arange(N_ROWS) % 4
    features = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    features[:, 0] += domains
    honest = rng.normal(scale=2, size=(N_ROWS, N_CLASSES))
    labels = (honest + rng.gumbel(size=honest.shape)).argmax(axis=1)
    logits = (honest * (1.5 + domains[:, None] / 2)).astype(np.float32)
    return logits, labels, features, domains


def memory() -> float:
    """Megabytes of this process that are in memory."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * 4096 / 1e6


def watched(times: int, step: Callable[[int], int]) -> dict[str, float]:
    """Do `step` until it has counted to `times`; memory on the way."""
    done, number = 0, 0
    for number in range(2000):  # caches fill first
        step(number)
    found = {"start_mb": memory()}
    started, middle = time.process_time(), 0.0
    while done < times:
        done += step(number)
        number += 1
        if not middle and done >= times / 2:
            middle = memory()
    return found | {
        "middle_mb": middle,
        "end_mb": memory(),
        "calls": number - 1999,
        "counted": done,
        "cpu_us_per_call": 1e6 * (time.process_time() - started) / (number - 1999),
    }


def predictions(calibrator: Any, rows: Rows, wanted: np.ndarray, times: int) -> dict:
    """Single rows and batches of 2 to 64; every answer is compared."""
    rng = np.random.default_rng(0)
    starts = rng.integers(0, N_ROWS - 64, 4096)
    lengths = np.where(rng.random(4096) < 0.5, 1, rng.integers(2, 65, 4096))
    furthest = 0.0

    def step(number: int) -> int:
        nonlocal furthest
        start, length = starts[number % 4096], int(lengths[number % 4096])
        part = slice(start, start + length)
        answer = calibrator.predict_proba(rows[0][part], rows[1][part])
        furthest = max(furthest, float(np.abs(answer - wanted[part]).max()))
        return length

    return watched(times, step) | {"furthest_from_one_batch": furthest}


def updates(calibrator: Any, rows: Rows, labels: np.ndarray, times: int) -> dict:
    """One row at a time, most of them without a label."""
    monitor = ch.DriftMonitor.for_calibrator(
        calibrator, rows[1], logits=rows[0], labels=labels
    )
    known = [
        (calibrator.details(rows[0][i : i + 1], rows[1][i : i + 1]), labels[i : i + 1])
        for i in range(512)
    ]

    def step(number: int) -> int:
        details, label = known[number % 512]
        monitor.update(details, label if number % 10 == 0 else None)
        if number % 10_000 == 0:
            monitor.check()
        return 1

    result = watched(times, step)
    return result | {"rows_counted": float(monitor.to_dict()["counts"]["n_rows"])}


def threads(calibrator: Any, rows: Rows, count: int = 16, rounds: int = 20) -> bool:
    """The same bits from many threads at once."""
    parts = [slice(i, i + 256) for i in range(0, N_ROWS, 256)]
    wanted = [calibrator.predict_proba(rows[0][p], rows[1][p]) for p in parts]

    def ask(number: int) -> bool:
        p = parts[number % len(parts)]
        answer = calibrator.predict_proba(rows[0][p], rows[1][p])
        return np.array_equal(answer, wanted[number % len(parts)])

    with ThreadPoolExecutor(count) as pool:
        return all(pool.map(ask, range(count * rounds)))


def _answer(calibrator: Any, rows: Rows, out: Any) -> None:
    out.put(calibrator.predict_proba(*rows).tobytes())


def children(calibrator: Any, rows: Rows, how: str) -> bool:
    """The same bits from four processes made by "fork" or "spawn"."""
    context: Any = multiprocessing.get_context(how)
    wanted, out = calibrator.predict_proba(*rows).tobytes(), context.Queue()
    made = [
        context.Process(target=_answer, args=(calibrator, rows, out)) for _ in "abcd"
    ]
    with warnings.catch_warnings():
        # Python warns of forks beside threads, which is what is tried here.
        warnings.simplefilter("ignore", DeprecationWarning)
        for process in made:
            process.start()
    answers = [out.get(timeout=300) for _ in made]
    for process in made:
        process.join()
    return all(answer == wanted for answer in answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=float, default=1e6)
    parser.add_argument("--updates", type=float, default=1e6)
    wanted = parser.parse_args()
    logits, labels, features, domains = simulate()
    rows = (logits, features)
    results: dict[str, Any] = {}
    calibrators = {"temperature": ch.TemperatureScaling(), "auto": ch.AutoCalibrator()}
    for name, calibrator in calibrators.items():
        calibrator.fit(logits, labels, features=features, sample_domain=domains)
        whole = calibrator.predict_proba(*rows)
        results[f"{name}: 16 threads, same bits"] = threads(calibrator, rows)
        for how in ("fork", "spawn"):
            results[f"{name}: {how}, same bits"] = children(calibrator, rows, how)
        found = predictions(calibrator, rows, whole, int(wanted.predictions))
        results[f"{name}: predictions"] = found
        print(name, json.dumps(found), flush=True)
    auto = calibrators["auto"]
    results["monitor updates"] = updates(auto, rows, labels, int(wanted.updates))
    print("| what | start | middle | end | calls | CPU per call |")
    print("|---|---|---|---|---|---|")
    for name, found in results.items():
        if isinstance(found, dict):
            sizes = [
                f"{found[f'{key}_mb']:.1f} MB" for key in ("start", "middle", "end")
            ]
            cost = f"{found['cpu_us_per_call']:.0f} µs"
            print(f"| {name} | {' | '.join(sizes)} | {found['calls']} | {cost} |")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
