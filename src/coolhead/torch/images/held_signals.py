"""Requests to end that wait for a moment, for what runs would swallow them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_held() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP wait until the block is over.

    Exporters turn whatever is raised inside them into errors of their own, an
    interrupt too: then it would pass for a network that they do not know.
    """
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # What is ignored stays so; what Python did not set it cannot set back.
            if number is not None and callable(signal.getsignal(number)):
                before[number] = signal.signal(number, lambda n, _: came.append(n))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
