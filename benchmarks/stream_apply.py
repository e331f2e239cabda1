"""Memory of `coolhead apply` on large files: python benchmarks/stream_apply.py 20 npy.

Writes a file of the wanted size in GB with 1000 classes, applies a calibrator to it in
a process of its own, and prints the peak memory of that process, its time and whether
sampled rows equal the calibrator's own probabilities.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.io.calibrators import load_calibrator, save_calibrator

# ru_maxrss of a child starts at what its parent held; VmHWM does not.
APPLY = """
import sys
from coolhead.cli import main
try:
    main()
except SystemExit as stop:
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM"))
    print(peak.split()[1])
    sys.exit(stop.code)
"""
N_CLASSES = 1000
ROWS_PER_BLOCK = 4096


def logits_of(block: int) -> np.ndarray:
    """The logits of one block of rows, the same whenever asked."""
    rng = np.random.default_rng(block)
    return rng.standard_normal((ROWS_PER_BLOCK, N_CLASSES), np.float32) * 3


def write_array(path: Path, n_blocks: int) -> None:
    with open(path, "wb") as stream:
        header = {"descr": "<f4", "fortran_order": False}
        header["shape"] = (n_blocks * ROWS_PER_BLOCK, N_CLASSES)
        np.lib.format.write_array_header_1_0(stream, header)
        for block in range(n_blocks):
            stream.write(logits_of(block).data)


def write_npz(path: Path, n_blocks: int) -> None:
    from zipfile import ZipFile

    with ZipFile(path, "w", allowZip64=True) as archive:
        inner = path.with_name("logits.npy")
        write_array(inner, n_blocks)
        archive.write(inner, "logits.npy")
        inner.unlink()


def write_safetensors(path: Path, n_blocks: int) -> None:
    from coolhead.io.archive import DomainArchive

    inner = path.with_name("logits.npy")
    write_array(inner, n_blocks)
    DomainArchive(np.load(inner, mmap_mode="r")).save(path)
    inner.unlink()


WRITERS = {
    "npy": write_array,
    "npz": write_npz,
    "safetensors": write_safetensors,
}


def fit_calibrator(path: Path) -> None:
    rng = np.random.default_rng(0)
    logits = logits_of(0)
    labels = rng.integers(0, N_CLASSES, len(logits))
    labels[::2] = logits[::2].argmax(axis=1)
    save_calibrator(TemperatureScaling().fit(logits, labels), path)


def check_rows(calibrator: Path, out: Path, n_blocks: int) -> bool:
    """Compare the first rows of the first, a middle and the last block."""
    fitted = load_calibrator(calibrator)
    table = pl.scan_parquet(out)
    for block in (0, n_blocks // 2, n_blocks - 1):
        part = table.slice(block * ROWS_PER_BLOCK, 10).collect()
        wanted = fitted.predict_proba(logits_of(block)[:10])
        if not np.allclose(part["probabilities"].to_numpy(), wanted, rtol=1e-6):
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gigabytes", type=float)
    parser.add_argument("kind", choices=WRITERS)
    parser.add_argument("--folder", type=Path, default=None)
    wanted = parser.parse_args()
    n_blocks = max(1, round(wanted.gigabytes * 1e9 / (ROWS_PER_BLOCK * N_CLASSES * 4)))
    with TemporaryDirectory(dir=wanted.folder) as name:
        folder = Path(name)
        source, out = folder / f"logits.{wanted.kind}", folder / "probs.parquet"
        WRITERS[wanted.kind](source, n_blocks)
        fit_calibrator(folder / "cal.skops")
        start = time.perf_counter()
        words = ["apply", folder / "cal.skops", source, "--out", out]
        shown = subprocess.run(
            [sys.executable, "-c", APPLY, *words], check=True, stdout=subprocess.PIPE
        )
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = {
            "kind": wanted.kind,
            "input_gb": os.path.getsize(source) / 1e9,
            "output_gb": os.path.getsize(out) / 1e9,
            "rows": n_blocks * ROWS_PER_BLOCK,
            "peak_memory_gb": int(shown.stdout.split()[-1]) * 1024 / 1e9,
            "wall_seconds": time.perf_counter() - start,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "rows_equal": check_rows(folder / "cal.skops", out, n_blocks),
        }
        print(json.dumps(result))


if __name__ == "__main__":
    main()
