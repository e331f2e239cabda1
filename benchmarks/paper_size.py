"""Sweeps at the paper's sizes on simulated logits, and the same work the usual way.

    python benchmarks/paper_size.py office-home
    python benchmarks/paper_size.py domainnet
    python benchmarks/paper_size.py office-home --usual 2

Archives are made first and not timed. `--usual N` runs N splits written as one would
write them with scikit-learn, netcal and torchmetrics, and the same splits our way, both
in one process with one thread, and prints the ratio of CPU seconds. With
`--usual-draws 50` the usual way evaluates 50 resamples and their time is scaled up to
1000. The table is printed as Markdown.
"""

import argparse
import json
import resource
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import psutil
from origin import print_origin
from simulated_archives import DOMAINNET_TEST, OFFICE_HOME, write_archives
from threadpoolctl import threadpool_limits

from coolhead.lab.plan import make_plan, make_splits
from coolhead.lab.protocol import Protocol, TrainedData
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.results import read_table
from coolhead.lab.sweep import end_workers, run_cell, run_sweep

SIZES = {"office-home": (OFFICE_HOME, 65), "domainnet": (DOMAINNET_TEST, 345)}
METHODS = (
    "uncalibrated",
    "source-only",
    "target-only",
    "set-level",
    "nearest-cluster",
    "regression",
    "ensemble",
    "transcal",
    "wts",
    "cpcs",
)
LIMITS = {"office-home": 5.0, "domainnet": 150.0}


def paper_protocol(name: str, archives: Path) -> Protocol:
    """The bundled protocol on given logits: ten methods, one number of clusters."""
    protocol = load_protocol(name)
    methods = protocol.methods.model_copy(update={"names": METHODS, "sensitivity": ()})
    pattern = str(archives / "source={source}.safetensors")
    return protocol.model_copy(
        update={
            "data": TrainedData(kind="trained", pattern=pattern),
            "classifiers": {},
            "methods": methods,
            "seeds": (0,),
        }
    )


def cpu_seconds() -> float:
    """User and system time of this process and of its finished children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in (own, children))


class Memory(Thread):
    """Watches the memory of this process and its workers, shared pages counted once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak_megabytes = 0.0
        self.over = Event()

    def run(self) -> None:
        own = psutil.Process()
        while not self.over.wait(0.5):
            total = 0
            for process in [own, *own.children(recursive=True)]:
                with suppress(psutil.Error):
                    total += process.memory_full_info().pss
            self.peak_megabytes = max(self.peak_megabytes, total / 2**20)


def measure(name: str, archives: Path, folder: Path, jobs: int) -> dict:
    """Run the sweep; return wall and CPU seconds and the memory."""
    protocol = paper_protocol(name, archives)
    memory = Memory()
    memory.start()
    start, cpu = time.perf_counter(), cpu_seconds()
    outcome = run_sweep(protocol, folder, jobs=jobs)
    wall = time.perf_counter() - start
    memory.over.set()
    end_workers()  # so that their time is counted
    n_methods = len(set(read_table(outcome.run, "results")["method"]))
    return {
        "sweep": name,
        "splits": outcome.n_cells,
        "failed": outcome.n_failed,
        "methods": n_methods,
        "wall_seconds": round(wall, 1),
        "limit_seconds": LIMITS[name],
        "cpu_seconds": round(cpu_seconds() - cpu, 1),
        "peak_megabytes": round(memory.peak_megabytes),
        "jobs": jobs,
    }


def compare(protocol: Protocol, splits: list, draws: int, folder: Path) -> dict:
    """CPU seconds per split of both ways, each in this process, imports not counted."""
    from usual_way import usual_sweep

    plan = make_plan(protocol, folder / "few")
    with threadpool_limits(1):
        start = time.process_time()
        for job in plan.jobs:
            if job.split in splits:
                run_cell(job)
        ours = time.process_time() - start
        usual = usual_sweep(protocol, splits, draws)
    return {
        "compared_splits": len(splits),
        "our_cpu_seconds": round(ours, 1),
        "usual_cpu_seconds": round(usual, 1),
        "usual_draws": draws,
        "ratio": round(usual / ours, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweep", choices=sorted(SIZES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--usual", type=int, default=0, metavar="SPLITS")
    parser.add_argument("--usual-draws", type=int, default=1000, metavar="DRAWS")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--archives", type=Path, help="keep the archives here")
    arguments = parser.parse_args()
    sizes, n_classes = SIZES[arguments.sweep]
    splits = make_splits(load_protocol(arguments.sweep).roles)
    sources = list(dict.fromkeys(split.source for split in splits))
    with tempfile.TemporaryDirectory() as temporary:
        archives = arguments.archives or Path(temporary) / "archives"
        write_archives(archives, sizes, n_classes, sources)
        folder = Path(temporary) / "runs"
        found = measure(arguments.sweep, archives, folder, arguments.jobs)
        if arguments.usual:
            protocol = paper_protocol(arguments.sweep, archives)
            few = splits[: arguments.usual]
            found |= compare(protocol, few, arguments.usual_draws, Path(temporary))
    print_origin()
    print("| " + " | ".join(found) + " |")
    print("|" + "---|" * len(found))
    print("| " + " | ".join(map(str, found.values())) + " |")
    if arguments.json:
        arguments.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
