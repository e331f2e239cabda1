"""Requests to end a command: SIGTERM, and a terminal that is closed."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

SECONDS_BEFORE_AGAIN = 0.05


@contextmanager
def ending_on_request() -> Iterator[list[int]]:
    """Let SIGTERM and SIGHUP end the block like an error; yield those that came.

    Files and workers are then cleared away. What was ignored, as by nohup, stays so.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def end(number: int, frame: Any) -> NoReturn:
        if not asked:
            # Straight to the descriptor: a print may be what was interrupted, and the
            # terminal may be gone.
            with suppress(OSError):
                os.write(2, b"coolhead: terminated\n")
        asked.append(number)
        raise SystemExit(128 + number)

    hook, previous = sys.unraisablehook, _handle(end)
    sys.unraisablehook = _asking_again(asked, hook)
    try:
        yield asked
    finally:
        sys.unraisablehook = hook
        for number, handler in previous.items():
            signal.signal(number, handler)


def _handle(end: Any) -> dict[int, Any]:
    """Set the handler; return those that were there."""
    numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    before = {n: signal.getsignal(n) for n in numbers if n is not None}
    return {
        number: signal.signal(number, end)
        for number, handler in before.items()
        if handler is not signal.SIG_IGN
    }


def _asking_again(asked: list[int], hook: Any) -> Any:
    """Where Python was in a callback, it drops what a signal raised: send it again."""

    def heard(dropped: Any) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            number = signal.SIGINT
        elif isinstance(dropped.exc_value, SystemExit) and asked:
            number = asked[-1]
        else:
            hook(dropped)
            return
        # Not from here, which is such a callback, too.
        again = threading.Timer(SECONDS_BEFORE_AGAIN, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()

    return heard
