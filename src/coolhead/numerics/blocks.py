"""Row blocks that fit in the processor's cache, worked on by a few threads."""

import multiprocessing
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import cache, partial
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

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


# Sum of each row of a block, and inner product of each two rows, in their own
# precision. Not by BLAS, which would start threads for long rows.
row_sums = partial(np.einsum, "ij->i")
row_dots = partial(np.einsum, "ij,ij->i")

# Below this many elements, starting threads costs more than it saves.
WORTHWHILE = 2**20

# After each short step a thread would wait for the interpreter's lock. The blocks of
# all threads together fill a last-level cache, none is shorter.
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
    size = shape[0] * shape[1]
    threads = thread_count(size)
    if threads > 1:
        # Several turns each, in memory far below that of the data.
        at_once = min(ELEMENTS_IN_WORK, size // TURNS)
        elements = max(SHORTEST_SHARED_BLOCK, at_once // threads)
    else:
        elements = ELEMENTS_PER_BLOCK
    blocks = list(row_blocks(*shape, elements))
    longest = max((rows.stop - rows.start for rows in blocks), default=0)
    if threads <= 1:
        own = scratch(longest)
        for rows in blocks:
            work(rows, own)
        return
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
    """Call `work(turn, scratch())` for every turn, in one run of turns per thread.

    Every thread has a scratch of its own. Of several errors the first turn's is raised.
    """

    def run(turns: Iterable[int]) -> None:
        own = scratch()
        for turn in turns:
            work(turn, own)

    if threads <= 1:
        run(range(n_turns))
        return
    runs = np.array_split(np.arange(n_turns), min(threads, max(n_turns, 1)))
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(copy_context().run, run, part) for part in runs]:
            done.result()


def thread_count(n_elements: int) -> int:
    """How many threads a pass over so many elements may use.

    As many as OpenMP: OMP_NUM_THREADS and threadpoolctl's limits hold here, too. One in
    a thread or process that others started: they share out the cores already.
    """
    if n_elements < WORTHWHILE or threading.current_thread() != threading.main_thread():
        return 1
    if multiprocessing.parent_process() is not None:
        return 1
    pools = thread_pools().select(user_api="openmp").lib_controllers
    return min((pool.num_threads for pool in pools), default=1)


@cache
def thread_pools() -> ThreadpoolController:
    """The thread pools of NumPy, SciPy and scikit-learn, looked for once."""
    import scipy.linalg  # noqa: F401  (has a BLAS of its own)
    import sklearn.base  # noqa: F401  (brings OpenMP)

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS at one thread meanwhile, in the main thread.

    At the sizes of calibration the threads of BLAS cost more processor time than they
    save. Other threads do not change a number that is one for the whole process.
    """
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return thread_pools().limit(limits=1, user_api="blas")
