"""Bars of progress on standard error, where that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

# Work inside other work adds its bars to those already on the screen.
_display: ContextVar[Callable[..., None] | None] = ContextVar("display", default=None)


@contextmanager
def progress_bars(*, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Yield ``report(what, done, total, remark="")``; a new `what` is a new bar."""
    if not shown:
        yield lambda what, done, total, remark="": None
        return
    outer = _display.get()
    if outer is not None:
        yield outer
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[remark]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def report(what: str, done: int, total: int | None, remark: str = "") -> None:
            if what not in tasks:
                # What was done before the bar appeared took none of its time.
                settings = {"total": total, "begun": done, "remark": "", "left": ""}
                bars.add_task(what, **settings)
                tasks[what] = bars.tasks[-1]
            task = tasks[what]
            if done < task.completed:
                bars.reset(task.id, total=total, begun=done)
            own = done - task.fields["begun"]
            left = time_left(task.elapsed or 0.0, own, (total or done) - done)
            bars.update(task.id, completed=done, total=total, remark=remark, left=left)

        token = _display.set(report)
        try:
            yield report
        finally:
            _display.reset(token)


def time_left(elapsed: float, done: int, to_do: int) -> str:
    """Say how long the rest takes at the average speed so far; "" where unknown."""
    if done <= 0 or to_do <= 0:
        return ""
    seconds = timedelta(seconds=round(elapsed / done * to_do))
    return f"left {seconds}"


@contextmanager
def progress_bar(
    what: str, total: int | None, *, shown: bool = True
) -> Iterator[Callable[[int], None]]:
    """One bar: yield a function to call with the number of rows just done."""
    done = 0
    with progress_bars(shown=shown) as report:

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            report(what, done, total)

        report(what, 0, total)
        yield advance
