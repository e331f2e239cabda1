"""Matrix products on one thread, so that results do not depend on how many there are.

BLAS divides a product among its threads, and another division rounds otherwise. At the
sizes of calibration its threads also cost more than they save. The number is one for
the whole process: it is lowered by the first who asks and set back by the last, since
fits that overlap in threads would otherwise each set back what the other had lowered.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


@dataclass
class _Pin:
    """How many hold BLAS at one thread, and which libraries had how many before."""

    holders: int = 0
    before: list[tuple[Any, int]] = field(default_factory=list)
    lock: Any = field(default_factory=Lock)


_pin = _Pin()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS at one thread meanwhile, from any number of threads at once."""
    pin = _pin
    with pin.lock:
        if pin.holders == 0:
            pin.before = [each for each in _numbers() if each[1] > 1]
            for library, _ in pin.before:
                _set_threads(library, 1)
        pin.holders += 1
    try:
        yield
    finally:
        with pin.lock:
            pin.holders -= 1
            if pin.holders == 0:
                for library, number in pin.before:
                    _set_threads(library, number)


def blas_threads() -> int:
    """The threads that BLAS may use by the user's will, pinned right now or not."""
    with _pin.lock:
        found = _pin.before if _pin.holders else _numbers()
        return max((number for _, number in found), default=1)


@cache
def _libraries() -> list[Any]:
    """Those of NumPy and SciPy; looking for them takes milliseconds, so once."""
    import scipy.linalg  # noqa: F401  (has a BLAS of its own)

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _numbers() -> list[tuple[Any, int]]:
    return [(library, library.get_num_threads()) for library in _libraries()]


def _set_threads(library: Any, number: int) -> None:
    # threadpoolctl from 3.8 on lets but one thread change the number; here it is who
    # comes first and who goes last, which may be two.
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)
    library.set_num_threads(number)
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread()


def _forget_other_threads() -> None:
    """A forked process has none of the threads that would set the number back."""
    global _pin
    if _pin.holders:
        for library, number in _pin.before:
            _set_threads(library, number)
    _pin = _Pin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


ELEMENTS_PER_BLOCK = 2**17


def row_blocks(
    n_rows: int, n_columns: int, elements: int = ELEMENTS_PER_BLOCK
) -> Iterator[slice]:
    """Slices over `n_rows` rows of about so many elements each."""
    size = max(1, elements // max(1, n_columns))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def block_buffer(logits: np.ndarray, n_rows: int | None = None) -> np.ndarray:
    """An empty array for a block of `logits`, of so many rows, to compute in."""
    length, n_columns = logits.shape
    rows = min(length, max(1, ELEMENTS_PER_BLOCK // n_columns))
    return np.empty((n_rows or rows, n_columns), computing_dtype(logits))


def computing_dtype(logits: np.ndarray) -> type[np.floating]:
    """float32 for float16 and float32 logits, float64 for everything else."""
    return np.float32 if logits.dtype in (np.float16, np.float32) else np.float64


def row_sums(block: np.ndarray) -> np.ndarray:
    """Sum of each row, in the block's own precision.

    Not by BLAS, here and in `row_dots`: how it sums depends on its number of threads.
    """
    return np.einsum("ij->i", block)


def row_dots(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Inner product of each two rows, in the blocks' own precision."""
    return np.einsum("ij,ij->i", first, second)


# Below this many elements, starting threads costs more than it saves.
WORTHWHILE = 2**20

# After each short step a thread would wait for the interpreter's lock. The blocks of
# all threads together fill a last-level cache, none is shorter. The bits are the same.
ELEMENTS_IN_WORK = 2**21
SHORTEST_SHARED_BLOCK = 2**18
TURNS = 16

Work = Callable[[slice, Any], None]


def each_block(
    shape: tuple[int, int],
    work: Work,
    scratch: Callable[[int], Any] = lambda n_rows: None,
) -> None:
    """Call `work(rows, scratch(n_rows))` for every block of `shape` rows and columns.

    Every thread has a scratch of its own, for blocks of at most `n_rows` rows. Of
    several errors the first row's is raised.
    """
    if 0 < shape[0] * shape[1] <= ELEMENTS_PER_BLOCK:
        work(slice(0, shape[0]), scratch(shape[0]))
        return
    threads = thread_count(shape[0] * shape[1])
    blocks = list(row_blocks(*shape, _block_size(shape[0] * shape[1], threads)))
    longest = max((rows.stop - rows.start for rows in blocks), default=0)
    each_turn(
        len(blocks),
        lambda turn, own: work(blocks[turn], own),
        threads,
        lambda: scratch(longest),
    )


def each_turn(
    n_turns: int,
    work: Callable[[int, Any], None],
    threads: int,
    scratch: Callable[[], Any] = lambda: None,
) -> None:
    """Call `work(turn, scratch())` for every turn, shared out among threads.

    Every thread has a scratch of its own. Of several errors the first turn's is raised.
    """
    threads = min(threads, n_turns)
    if threads <= 1:
        own = scratch()
        for turn in range(n_turns):
            work(turn, own)
        return
    errors: dict[int, BaseException] = {}
    turns = count()  # its next is a single step of the interpreter

    def take_turns() -> None:
        own = scratch()
        while not errors and (turn := next(turns)) < n_turns:
            try:
                work(turn, own)
            except BaseException as error:
                errors[turn] = error

    others = [
        threading.Thread(target=copy_context().run, args=(take_turns,), daemon=True)
        for _ in range(threads - 1)
    ]
    for thread in others:
        thread.start()
    take_turns()
    for thread in others:
        thread.join()
    if errors:
        raise errors[min(errors)]


def _block_size(n_elements: int, threads: int) -> int:
    if threads == 1:
        return ELEMENTS_PER_BLOCK
    # Several turns each: they end together, in memory far below that of the data.
    at_once = min(ELEMENTS_IN_WORK, n_elements // TURNS)
    return max(SHORTEST_SHARED_BLOCK, at_once // threads)


def thread_count(n_elements: int) -> int:
    """How many threads a pass over so many elements may use.

    As many as BLAS but for our own pin: OMP_NUM_THREADS and threadpoolctl's limits
    hold here, too.
    One in a thread or process that others started: they share out the cores already.
    """
    if n_elements < WORTHWHILE or os.cpu_count() == 1:
        return 1
    if threading.current_thread() is not threading.main_thread():
        return 1
    if multiprocessing.parent_process() is not None:
        return 1
    return max(1, min(blas_threads(), _environment(), _cores()))


def _environment() -> int:
    """OMP_NUM_THREADS, of which nested levels may follow the first number."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else 2**16


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
