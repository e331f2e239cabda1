"""A progress bar with rate and time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    n_rows: int, shown: bool, text: str = "images"
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows just done."""
    if not shown:
        yield lambda n_done: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(text, total=n_rows, rate="")

        def advance(n_done: int) -> None:
            bar.advance(task, n_done)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:.1f}/s" if speed else "")

        yield advance
