"""Run all cells of a protocol in parallel; stop and go on at any moment.

Each finished cell is one small file that appears whole or not at all. A later run
takes up the files it finds, computes the rest, and builds the result tables in a fixed
order: the same bytes, however often it was killed and however many workers it had.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from joblib import parallel_config
from threadpoolctl import threadpool_limits

from coolhead.archive import load_archive
from coolhead.experiment.cell import describe_error, evaluate_cell
from coolhead.experiment.classifiers import (
    Training,
    divide,
    reference_path,
    train_classifier,
)
from coolhead.experiment.pictures import find_pictures
from coolhead.experiment.plan import CellJob, Plan, make_plan
from coolhead.experiment.protocol import Protocol
from coolhead.experiment.record import write_run_record
from coolhead.experiment.results import (
    CellResult,
    assemble,
    read_cell,
    runtimes_path,
    write_cell,
)
from coolhead.experiment.workers import each_result
from coolhead.extras import needs
from coolhead.heads.settings import TORCH_KINDS

SECONDS_BETWEEN_TABLES = 30.0


@dataclass(frozen=True)
class Outcome:
    """What a sweep did; `run` is the folder with the results.

    `errors` tell what failed, `notes` what could not be checked.
    """

    run: Path
    n_cells: int
    n_found: int
    n_failed: int
    errors: tuple[str, ...]
    notes: tuple[str, ...] = ()


def run_sweep(
    protocol: Protocol,
    folder: str | Path = "runs",
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    report: Callable[[str, int, int, int], None] | None = None,
) -> Outcome:
    """Train the classifiers, evaluate every cell, write the tables.

    Parameters
    ----------
    protocol : Protocol
    folder : path
        The run's folder is ``folder/protocol.name``.
    jobs : int, optional
        Processes, this one included. None leaves the choice to joblib, so that an
        enclosing ``joblib.parallel_config`` (dask, ray) is respected.
    scheduler : str, optional
        Address of a Dask scheduler whose workers do the work.
    report : callable, optional
        Called as ``report(what, done, failed, total)`` after each finished piece.
    """
    run = Path(folder) / protocol.name
    for name in ("cells", "classifiers"):
        (run / name).mkdir(parents=True, exist_ok=True)
    tell = report or (lambda what, done, failed, total: None)
    started = time.monotonic()
    plan = make_plan(protocol, run)
    with _workers(scheduler):
        errors = _train(plan, jobs, tell)
        found = [job for job in plan.jobs if _is_done(job)]
        _run_cells(plan, found, errors, jobs, tell)
    assemble(run, [job.path for job in plan.jobs])
    write_run_record(run, protocol, plan, seconds=time.monotonic() - started)
    failures = [_failures(job) for job in plan.jobs]
    notes = dict.fromkeys(job.note for job in plan.jobs if job.note is not None)
    return Outcome(
        run,
        n_cells=len(plan.jobs),
        n_found=len(found),
        n_failed=sum(map(bool, failures)),
        errors=tuple(line for lines in failures for line in lines),
        notes=tuple(notes),
    )


@contextmanager
def _workers(scheduler: str | None) -> Iterator[None]:
    """Those of a Dask scheduler, or processes that joblib ends together with this."""
    if scheduler is None:
        try:
            yield
        except BrokenExecutor as error:
            raise OSError(
                "a worker process died, perhaps for want of memory; finished cells are "
                "kept, and the same command goes on from them (--jobs 1 takes least)"
            ) from error
        return
    with needs("scheduler"):
        from distributed import Client

    with Client(scheduler), parallel_config("dask"):
        yield


def _train(plan: Plan, jobs: int | None, tell: Callable) -> dict[Path, str]:
    """Train what is missing; return the error of every classifier that failed."""
    missing = [
        t for t in plan.trainings if not (plan.classifiers / t.file_name).is_file()
    ]
    errors: dict[Path, str] = {}
    tell("classifiers", 0, 0, len(missing))
    tasks = ((training, plan.classifiers) for training in missing)
    for done, (path, error) in enumerate(each_result(_train_one, tasks, jobs), 1):
        if error:
            errors[path] = error
        tell("classifiers", done, len(errors), len(missing))
    return errors


def _run_cells(
    plan: Plan,
    found: list[CellJob],
    errors: dict[Path, str],
    jobs: int | None,
    tell: Callable,
) -> None:
    total, done, failed = len(plan.jobs), len(found), 0
    done_paths = {job.path for job in found}
    tell("cells", done, failed, total)
    pending = [job for job in plan.jobs if job.path not in done_paths]
    tasks = ((job, errors.get(job.archive)) for job in pending)
    last = time.monotonic()
    for job, result in each_result(_run_one, tasks, jobs):
        write_cell(job.path, job.key, result)
        done, failed = done + 1, failed + result.failed
        tell("cells", done, failed, total)
        if time.monotonic() - last > SECONDS_BETWEEN_TABLES:
            assemble(plan.run, [job.path for job in plan.jobs if job.path.is_file()])
            last = time.monotonic()


def _train_one(training: Training, folder: Path) -> tuple[Path, str | None]:
    path = folder / training.file_name
    # One thread everywhere: the sums of BLAS depend on the number of threads. The limit
    # holds for what is loaded, so torch is before its first training of a process.
    if training.classifier.kind in TORCH_KINDS:
        with suppress(ModuleNotFoundError):  # told by the training
            import torch  # noqa: F401
    with threadpool_limits(1):
        try:
            train_classifier(training, folder)
        except Exception as error:
            return path, describe_error(error)
    return path, None


def _run_one(job: CellJob, error: str | None) -> tuple[CellJob, CellResult]:
    if error is None:
        with threadpool_limits(1):
            try:
                return job, run_cell(job)
            except Exception as raised:
                error = describe_error(raised)
    result = CellResult()
    result.add("failures", method="*", error=error)
    return job, result


def run_cell(job: CellJob) -> CellResult:
    """Load what a cell needs and evaluate it."""
    protocol = job.protocol
    # Whoever uses rows checks them: a look at all of them would cost every cell anew.
    archive = load_archive(job.archive, check=False)
    beside = reference_path(job.archive)
    reference = load_archive(beside).features if beside.is_file() else None
    result = evaluate_cell(
        archive,
        divide(archive, protocol.division, protocol.seed_of("division", job.seed)),
        job.split,
        protocol.methods,
        protocol.evaluation,
        random_state=protocol.seed_of("clusters", job.seed),
        reference_features=reference,
        partition_folder=job.path.parent.parent / "partitions",
        pictures=find_pictures(protocol.data),
    )
    if job.note is not None:
        result.add("notes", note=job.note)
    return result


def _is_done(job: CellJob) -> bool:
    """Whether a whole and faultless cell lies there; any other is computed again."""
    try:
        cells = [read_cell(path) for path in (job.path, runtimes_path(job.path))]
    except (FileNotFoundError, ValueError):
        return False
    whole = all(cell["key"] == job.key for cell in cells)
    return whole and not cells[0]["tables"].get("failures", True)


def _failures(job: CellJob) -> list[str]:
    rows = read_cell(job.path)["tables"]["failures"]
    return [f"{job.split.name}, {row['method']}: {row['error']}" for row in rows]
