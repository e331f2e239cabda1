"""Bars of progress on standard error, where that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Work inside other work adds its bars to those already on the screen.
_display: ContextVar[Callable[..., None] | None] = ContextVar("display", default=None)


@contextmanager
def progress_bars(*, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Yield ``tell(what, done, total, remark="")``; a new `what` is a new bar."""
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
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}{task.fields[remark]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, Any] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def tell(what: str, done: int, total: int | None, remark: str = "") -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total, rate="", remark="")
            elif done == 0:
                bars.reset(tasks[what], total=total)
            speed = next(t.speed for t in bars.tasks if t.id == tasks[what])
            rate = f"{speed:.1f}/s" if speed else ""
            bars.update(
                tasks[what], completed=done, total=total, rate=rate, remark=remark
            )

        with heard_by(tell):
            yield tell


@contextmanager
def heard_by(listener: Callable[..., None]) -> Iterator[None]:
    """Tell `listener` what the bars inside would show, in place of showing it."""
    token = _display.set(listener)
    try:
        yield
    finally:
        _display.reset(token)


@contextmanager
def progress_bar(
    what: str, total: int | None, *, shown: bool = True
) -> Iterator[Callable[[int], None]]:
    """One bar: yield a function to call with the number of rows just done."""
    done = 0
    with progress_bars(shown=shown) as tell:

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            tell(what, done, total)

        tell(what, 0, total)
        yield advance
