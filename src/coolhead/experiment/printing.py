"""What a person sees in the terminal: splits, progress and the summary."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable

from coolhead.experiment.protocol import Protocol
from coolhead.experiment.splits import Split
from coolhead.experiment.sweep import Outcome, run_sweep
from coolhead.experiment.tables import Table, page_layout


def print_splits(splits: list[Split]) -> None:
    """One row per split: source, calibration, target."""
    table = RichTable("", "source", "calibration", "target")
    for number, split in enumerate(splits, 1):
        roles = (split.source, split.calibration, split.target)
        table.add_row(str(number), *(", ".join(domains) for domains in roles))
    Console().print(table)


def sweep_with_progress(
    protocol: Protocol,
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Outcome:
    """Run a sweep under progress bars, on this machine or on a Dask cluster."""
    from joblib import cpu_count, parallel_config

    with ExitStack() as stack:
        if scheduler is not None:
            from distributed import Client

            stack.enter_context(Client(scheduler))
            stack.enter_context(parallel_config("dask"))
        elif jobs is None:
            jobs = cpu_count()
        bars = stack.enter_context(_bars())
        return run_sweep(protocol, folder, jobs=jobs, report=_reporter(bars))


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _reporter(bars: Progress) -> Any:
    tasks: dict[str, Any] = {}

    def report(what: str, done: int, failed: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total, failed=0, completed=done)
        bars.update(tasks[what], completed=done, failed=failed, total=total)

    return report


def print_outcome(outcome: Outcome) -> None:
    """Where the results are, and every failure with its reason."""
    console = Console()
    done = outcome.n_cells - outcome.n_failed
    found = f", {outcome.n_found} found from before" if outcome.n_found else ""
    console.print(f"{done} of {outcome.n_cells} cells done{found}: {outcome.run}")
    for line in outcome.errors:
        console.print(f"failed: {line}", style="red", markup=False)
    report = outcome.run / "report.html"
    if report.is_file():
        console.print(f"open {report}", soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a table and its notes."""
    header, body = page_layout(table)
    drawn = RichTable(
        title=table.title,
        title_justify="left",
        box=SIMPLE,
        padding=(0, 1),
        pad_edge=False,
    )
    for number, name in enumerate(header):
        drawn.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in body:
        drawn.add_row(*row)
    console = Console()
    console.print(drawn)
    for note in table.notes:
        console.print(note, style="dim", markup=False)
