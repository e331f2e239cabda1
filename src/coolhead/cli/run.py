"""Run an experiment in front of a person: progress, pages, summary and answer."""

from pathlib import Path

from coolhead.cli.terminal import print_table, visible
from coolhead.experiment.protocol import Protocol
from coolhead.experiment.sweep import Outcome, run_sweep
from coolhead.experiment.tables import Table


def sweep_with_progress(
    protocol: Protocol,
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Outcome:
    """Run a sweep under progress bars, on this machine or on a Dask cluster."""
    from joblib import cpu_count

    from coolhead.progress import progress_bars

    if scheduler is None and jobs is None:
        jobs = cpu_count()
    with progress_bars() as tell:

        def report(what: str, done: int, failed: int, total: int) -> None:
            tell(what, done, total, f" {failed} failed")

        return run_sweep(
            protocol, folder, jobs=jobs, scheduler=scheduler, report=report
        )


def run_and_show(
    protocol: Protocol,
    folder: Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Outcome:
    """Sweep a protocol, write tables, figures and report, print the summary."""
    from coolhead.experiment.results import read_table
    from coolhead.experiment.tables import all_tables
    from coolhead.experiment.tables.answer import answers

    outcome = sweep_with_progress(protocol, folder, jobs=jobs, scheduler=scheduler)
    if not read_table(outcome.run, "results").is_empty():
        tables = all_tables(outcome.run)
        write_pages(outcome.run, tables)
        for table in tables:
            if table.name.endswith("summary"):
                show_table(table)
        for sentence in answers(outcome.run):
            print(visible(sentence))
    show_outcome(outcome)
    return outcome


def write_pages(run: Path, tables: list[Table]) -> None:
    """Tables as Markdown and CSV, results as CSV, figures, and the report."""
    from coolhead.experiment.figures import write_figures
    from coolhead.experiment.results import write_results_csv
    from coolhead.experiment.tables import write_tables
    from coolhead.report import write_report

    for form in ("markdown", "csv"):
        write_tables(tables, run / "tables", form)
    write_results_csv(run)
    write_figures(run)
    write_report(run, tables=tables)


def show_table(table: Table) -> None:
    """Print a table and its notes."""
    from coolhead.experiment.tables import page_layout

    header, body = page_layout(table)
    print_table(header, body, table.title, table.notes)


def show_outcome(outcome: Outcome) -> None:
    """Where the results are, every failure with its reason, what was not checked."""
    done = outcome.n_cells - outcome.n_failed
    found = f", {outcome.n_found} found from before" if outcome.n_found else ""
    print(f"{done} of {outcome.n_cells} cells done{found}: {visible(outcome.run)}")
    for head, lines in (("failed", outcome.errors), ("note", outcome.notes)):
        for line in lines:
            print(f"{head}: {visible(line)}")
    report = outcome.run / "report.html"
    if report.is_file():
        print(f"open {visible(report)}")
