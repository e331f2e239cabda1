"""Work shared out among processes, which end with the one that started them."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky import ProcessPoolExecutor
from joblib.parallel import LokyBackend, get_active_backend

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_TO_KEEP = 300

# Whose they are, how many, and the processes that wait for a next call. Not joblib's
# reusable ones: it would take these for its own, and end them in the middle.
_waiting: deque[tuple[tuple[int, int], ProcessPoolExecutor]] = deque(maxlen=1)


def each_result(function: Callable, tasks: Iterable[tuple], jobs: int | None) -> Any:
    """Results of `function(*task)` as they come, in any order.

    Without a number of jobs, an enclosing ``joblib.parallel_config`` decides.
    """
    if isinstance(get_active_backend()[0], LokyBackend) and jobs is not None:
        return _shared_out(function, deque(tasks), effective_n_jobs(jobs))
    settings: dict[str, Any] = {"batch_size": 1}
    if jobs is not None:
        settings["n_jobs"] = jobs
    if isinstance(get_active_backend()[0], LokyBackend):
        settings |= {"initializer": end_with, "initargs": (os.getpid(),)}
    try:
        parallel = Parallel(return_as="generator_unordered", **settings)
    except ValueError:  # A backend that can not hand out results one by one.
        parallel = Parallel(**settings)
    return parallel(delayed(function)(*task) for task in tasks)


def _shared_out(function: Callable, tasks: deque[tuple], jobs: int) -> Iterator[Any]:
    """`jobs` processes, of which this is one: it works while the others still start."""
    n_left, n_others = len(tasks), min(jobs, len(tasks)) - 1
    if n_others < 1:
        yield from (function(*task) for task in tasks)
        return
    others = _processes(n_others)
    given: set[Future] = set()
    finished: SimpleQueue[Future] = SimpleQueue()

    def start_next() -> None:
        try:
            task = tasks.popleft()
        except IndexError:
            return
        try:
            future = others.submit(_alone, function, task)
        except Exception as error:  # They died just now: whoever waits here is told.
            failed = Future()
            failed.set_exception(error)
            finished.put(failed)
            return
        given.add(future)
        future.add_done_callback(go_on)

    def go_on(future: Future) -> None:
        given.discard(future)
        finished.put(future)
        start_next()

    try:
        for _ in range(n_others):
            start_next()
        for _ in range(n_left):
            yield _next_result(function, tasks, finished)
    except BaseException:
        tasks.clear()
        _wait_for_start(list(given))
        others.shutdown(wait=True, kill_workers=True)
        raise
    _waiting.append(((os.getpid(), n_others), others))


def _processes(n_wanted: int) -> ProcessPoolExecutor:
    """Those of the call before, which have imported everything, or new ones."""
    wanted = os.getpid(), n_wanted
    with suppress(IndexError, BrokenExecutor):
        found, others = _waiting.pop()
        if found == wanted:
            others.submit(os.getpid)  # refused where one of them died meanwhile
            return others
        others.shutdown(wait=False)
    return ProcessPoolExecutor(
        n_wanted,
        timeout=SECONDS_TO_KEEP,
        initializer=end_with,
        initargs=(os.getpid(),),
    )


def end_workers() -> None:
    """End the processes that wait for a next call."""
    while _waiting:
        _waiting.pop()[1].shutdown(wait=True)


def _alone(function: Callable, task: tuple) -> Any:
    """The cores are shared out already: what asks joblib for more gets none."""
    with parallel_config("sequential"):
        return function(*task)


def _next_result(function: Callable, tasks: deque, finished: SimpleQueue) -> Any:
    """What another process has finished, else the next task, done here."""
    try:
        future = finished.get_nowait()
    except Empty:
        try:
            own = tasks.popleft()
        except IndexError:
            future = finished.get()
        else:
            return _alone(function, own)
    return future.result()


def _wait_for_start(given: list[Future]) -> None:
    """Until all are taken up: loky's thread fails over tasks killed before."""
    for _ in range(1_000):
        if all(future.running() or future.done() for future in given):
            return
        time.sleep(0.001)


def end_with(parent: int) -> None:
    """In a new worker process of `parent`: end when that is gone.

    A worker that waits for work holds both ends of its pipe and would wait for ever
    where its parent had no time to tell, as after SIGKILL.
    """
    if os.name == "posix":
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
