"""Worker processes end with the process that started them, however that ends."""

import os
import threading
import time
from functools import cache
from multiprocessing import current_process

SECONDS_BETWEEN_LOOKS = 1.0


@cache
def end_with(parent: int) -> None:
    """End this process, if it is joblib's worker of `parent`, when that is gone.

    A worker that waits for work holds both ends of its pipe and would wait for ever
    where its parent had no time to tell, as after SIGKILL.
    """
    if os.name == "posix" and current_process().name.startswith("LokyProcess"):
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
