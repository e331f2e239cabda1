"""Would a compiled kernel be worth it? One gradient pass, NumPy against numba.

    pip install numba
    python benchmarks/compiled_kernel.py

The kernel does what `row_moments` does, one row after the other, with nothing kept of a
row but its sums, and an exponential of its own, which the compiler turns into vector
instructions. Processor time on one thread, median and best of nine.
"""

import importlib.metadata
import resource
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numba
import numpy as np
from origin import print_origin

from coolhead import fit_temperature
from coolhead.numerics.blocks import WORTHWHILE
from coolhead.numerics.moments import row_moments, summarise_rows

LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693145751953125, 1.4286068203094172e-6


@numba.njit(inline="always", fastmath=True)
def exponential(x):
    """exp of x <= 0 by halving: 2^n e^r, |r| < 0.35, a polynomial of degree eleven."""
    n = np.floor(x * LOG2E + 0.5)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 1 / 39916800
    for factor in (3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1):
        p = p * r + 1 / factor
    return p * np.int64((np.int64(n) + 1023) << 52).view(np.float64)


@numba.njit(inline="always", fastmath=True)
def short_exponential(x):
    """The same for single precision: degree six."""
    n = np.floor(x * np.float32(LOG2E) + np.float32(0.5))
    r = (x - n * np.float32(LN2_HIGH)) - n * np.float32(LN2_LOW)
    p = np.float32(1 / 720)
    for factor in (1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0):
        p = p * r + np.float32(factor)
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


def kernel(exp, lowest):
    """The moments of all rows; rows of b z below `lowest` have no weight."""

    @numba.njit(fastmath=True)
    def moments(logits, peak, gap, scale, loss, score, curvature):
        for row in range(logits.shape[0]):
            top, b = peak[row], scale[row]
            total = first = second = 0.0
            for start in range(0, logits.shape[1], 256):
                # Sums of 256 in the precision of the logits, of those in double.
                s0 = s1 = s2 = logits.dtype.type(0)
                for column in range(start, min(start + 256, logits.shape[1])):
                    z = max((logits[row, column] - top) * b, lowest)
                    p = exp(z)
                    s0 += p
                    s1 += p * z
                    s2 += p * z * z
                total, first, second = total + s0, first + s1, second + s2
            first, second = first / total, second / total
            loss[row] = np.log(total) + gap[row] * b
            score[row] = first + gap[row] * b
            curvature[row] = max(second - first * first, 0.0)

    return moments


KERNELS = {
    np.float32: kernel(short_exponential, np.float32(-80)),
    np.float64: kernel(exponential, -700.0),
}


def seconds(work, repeats: int = 9) -> tuple[float, float]:
    """Median and best processor time."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return statistics.median(found), min(found)


def main() -> None:
    print_origin()
    rng = np.random.default_rng(0)
    # Below this size NumPy's pass keeps to one thread by itself.
    n_rows, n_classes = WORTHWHILE // 1000 - 1, 1000
    print("### One gradient pass\n")
    print("| | NumPy ns a logit | compiled | times | largest difference | compile s |")
    print("|---|---|---|---|---|---|")
    for dtype, run in KERNELS.items():
        logits = (3 * rng.normal(size=(n_rows, n_classes))).astype(dtype)
        rows = summarise_rows(logits, rng.integers(0, n_classes, n_rows), scores=False)
        b = np.full(n_rows, 0.7)
        wanted = row_moments(rows, b)
        out = [np.empty(n_rows) for _ in wanted]
        given = (logits, rows.peak.astype(dtype), rows.gap, b.astype(dtype), *out)
        start = time.process_time()
        run(*given)
        compiled = time.process_time() - start
        apart = max(
            np.abs(one / two - 1).max() for one, two in zip(out, wanted, strict=True)
        )
        ours = [1e9 * s / logits.size for s in seconds(partial(row_moments, rows, b))]
        theirs = [1e9 * s / logits.size for s in seconds(partial(run, *given))]
        print(
            f"| {np.dtype(dtype)} | {ours[0]:.2f} ({ours[1]:.2f}) | {theirs[0]:.2f} "
            f"({theirs[1]:.2f}) | {ours[0] / theirs[0]:.1f} | {apart:.1e} | "
            f"{compiled:.1f} |",
            flush=True,
        )
    print_cost()


def print_cost() -> None:
    """What it would cost to have: disk, loading, and a fit to compare that with."""
    rows, classes = 50_000, 1_000
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((rows, classes), np.float32)
    labels = rng.integers(0, classes, rows)
    logits[np.arange(rows), labels] += 4
    fit = seconds(partial(fit_temperature, logits, labels), repeats=3)[0]
    print("\n### What it costs\n\n| | |\n|---|---|")
    for names in (("numba", "llvmlite"), ("polars", "polars-runtime-32"), ("scipy",)):
        print(
            f"| {names[0]} and what it brings, on disk | "
            f"{sum(map(on_disk, names)):.0f} MB |"
        )
    print(f"| importing numba | {own_seconds('import numba'):.1f} CPU s |")
    print(f"| a fit of {rows:,} × {classes:,} logits, float32 | {fit:.1f} CPU s |")


def on_disk(name: str) -> float:
    """Megabytes of an installed package, as its list of files has them."""
    paths = [Path(str(f.locate())) for f in importlib.metadata.files(name) or []]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def own_seconds(code: str) -> float:
    """Processor seconds of Python with these lines beyond NumPy's, best of three."""
    both = []
    for lines in ("import numpy", f"import numpy; {code}"):
        found = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", lines], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found.append(
                after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            )
        both.append(min(found))
    return both[1] - both[0]


if __name__ == "__main__":
    main()
