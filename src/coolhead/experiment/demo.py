"""The default experiment, from nothing to tables, figures and a report."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from coolhead.experiment.figures import write_figures
from coolhead.experiment.methods import METHODS
from coolhead.experiment.printing import (
    print_outcome,
    print_table,
    sweep_with_progress,
)
from coolhead.experiment.protocol import Protocol, load_protocol
from coolhead.experiment.results import read_table
from coolhead.experiment.sweep import Outcome
from coolhead.experiment.tables import all_tables, write_tables
from coolhead.experiment.tables.scores import (
    column_mean,
    label,
    load_scores,
    proposed,
)
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
        for sentence in answers(outcome.run):
            print(sentence)
    print_outcome(outcome)
    return outcome


def answers(run: Path) -> list[str]:
    """The outcome in one sentence per classifier."""
    sentences = []
    for classifier, scores in load_scores(run).items():
        ece = {m: column_mean(scores.of(m), "ece_mean") for m in scores.methods}
        usable = [m for m in proposed(scores.methods) if not METHODS[m].sees_target]
        if "uncalibrated" not in ece or not usable:
            continue
        best = min(usable, key=lambda name: ece[name] or 0.0)
        oracle = ece.get("target-only")
        end = "" if oracle is None else f"; the oracle reaches {oracle:.1f} %"
        sentences.append(
            f"Classifier {classifier}: lowest mean ECE without any target data is "
            f"{label(best)}, {ece['uncalibrated']:.1f} % before, {ece[best]:.1f} % "
            f"after{end}."
        )
    return sentences


def write_everything(run: Path) -> None:
    """Tables as Markdown and CSV, results as CSV, figures, and the report."""
    write_tables(run, run / "tables", "markdown")
    write_tables(run, run / "tables", "csv")
    with atomic_path(run / "results.csv") as temporary:
        read_table(run, "results").write_csv(temporary)
    write_figures(run)
    if find_spec("coolhead.report") is not None:
        import_module("coolhead.report").write_report(run)
