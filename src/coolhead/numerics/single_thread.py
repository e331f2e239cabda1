"""Matrix products on one thread, so that results do not depend on how many there are.

BLAS divides a product among its threads, and another division rounds otherwise. At the
sizes of calibration its threads also cost more than they save. The number is one for
the whole process: it is lowered by the first who asks and set back by the last, since
fits that overlap in threads would otherwise each set back what the other had lowered.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

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
