"""Worker processes end with the process that started them, however that ends."""

import os
import threading
import time

SECONDS_BETWEEN_LOOKS = 1.0


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
