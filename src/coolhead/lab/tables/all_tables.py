"""Every table of a run, from its result files alone."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from coolhead.io.files import write_text
from coolhead.lab.record import read_run_record
from coolhead.lab.results import load_scores, read_or_empty, read_table
from coolhead.lab.scoring import metric_name
from coolhead.lab.tables import averages, by_split, others
from coolhead.lab.tables.paper import Published
from coolhead.report.results import file_safe
from coolhead.report.tables import (
    FORMATS,
    RunScores,
    Table,
    page_layout,
    render_table,
)

__all__ = ["Table", "all_tables", "page_layout", "render_table", "write_tables"]


def all_tables(run: str | Path) -> list[Table]:
    """All tables of a run; with several classifiers each has its own."""
    protocol = read_run_record(run)["protocol"]
    multi_source = protocol["roles"]["calibrate_on"] == "source"
    # The paper's tables are of one experiment each; others have nothing beside them.
    paper = None if protocol["paper"] is None else Published(protocol["paper"])
    by_classifier = load_scores(run)
    tables: list[Table] = []
    for name, scores in by_classifier.items():
        evaluation = protocol["evaluation"]
        n_bootstrap = evaluation["bootstrap"]
        own = _tables_of(run, name, scores, paper, multi_source, n_bootstrap)
        own.append(averages.bins(scores, evaluation["bins"], evaluation["other_bins"]))
        names = [metric_name(name) for name in evaluation.get("metrics", ())]
        own += [others.own_metrics(scores, names)] if names else []
        tables += own if len(by_classifier) == 1 else [_named(t, name) for t in own]
    if protocol["data"]["kind"] == "formations":
        tables.append(averages.formations(by_classifier))
    if {"plain", "mldg"} <= by_classifier.keys():
        tables.append(
            others.does_it_help(by_classifier["plain"], by_classifier["mldg"])
        )
    return tables


def _tables_of(
    run: str | Path,
    name: str,
    scores: RunScores,
    paper: Published | None,
    multi_source: bool,
    n_bootstrap: int,
) -> list[Table]:
    beside = None if multi_source else paper
    compared = "uncalibrated" in scores.methods
    starred = compared and beside is not None and beside.dataset == "office_home"
    own = pl.col("classifier") == name
    tables = [
        averages.summary(scores),
        averages.by_target(scores, beside),
        by_split.ece_by_split(scores, beside, n_bootstrap=n_bootstrap),
        by_split.asterisks(scores, beside) if beside and starred else None,
        by_split.gain_by_split(scores, beside) if compared else None,
        averages.improvement_ratios(scores, beside),
        by_split.reductions_in_sigma(scores, beside),
        by_split.harm(scores) if compared else None,
        by_split.harm_by_split(scores) if compared else None,
        averages.accuracy(scores, beside),
        averages.multi_source(scores, paper) if multi_source else None,
        others.adaptations(read_or_empty(run, "adaptation").filter(own)),
        by_split.sensitivity(read_table(run, "sensitivity").filter(own)),
        others.shift(read_table(run, "shift").filter(own)),
        others.runtimes(read_table(run, "runtimes").filter(own)),
    ]
    return [table for table in tables if table is not None]


def _named(table: Table, classifier: str) -> Table:
    return replace(
        table,
        name=f"{classifier}-{table.name}",
        title=f"{table.title}: classifier {classifier}",
    )


def write_tables(tables: list[Table], folder: str | Path, form: str) -> list[Path]:
    """Write one file per table; return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for table in tables:
        text = render_table(table, form)
        # A name that came from a file of the user stays inside the folder.
        path = folder / f"{file_safe(table.name)}.{FORMATS[form]}"
        write_text(path, text + "\n")
        paths.append(path)
    return paths
