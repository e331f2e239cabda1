"""The measured results of the project: which runs, and the page made of them."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from coolhead.lab.protocol import Classifier, Protocol
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.record import read_run_record
from coolhead.lab.results import load_scores, read_table
from coolhead.lab.tables.all_tables import all_tables
from coolhead.lab.tables.comparison import against_others, harm_beyond_the_oracle
from coolhead.lab.tables.findings import check_findings
from coolhead.report.tables import Table, render_table

SHOWN = ("summary", "sensitivity", "estimators", "runtimes")
# Where the paper prints numbers for the same data, these stand beside ours.
BESIDE_PAPER = (
    *("by-target", "improvement-ratio", "asterisks", "by-split", "sigma-counts"),
    *("accuracy", "multi-source", "shift"),
)
# Of a run with several classifiers, which they are compared by.
COMPARED = ("mldg-helps", "formations")


def result_protocols(pacs: Path | None, n_seeds: int) -> list[Protocol]:
    """The bundled protocols with the common head and several seeds."""
    protocols = [load_protocol("sentiment"), load_protocol("digits")]
    if pacs is not None:
        data = {"kind": "archive", "path": str(pacs)}
        protocols.append(load_protocol("pacs", data=data))
    return [
        protocol.model_copy(
            update={
                "seeds": tuple(range(n_seeds)),
                "classifiers": {
                    name: Classifier(kind="erm", features=classifier.features)
                    for name, classifier in protocol.classifiers.items()
                },
            }
        )
        for protocol in protocols
    ]


def results_page(runs: list[Path], with_pacs: bool) -> str:
    """Markdown of all runs, with what is needed to repeat them."""
    record = read_run_record(runs[0])
    versions = ", ".join(f"{name} {v}" for name, v in record["versions"].items())
    parts = [
        "# Measured results",
        f"Written by `coolhead results{' --pacs ARCHIVE' if with_pacs else ''}` on "
        f"{record['date']}. Machine: {record['machine']}. Versions: {versions}. "
        f"Commit: {record['commit'] or 'none'}.",
        "Head: one hidden layer of 512 ReLU, dropout 0.5, AdamW 1e-3, weight decay "
        "1e-2, batches of 128, 15 epochs; on Office-Home training ends at the source's "
        "calibration rows. One seed changes classifier, Large/Small division and "
        "k-means together. ECE has 15 equal-width bins and is the mean of "
        "1000 draws without replacement. No number here is the paper's, but those that "
        "are called so.",
        "TransCal, CPCS and WTS have the importance weights of TransCal's released "
        "code (WTS's own was never released), the rows called `our weights` those of "
        "`coolhead.shift.density_ratio`.",
    ]
    return "\n\n".join(parts + [_section(run) for run in runs]) + "\n"


def _section(run: Path) -> str:
    record = read_run_record(run)
    protocol = record["protocol"]
    seeds = ", ".join(map(str, protocol["seeds"]))
    parts = [
        f"## {protocol['title']}",
        f"{record['n_cells']} cells: splits × seeds ({seeds}).",
    ]
    shown = (*SHOWN, *(() if protocol["paper"] is None else BESIDE_PAPER))
    by_classifier = load_scores(run)
    for name, scores in by_classifier.items():
        sensitivity, shift = (
            read_table(run, table).filter(pl.col("classifier") == name)
            for table in ("sensitivity", "shift")
        )
        findings = check_findings(scores, sensitivity, shift, order=protocol["order"])
        whose = "" if len(by_classifier) == 1 else f", classifier {name}"
        parts += _lines(f"The paper's findings{whose}:", findings)
        extra: list[Table | None] = [against_others(scores, "auto")]
        extra.append(harm_beyond_the_oracle(scores))
        parts += [_of(t, whose) for t in extra if t is not None]
    prefixes = (
        [f"{name}-" for name in by_classifier] if len(by_classifier) > 1 else [""]
    )
    shown = [f"{prefix}{name}" for prefix in prefixes for name in shown]
    tables = {table.name: table for table in all_tables(run)}
    parts += [_of(tables[name]) for name in (*COMPARED, *shown) if name in tables]
    failures = read_table(run, "failures")
    rows = failures.iter_rows(named=True)
    lines = (f"{row['split']}, {row['method']}: {row['error']}" for row in rows)
    parts += _lines("Failed:", lines) if len(failures) else []
    return "\n\n".join(parts)


def _of(table: Table, whose: str = "") -> str:
    return render_table(replace(table, title=f"{table.title}{whose}"), "markdown")


def _lines(head: str, sentences) -> list[str]:
    return [head, "\n".join(f"- {sentence}" for sentence in sentences)]
