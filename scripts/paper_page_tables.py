"""The tables of docs/paper-reproduced.md, as Markdown, from finished runs."""

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from coolhead.lab.record import read_run_record
from coolhead.lab.results import load_scores, read_table
from coolhead.lab.tables.all_tables import all_tables
from coolhead.lab.tables.by_split import ASTERISK, PAPER_METHODS
from coolhead.lab.tables.findings import check_findings
from coolhead.lab.tables.paper import Published
from coolhead.report.tables import RunScores, Table, column_mean, label, page_layout

SHOWN = (
    *("uncalibrated", "source-only", "target-only", "set-level", "nearest-cluster"),
    *("regression", "ensemble", "auto", "transcal", "wts", "cpcs"),
    *("transcal-ours", "wts-ours", "cpcs-ours"),
)


def title(run: Path) -> str:
    """What the run is called, without the data set that all have in common."""
    return read_run_record(run)["protocol"]["title"].removeprefix("Office-Home, ")


def load_only(run: Path) -> RunScores:
    """The scores of a run with one classifier."""
    (scores,) = load_scores(run).values()
    return scores


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown of a table."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def errors(runs: dict[str, Path]) -> str:
    """Mean ECE and improvement ratio of every method, the paper's first."""
    paper = Published("office_home")
    rows = []
    scores = {title: load_only(run) for title, run in runs.items()}
    for method in SHOWN:
        printed = paper.by_target(method, "all")
        row = [label(method), "" if printed is None else f"{printed[0]:.2f}"]
        rows.append(row + [ece(found, method) for found in scores.values()])
    ratios = []
    for method in SHOWN[1:]:
        printed = paper.improvement_ratio(method)
        row = [label(method), "" if printed is None else f"{printed:.2f}"]
        ratios.append(row + [ratio(found, method) for found in scores.values()])
    accuracies = [
        [
            target,
            number(paper.accuracy(target)),
            *(
                number(column_mean(s.of("uncalibrated", target=target), "accuracy"))
                for s in scores.values()
            ),
        ]
        for target in next(iter(scores.values())).targets
    ]
    head = ["paper, fine-tuned ResNet18", *runs]
    seeds = [str(len(found.seeds)) for found in scores.values()]
    rows.append(["seeds", "", *seeds])
    return "\n\n".join(
        [
            table(["ECE (%), mean of 12 splits", *head], rows),
            "TransCal, WTS and CPCS see unlabelled target images. In the rows of that "
            "name the weights are those of TransCal's released code; `our weights` are "
            "those of `coolhead.shift.density_ratio`. The oracles see target labels.",
            table(["improvement ratio", *head], ratios),
            table(["accuracy (%) on", *head], accuracies),
        ]
    )


def number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def ece(scores: RunScores, method: str) -> str:
    return number(column_mean(scores.of(method), "ece_mean"), 2)


def ratio(scores: RunScores, method: str) -> str:
    names = ("source-only", method, "target-only")
    start, own, end = (column_mean(scores.of(name), "ece_mean") for name in names)
    if start is None or own is None or end is None:
        return ""
    return f"{(start - own) / (start - end):.2f}"


def findings(runs: dict[str, Path]) -> str:
    rows: dict[str, list[str]] = {}
    for number, run in enumerate(runs.values()):
        order = read_run_record(run)["protocol"]["order"]
        tables = (read_table(run, name) for name in ("sensitivity", "shift"))
        for finding in check_findings(load_only(run), *tables, order=order):
            row = rows.setdefault(finding.claim, [""] * len(runs))
            verdict = {True: "holds: ", False: "**no**: ", None: ""}[finding.holds]
            row[number] = verdict + finding.numbers
    return table(["claim", *runs], [[claim, *cells] for claim, cells in rows.items()])


def variances(runs: dict[str, Path]) -> str:
    """Var(w) of both, split by split, averaged over the seeds."""
    columns, splits = [], {}
    for title, run in runs.items():
        shift = read_table(run, "shift")
        means = shift.group_by("split", "diagnostic").agg(pl.col("value").mean())
        for role in ("source", "calibration"):
            columns.append(f"{title}: {role}")
            wanted = means.filter(pl.col("diagnostic") == f"weight_variance_{role}")
            for split, value in wanted.select("split", "value").iter_rows():
                splits.setdefault(split, {})[columns[-1]] = value
    order = load_only(next(iter(runs.values()))).splits
    rows = [[s, *(number(splits[s].get(c), 2) for c in columns)] for s in order]
    means = [np.mean([splits[s][c] for s in order]) for c in columns]
    rows.append(["mean", *(number(float(m), 2) for m in means)])
    words = (
        "Var(w) of the density ratio towards the target, from the source's rows and "
        "from as many rows of the calibration domains, by a discriminator on 50 "
        "principal components that never judges a row it learned from, weights cut "
        "at 50. The paper argues that calibration transfers better the smaller it is."
    )
    return f"{words}\n\n{table(['Var(w)', *columns], rows)}"


def multi_source(runs: list[Path]) -> str:
    """Trained and calibrated on three domains, tested on the fourth."""
    paper = Published("office_home")
    columns = ("uncalibrated", "set-level", "ensemble", "auto", "target-only")
    head = ["target", "paper accuracy", "paper ECE"]
    head += [
        f"{title(r)}: {c}" for r in runs for c in ("accuracy", *map(label, columns))
    ]
    rows = []
    for target in load_only(runs[0]).targets:
        printed = paper.multi_source(target)
        row = [target, *(number(printed.get(c), 2) for c in ("accuracy", "ECE"))]
        for run in runs:
            scores = load_only(run)
            own = scores.of("uncalibrated", target=target)
            row.append(number(column_mean(own, "accuracy"), 2))
            for method in columns:
                found = scores.of(method, target=target)
                row.append(number(column_mean(found, "ece_mean"), 2))
        rows.append(row)
    return table(head, rows)


def formations(run: Path) -> str:
    """Plain training against MLDG on the simulated formations."""
    by_classifier = load_scores(run)
    methods = [m for m in SHOWN if m in next(iter(by_classifier.values())).methods]
    rows = [
        [label(m), *(ece(scores, m) for scores in by_classifier.values())]
        for m in methods
    ]
    paper: dict[str, dict[str, float]] = {}
    for row, column, value in Published.formations():
        paper.setdefault(row, {})[column] = value
    printed = [
        [row, *map("{:.2f}".format, cells.values())] for row, cells in paper.items()
    ]
    return "\n\n".join(
        [
            "The paper's StarCraft2 maps were never published; simulated formations on "
            "ten maps stand in for them: compare the shape, not the numbers.",
            run_table(run, "mldg-helps"),
            table(["ECE (%)", *by_classifier], rows),
            table(["ECE (%), paper", *next(iter(paper.values()))], printed),
        ]
    )


def run_table(run: Path, name: str) -> str:
    """One of the run's own tables, as it is."""
    return table(*page_layout(_tables(run)[name]))


@cache
def _tables(run: Path) -> dict[str, Table]:
    return {found.name: found for found in all_tables(run)}


def by_split(run: Path) -> str:
    """ECE of every split with its asterisks, and the printed one after a stroke."""
    header, body = page_layout(_tables(run)["by-split"])
    places = {name: number for number, name in enumerate(header)}
    shown = [label(m) for m in ("source-only", *PAPER_METHODS, "target-only")]
    rows = []
    for row in body:
        pairs = [[row[places[c]] for c in (name, f"{name}, paper")] for name in shown]
        rows.append([row[0], *(" / ".join(map(_short, pair)) for pair in pairs)])
    return table(["ECE (%), here / paper", *shown], rows)


def _short(cell: str) -> str:
    """The number and its asterisk, without spread and interval."""
    return cell.split()[0].rstrip("*†") + ("*" if "*" in cell else "")


def clear(runs: dict[str, Path]) -> str:
    """Asterisks and reductions in sd of the draws, beside the printed ones."""
    stars, counts = {}, {}
    for number, run in enumerate(runs.values()):
        for row, column, value in _values(run, "asterisks"):
            if column != "of" and row in [*map(label, PAPER_METHODS), label("auto")]:
                cells = stars.setdefault(row, [""] * (len(runs) + 1))
                cells[0 if column == "paper" else number + 1] = f"{value:.0f}"
        for row, column, value in _values(run, "sigma-counts"):
            if "post-hoc best" in row:
                who = "paper" if row.startswith("paper") else list(runs)[number]
                name = f"{row.rpartition(' against ')[2]}: {who}"
                counts.setdefault(name, {})[column] = f"{value:.0f}"
    intervals = list(next(iter(counts.values())))
    rows = sorted(
        counts.items(),
        key=lambda pair: (pair[0].partition(":")[0], not pair[0].endswith(": paper")),
    )
    return "\n\n".join(
        [
            table(
                ["splits of 12 with an asterisk", "paper, fine-tuned ResNet18", *runs],
                [[row, *cells] for row, cells in stars.items()],
            ),
            ASTERISK.replace("*", "\\*"),
            table(
                ["post-hoc best against", *intervals],
                [[name, *cells.values()] for name, cells in rows],
            ),
            "Splits and seeds by the reduction of the ECE, in sd of the draws. "
            "Post-hoc best: in each split the best of the paper's four methods, chosen "
            "by the very numbers it is judged by, as in the paper's table.",
        ]
    )


def _values(run: Path, name: str):
    return _tables(run)[name].cells.select("row", "column", "value").iter_rows()


def extraction(measured: dict) -> str:
    """What `benchmarks/extraction.py` measured: the cost of an image on its way."""
    rows = [
        [
            found["way"],
            f"{found['median']:.1f}",
            f"{found['ratio']:.1f}",
            f"{found['difference']:.2g}",
            f"{found['rms']:.2g}",
        ]
        for found in measured["extraction"]
    ]
    head = ["way", "ms of processor", "times less", "largest difference", "rms"]
    seen = measured["reduced scale"]
    return "\n\n".join(
        [
            f"Every way on the same {measured['images']} images of Office-Home in "
            "turn, in one run of `benchmarks/extraction.py`. The differences are of "
            "features, to those of the first way.",
            table(head, rows),
            "JPEGs decoded at a reduced scale change what the network sees by "
            f"{seen['reduced, mean']:.2f} grey levels on average (rms), another filter "
            f"(Lanczos' in place of the bicubic) by {seen['Lanczos, mean']:.2f}; in "
            f"{seen['share of images changed more than by Lanczos']:.0%} of the images "
            "the first is more than the second. "
            "`ImageTransform(reducing_gap=None)` decodes them in full.",
        ]
    )
