"""Run a protocol: train its classifiers, evaluate its cells, write its tables.

Cells are files. A sweep that was stopped finds the finished ones and goes on.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import LokyBackend, get_active_backend
from threadpoolctl import threadpool_limits

from coolhead.extras import needs
from coolhead.io.archive import DomainArchive
from coolhead.io.reading import load_archive
from coolhead.lab.cell import describe_error, evaluate_cell
from coolhead.lab.classifiers import Training, divide, reference_path, train_classifier
from coolhead.lab.heads.settings import TORCH_KINDS
from coolhead.lab.pictures import find_pictures
from coolhead.lab.plan import CellJob, Plan, make_plan
from coolhead.lab.protocol import Protocol
from coolhead.lab.record import write_run_record
from coolhead.lab.results import assemble, read_cell, runtimes_path, write_cell
from coolhead.report.results import CellResult

SECONDS_BETWEEN_LOOKS = 1.0


def each_result(
    function: Callable, tasks: Iterable[tuple], jobs: int | None
) -> Iterator[Any]:
    """Results of ``function(*task)`` as they come, in any order.

    Without a number of jobs, an enclosing ``joblib.parallel_config`` decides.
    """
    settings: dict[str, Any] = {"batch_size": 1, "n_jobs": jobs}
    if isinstance(get_active_backend()[0], LokyBackend):
        settings |= {"initializer": _end_with, "initargs": (os.getpid(),)}
    parallel: Any = Parallel(return_as="generator_unordered", **settings)
    return parallel(delayed(function)(*task) for task in tasks)


def end_workers() -> None:
    """End the processes that wait for a next call."""
    get_reusable_executor().shutdown(wait=True)


def _end_with(parent: int) -> None:
    """In a new worker process of `parent`: end when that is gone.

    A worker that waits for work holds both ends of its pipe and would wait for minutes
    where its parent was killed by SIGKILL.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()


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
        Worker processes. None leaves the choice to joblib, so that an
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
        with suppress(ModuleNotFoundError):  # reported by the training
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
    """Load the archive of a cell and evaluate it.

    Parameters
    ----------
    job : CellJob
        The cell.

    Returns
    -------
    CellResult
        Scores of all methods, and the errors of those that failed.

    Raises
    ------
    ValueError
        If the archive holds NaN or infinity where a method needs a number. The message
        names the file and the row in it.
    """
    # The plan has checked all values. Methods check the rows they use again, by their
    # number in a split; only after a failure is the whole file read once more.
    archive = load_archive(job.archive, check=False)
    try:
        result = _evaluate(job, archive)
    except ValueError:
        load_archive(job.archive)
        raise
    if result.failed:
        load_archive(job.archive)
    return result


def _evaluate(job: CellJob, archive: DomainArchive) -> CellResult:
    protocol = job.protocol
    beside = reference_path(job.archive)
    reference = load_archive(beside).features if beside.is_file() else None
    result = evaluate_cell(
        archive,
        divide(archive, protocol.division, protocol.seed_of("division", job.seed)),
        job.split,
        protocol.methods,
        protocol.evaluation,
        ablation=protocol.ablation,
        random_state=protocol.seed_of("clusters", job.seed),
        reference_features=reference,
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
