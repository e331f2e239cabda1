"""What a reproduction has finished, from what, and what it cost."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coolhead.files import atomic_path


class Ledger:
    """The finished steps of one run, in a file beside its results.

    A step is finished when its file is there and the ledger knows what it was made
    from. Time counts on over interruptions.
    """

    def __init__(self, path: Path):
        self.path = path
        self.entries: dict[str, dict[str, Any]] = {}
        if path.is_file():
            try:
                self.entries = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                msg = f"{path} is damaged: delete it, and what it spoke of is done anew"
                raise ValueError(msg) from None

    def is_finished(self, name: str, out: Path, identity: str) -> bool:
        """Whether a step needs no work; a file made from something else is refused."""
        if not out.is_file():
            return False
        known = self.entries.get(name, {})
        if known.get("finished") and known.get("identity") == identity:
            return True
        msg = (
            f"{out} is there, but was not made from these images with these settings: "
            "run as before, or write to another --folder, or delete that file"
        )
        raise ValueError(msg)

    @contextmanager
    def timed(self, name: str, identity: str) -> Iterator[None]:
        """Count the time of a step; it is finished if nothing is raised."""
        begun, worked = time.monotonic(), _cpu_seconds()
        finished = False
        try:
            yield
            finished = True
        finally:
            known = self.entries.get(name, {})
            if known.get("identity") != identity:
                known = {}
            self.entries[name] = {
                "identity": identity,
                "finished": finished,
                "seconds": known.get("seconds", 0.0) + time.monotonic() - begun,
                "cpu_seconds": known.get("cpu_seconds", 0.0) + _cpu_seconds() - worked,
            }
            with atomic_path(self.path) as temporary:
                temporary.write_text(json.dumps(self.entries, indent=1), "utf-8")


def _cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
