"""What a reproduction has finished, from what, and what it cost."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coolhead.files import write_text


class Ledger:
    """The finished steps of one run, in a file beside its results.

    A step is finished when its file, which appears whole, is there and the ledger
    knows what it was made from. Time counts on over interruptions; that of a process
    which was killed is lost.
    """

    def __init__(self, path: Path):
        self.path = path
        self.entries: dict[str, dict[str, Any]] = {}
        if path.is_file():
            try:
                self.entries = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                raise ValueError(
                    f"{path} is damaged: delete it, and what it spoke of is done anew"
                ) from None

    def is_finished(self, name: str, out: Path, identity: str) -> bool:
        """Whether a step needs no work; a file made from something else is refused."""
        if not out.is_file():
            return False
        # A kill may come between the file and the word that it is finished.
        if self.entries.get(name, {}).get("identity") == identity:
            return True
        raise ValueError(
            f"{out} is there, but was not made from these images with these settings: "
            "run as before, or write to another --folder, or delete that file"
        )

    @contextmanager
    def timed(self, name: str, identity: str) -> Iterator[None]:
        """Count the time of a step; it is finished if nothing is raised."""
        begun, worked = time.monotonic(), _cpu_seconds()
        known = self.entries.get(name, {})
        if known.get("identity") != identity:
            known = {}
        before = [known.get(key, 0.0) for key in ("seconds", "cpu_seconds")]
        self._note(name, identity, False, *before)
        finished = False
        try:
            yield
            finished = True
        finally:
            taken = (time.monotonic() - begun, _cpu_seconds() - worked)
            spent = [a + b for a, b in zip(before, taken, strict=True)]
            self._note(name, identity, finished, *spent)

    def _note(
        self, name: str, identity: str, finished: bool, seconds: float, cpu: float
    ) -> None:
        self.entries[name] = {
            "identity": identity,
            "finished": finished,
            "seconds": seconds,
            "cpu_seconds": cpu,
        }
        write_text(self.path, json.dumps(self.entries, indent=1))


def _cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
