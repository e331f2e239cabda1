"""The default experiment, from nothing to tables, figures and a report."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from coolhead.experiment.figures import write_figures
from coolhead.experiment.printing import (
    print_outcome,
    print_table,
    sweep_with_progress,
)
from coolhead.experiment.protocol import Protocol, load_protocol
from coolhead.experiment.results import read_table
from coolhead.experiment.sweep import Outcome
from coolhead.experiment.tables import all_tables, write_tables
from coolhead.files import atomic_path


def run_demo(folder: str | Path = "runs", *, jobs: int | None = None) -> Outcome:
    """Run the bundled sentiment experiment and show what came out."""
    return run_and_show(load_protocol("sentiment"), Path(folder), jobs=jobs)


def run_and_show(
    protocol: Protocol,
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Outcome:
    """Sweep a protocol, write tables, figures and report, print the summary."""
    outcome = sweep_with_progress(protocol, folder, jobs=jobs, scheduler=scheduler)
    if not read_table(outcome.run, "results").is_empty():
        write_everything(outcome.run)
        for table in all_tables(outcome.run):
            if table.name.endswith("summary"):
                print_table(table)
    print_outcome(outcome)
    return outcome


def write_everything(run: Path) -> None:
    """Tables as Markdown and CSV, results as CSV, figures, and the report."""
    write_tables(run, run / "tables", "markdown")
    write_tables(run, run / "tables", "csv")
    with atomic_path(run / "results.csv") as temporary:
        read_table(run, "results").write_csv(temporary)
    write_figures(run)
    if find_spec("coolhead.report") is not None:
        import_module("coolhead.report").write_report(run)
