"""Requests to end a command: Ctrl-C, SIGTERM, and a terminal that is closed."""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated"}
SECONDS_TO_CLEAR_AWAY = 2.0
SECONDS_BEFORE_AGAIN = 0.05


class Requests:
    """Signals that ask this process to end.

    The first raises SystemExit in the main thread, so that temporary files are removed
    and workers end. Others would interrupt that and are ignored for two seconds. A
    later one is raised again, as a library may have dropped the first.

    Attributes
    ----------
    received : list of int
        Numbers of the signals, in order.
    work_is_over : bool
        Whether nothing is left to clear away; a request then ends the process at once.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self.work_is_over = False
        self._process = os.getpid()
        self._raised = float("-inf")

    @property
    def exit_code(self) -> int:
        """The code of a process that ends because of the first request."""
        return 128 + self.received[0]

    def handle(self, *, to_the_end: bool = False) -> dict[int, Any]:
        """Set the handlers; signals that are ignored, as by nohup, stay so.

        Parameters
        ----------
        to_the_end : bool, default=False
            Ignore signals from the last exit function on. Python would restore their
            default action, and they would kill it while it frees its modules.

        Returns
        -------
        dict
            The handlers that were there, by the number of their signal.
        """
        known = [getattr(signal, name) for name in WORDS if hasattr(signal, name)]
        own = [n for n in known if signal.getsignal(n) is not signal.SIG_IGN]
        if to_the_end:
            # Registered before all others, it is called after them.
            atexit.register(lambda: [signal.signal(n, signal.SIG_IGN) for n in own])
        hook = sys.unraisablehook
        sys.unraisablehook = lambda dropped: self._again(dropped) or hook(dropped)
        return {number: signal.signal(number, self._end) for number in own}

    def leave(self) -> None:
        """End the process if it was asked to; later requests end it at once."""
        try:
            for stream in (sys.stdout, sys.stderr):
                with suppress(AttributeError, OSError, ValueError):
                    stream.flush()
        finally:
            self.work_is_over = True
        if self.received:
            # Not through Python's shutdown: threads of polars may still be at work, and
            # the process aborts if one of them asks for the interpreter meanwhile.
            atexit._run_exitfuncs()
            os._exit(self.exit_code)

    def _end(self, number: int, frame: Any) -> None:
        first, now = not self.received, time.monotonic()
        self.received.append(number)
        if self.work_is_over:
            os._exit(self.exit_code)
        if first and os.getpid() == self._process:
            # Straight to the descriptor: a print may be what was interrupted, and the
            # terminal may be gone.
            with suppress(OSError):
                word = WORDS[signal.Signals(number).name]
                os.write(2, f"coolhead: {word}\n".encode())
        if now - self._raised > SECONDS_TO_CLEAR_AWAY:
            self._raised = now
            raise SystemExit(self.exit_code)

    def _again(self, dropped: Any) -> bool:
        """Send a request again whose exception Python dropped, as in a callback."""
        if not (self.received and isinstance(dropped.exc_value, SystemExit)):
            return False
        self._raised = float("-inf")
        # Not from here, which is such a callback, too.
        wanted = os.getpid(), self.received[0]
        again = threading.Timer(SECONDS_BEFORE_AGAIN, os.kill, wanted)
        again.daemon = True
        again.start()
        return True


@contextmanager
def ending_on_request() -> Iterator[Requests]:
    """Handle requests inside the block, and set the handlers back after it."""
    requests = Requests()
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return
    hook, previous = sys.unraisablehook, requests.handle()
    try:
        yield requests
    finally:
        sys.unraisablehook = hook
        for number, handler in previous.items():
            signal.signal(number, handler)
