"""Blocks of work on several threads; NumPy lets other threads run while it computes.

Each block is computed by one thread alone and written to rows of its own, and nothing
is summed across blocks: the bits do not depend on the number of threads.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from itertools import count
from typing import Any

from coolhead.numerics.blocks import ELEMENTS_PER_BLOCK, row_blocks
from coolhead.numerics.single_thread import blas_threads

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
