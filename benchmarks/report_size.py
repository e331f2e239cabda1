"""Time and size of a report of 60 splits and 12 methods, on a simulated run."""

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))

from origin import print_origin  # noqa: E402
from synthetic_run import TEMPERATURES, write_run  # noqa: E402

from coolhead.lab.report import write_report  # noqa: E402

DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
MOST_SECONDS, MOST_BYTES = 6.0, 5_000_000


def main() -> None:
    """Print what it costs; fail if it is more than promised."""
    # Ten pairs of sources for each of six targets, as the paper's DomainNet has.
    splits = [
        (f"{first}+{second}", target)
        for target in DOMAINS
        for i, first in enumerate(DOMAINS)
        for second in DOMAINS[i + 1 :]
        if target not in (first, second)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(
            Path(folder), DOMAINS, tuple(TEMPERATURES), splits=splits, n_points=500
        )
        wall, processor = time.perf_counter(), time.process_time()
        path = write_report(run)
        wall = time.perf_counter() - wall
        processor = time.process_time() - processor
        size = path.stat().st_size
    print_origin()
    print("| splits | methods | wall s | processor s | MB |\n|---|---|---|---|---|")
    print(
        f"| {len(splits)} | {len(TEMPERATURES)} | {wall:.1f} | {processor:.1f} | "
        f"{size / 1e6:.1f} |"
    )
    if wall > MOST_SECONDS or size > MOST_BYTES:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
