"""The tables of docs/paper-reproduced.md, as Markdown, from finished runs."""

from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from coolhead.lab.record import read_run_record
from coolhead.lab.results import load_scores, read_table
from coolhead.lab.tables.all_tables import all_tables
from coolhead.lab.tables.by_split import ASTERISK, PAPER_METHODS
from coolhead.lab.tables.comparison import mean_interval, ratio_difference
from coolhead.lab.tables.findings import Claim, check_findings, untested_claims
from coolhead.lab.tables.paper import Published, paper_table
from coolhead.methods import find_method
from coolhead.report.tables import (
    RunScores,
    Table,
    column_mean,
    label,
    page_layout,
    split_means,
)

PAPER = Published("office_home")
REFERENCES = ("uncalibrated", "source-only", "target-only")
RIVALS = ("transcal", "wts")
SHOWN = (*REFERENCES, *PAPER_METHODS, "set-level-equal", "auto", *RIVALS)
UNLABELLED = (
    *(*RIVALS, "cpcs", "transcal-ours", "wts-ours", "cpcs-ours"),
    *("wts-calibration", "weighted-cluster", "chosen-domains"),
)
OTHERS = (
    *("vector", "matrix", "bcts", "histogram", "isotonic"),
    *("ets", "pts", "dac", "md-ts"),
)
CDAN = " (CDAN)"


class Run:
    """A finished run under a letter."""

    def __init__(self, letter: str, path: Path):
        self.letter, self.path = letter, path

    @cached_property
    def record(self) -> dict[str, Any]:
        return read_run_record(self.path)

    @property
    def title(self) -> str:
        """What the run is called, without the data set that all have in common."""
        title = self.record["protocol"]["title"].removeprefix("Office-Home, ")
        return f"{self.letter}: {title}"

    @cached_property
    def scores(self) -> RunScores:
        (scores,) = load_scores(self.path).values()
        return scores

    def table(self, name: str) -> pl.DataFrame:
        """One of the result files."""
        return read_table(self.path, name)

    @cache  # noqa: B019 (lives as long as the script)
    def layouts(self) -> dict[str, Table]:
        """The run's own tables, by name."""
        return {found.name: found for found in all_tables(self.path)}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown of a table."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def origin(runs: Iterable[Run]) -> str:
    """The line under a table: what it was made from."""
    shown = [f"{r.letter} (data `{r.record['data_checksum']}`)" for r in runs]
    return f"From runs {', '.join(shown)}; their commands: [The runs](#the-runs)."


def number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def ece(scores: RunScores, method: str) -> str:
    return number(column_mean(scores.of(method), "ece_mean"))


def ratio(scores: RunScores, method: str) -> str:
    names = ("source-only", method, "target-only")
    start, own, end = (column_mean(scores.of(name), "ece_mean") for name in names)
    if start is None or own is None or end is None:
        return ""
    return f"{(start - own) / (start - end):.2f}"


def printed(value: float | None, method: str) -> str:
    """A number of the paper; that of a rival is of another network."""
    return number(value) + (CDAN if value is not None and method in RIVALS else "")


RIVALS_NOTE = (
    "(CDAN): the paper took its figures of TransCal and WTS from their papers, where "
    "they stand for networks adapted to the target by CDAN, with other errors before "
    "calibration. Ours are on networks that were not adapted, with the weights of "
    "TransCal's released code."
)


def errors(runs: list[Run]) -> str:
    """Mean ECE, improvement ratio and accuracy, the paper's first."""
    rows, ratios = [], []
    for method in SHOWN:
        mean = PAPER.by_target(method, "all")
        value = None if mean is None else mean[0]
        cells = [ece(run.scores, method) for run in runs]
        rows.append([label(method), printed(value, method), *cells])
        if method not in REFERENCES:
            value = PAPER.improvement_ratio(method)
            cells = [ratio(run.scores, method) for run in runs]
            ratios.append([label(method), printed(value, method), *cells])
    rows.append(["seeds", "", *(str(len(run.scores.seeds)) for run in runs)])
    accuracies = [
        [target, number(PAPER.accuracy(target)), *(_accuracy(r, target) for r in runs)]
        for target in runs[0].scores.targets
    ]
    head = ["paper, fine-tuned ResNet18", *(run.title for run in runs)]
    return "\n\n".join(
        [
            table(["ECE (%), mean of 12 splits", *head], rows),
            RIVALS_NOTE,
            origin(runs),
            table(["improvement ratio", *head], ratios),
            origin(runs),
            table(["accuracy (%) on", *head], accuracies),
            origin(runs),
        ]
    )


def _accuracy(run: Run, target: str) -> str:
    found = run.scores.of("uncalibrated", target=target)
    return number(column_mean(found, "accuracy"))


def moved(before: Run, after: Run) -> str:
    """How far the errors of two runs lie apart, over the seeds that both have."""
    rows, seeds = [], set(before.scores.seeds) & set(after.scores.seeds)
    both = [
        RunScores(run.scores.frame.filter(pl.col("seed").is_in(list(seeds))))
        for run in (before, after)
    ]
    for method in ("uncalibrated", *PAPER_METHODS):
        first, second = (split_means(scores, method) for scores in both)
        change = mean_interval(second - first)
        shown = f"{change.estimate:.2f} [{change.low:.2f}, {change.high:.2f}]"
        rows.append(
            [label(method), f"{first.mean():.2f}", f"{second.mean():.2f}", shown]
        )
    head = ["ECE (%)", before.letter, after.letter, "difference [95 % interval]"]
    head[0] += f", seeds {', '.join(map(str, sorted(seeds)))}"
    return f"{table(head, rows)}\n\n{origin([before, after])}"


def harm(runs: list[Run]) -> str:
    """Splits in which a method is worse than uncalibrated, beside the paper's own."""
    rows = []
    for method in ("source-only", *PAPER_METHODS, "auto", *RIVALS):
        counts = PAPER.splits_harmed(method) if method not in RIVALS else None
        cells = ["" if counts is None else str(counts[0])]
        for run in runs:
            own, before = (
                split_means(run.scores, name) for name in (method, "uncalibrated")
            )
            known = method in run.scores.methods
            cells.append(str(int((own > before).sum())) if known else "")
        rows.append([label(method), *cells])
    head = ["splits of 12 worse than uncalibrated", "paper", *(r.title for r in runs)]
    return f"{table(head, rows)}\n\n{origin(runs)}"


def claims(runs: list[Run], several: dict[str, Run]) -> str:
    """Every claim with a verdict for each run; `several` by letter of the run."""
    rows: dict[str, dict[str, Claim]] = {}
    for run in runs:
        own = run.table("sensitivity"), run.table("shift")
        joint = several.get(run.letter)
        found = check_findings(
            run.scores,
            *own,
            order=run.record["protocol"]["order"],
            published=PAPER,
            several_sources=None if joint is None else joint.scores,
        )
        for claim in found:
            rows.setdefault(claim.claim, {})[run.letter] = claim
    for claim in untested_claims():
        rows[claim.claim] = {run.letter: claim for run in runs}
    lines = [
        [
            name,
            next(iter(cells.values())).paper,
            *(_cell(cells.get(run.letter)) for run in runs),
        ]
        for name, cells in rows.items()
    ]
    head = ["claim", "paper", *(run.title for run in runs)]
    return f"{table(head, lines)}\n\n{origin([*runs, *several.values()])}"


def _cell(claim: Claim | None) -> str:
    if claim is None:
        return ""
    verdict = f"**{claim.verdict}**: " if claim.verdict else ""
    return verdict + claim.numbers


def verdict_counts(runs: list[Run], several: dict[str, Run]) -> str:
    """How many claims hold."""
    text = claims(runs, several)
    rows = []
    for verdict in ("holds", "unclear", "fails", "not tested here"):
        columns = [line.split(" | ")[2:] for line in text.splitlines() if "|" in line]
        counts = [
            sum(
                f"**{verdict}**" in line[column]
                for line in columns
                if len(line) > column
            )
            for column in range(len(runs))
        ]
        rows.append([verdict, *map(str, counts)])
    head = ["claims", *(run.title for run in runs)]
    return f"{table(head, rows)}\n\n{origin(runs)}"


def unlabelled(runs: list[Run]) -> str:
    """The mode with unlabelled target images, against set-level without them."""
    rows = []
    for method in ("set-level", *UNLABELLED):
        cells = []
        for run in runs:
            cells += [ece(run.scores, method), ratio(run.scores, method)]
            cells.append("" if method == "set-level" else _against(run, method))
        where = "source" if "source" in find_method(method).rows else "calibration"
        rows.append([label(method), where, *cells])
    head = [
        f"{run.letter}: {name}"
        for run in runs
        for name in ("ECE (%)", "IR", "IR minus set-level's")
    ]
    return "\n\n".join(
        [table(["method", "labelled rows of", *head], rows), origin(runs)]
    )


def _against(run: Run, method: str) -> str:
    found = ratio_difference(run.scores, method, "set-level")
    if found is None:
        return ""
    return f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]"


def temperatures_of_one(runs: list[Run]) -> str:
    """How often TransCal does nothing."""
    rows = []
    for method in ("transcal", "transcal-ours"):
        cells = []
        for run in runs:
            found = run.table("temperature").filter(
                pl.col("method") == method, pl.col("quantile") == 0.5
            )["value"]
            ones = int((found == 1.0).sum())
            cells.append(f"{ones} of {len(found)}" if len(found) else "")
        rows.append([label(method), *cells])
    head = ["splits and seeds with T = 1", *(run.title for run in runs)]
    return f"{table(head, rows)}\n\n{origin(runs)}"


def others(runs: list[Run]) -> str:
    """Other published methods, fitted on the calibration domains."""
    rows = [
        [
            label(method),
            *(
                cell
                for run in runs
                for cell in (
                    ece(run.scores, method),
                    number(column_mean(run.scores.of(method), "nll")),
                    _accuracy_change(run, method),
                )
            ),
        ]
        for method in ("set-level", "ensemble", *OTHERS)
    ]
    names = ("ECE (%)", "NLL", "accuracy changes by")
    head = [f"{run.letter}: {name}" for run in runs for name in names]
    return f"{table(['method', *head], rows)}\n\n{origin(runs)}"


def _accuracy_change(run: Run, method: str) -> str:
    after, before = (
        column_mean(run.scores.of(name), "accuracy")
        for name in (method, "uncalibrated")
    )
    return "" if after is None or before is None else f"{after - before:+.2f}"


ABLATIONS = {
    "rows": "share of the calibration rows",
    "domains": "number of calibration domains (3: with the source)",
    "bins": "bins of the ECE",
}


def ablations(runs: list[Run]) -> str:
    """ECE by share of rows, number of domains, number of bins."""
    parts = []
    for what, words in ABLATIONS.items():
        methods = [*PAPER_METHODS]
        if what == "bins":
            methods = ["uncalibrated", "source-only", *methods, "target-only"]
        for run in runs:
            found = run.table("ablation").filter(pl.col("what") == what)
            levels = list(dict.fromkeys(found["level"]))
            means = found.group_by("method", "level").agg(pl.col("ece").mean() * 100)
            cells = {row[:2]: row[2] for row in means.iter_rows()}
            rows = [
                [label(m), *(number(cells.get((m, level))) for level in levels)]
                for m in methods
            ]
            parts.append(table([f"{run.letter}, ECE (%) by {words}", *levels], rows))
        parts.append(origin(runs))
    return "\n\n".join(parts)


def clusters(runs: list[Run]) -> str:
    """ECE by number of clusters."""
    parts = []
    for run in runs:
        head, rows = page_layout(run.layouts()["sensitivity"])
        parts.append(table([f"{run.letter}, ECE (%)", *head[1:]], rows))
    return "\n\n".join([*parts, origin(runs)])


def variances(runs: list[Run]) -> str:
    """Var(w) of both, split by split, averaged over the seeds."""
    columns, splits = [], {}
    for run in runs:
        groups = run.table("shift").group_by("split", "diagnostic")
        means = groups.agg(pl.col("value").mean())
        for role in ("source", "calibration"):
            columns.append(f"{run.letter}: {role}")
            wanted = means.filter(pl.col("diagnostic") == f"weight_variance_{role}")
            for split, value in wanted.select("split", "value").iter_rows():
                splits.setdefault(split, {})[columns[-1]] = value
    order = runs[0].scores.splits
    rows = [[s, *(number(splits[s].get(c)) for c in columns)] for s in order]
    means = [np.mean([splits[s][c] for s in order]) for c in columns]
    rows.append(["mean", *(number(float(m)) for m in means)])
    words = (
        "Var(w) of the density ratio towards the target, from the source's rows and "
        "from as many rows of the calibration domains, by a discriminator on 50 "
        "principal components. It is applied only to rows that it was not fitted on, "
        "and weights are cut at 50."
    )
    return f"{words}\n\n{table(['Var(w)', *columns], rows)}\n\n{origin(runs)}"


def multi_source(run: Run, single: Run) -> str:
    """Trained and calibrated on three domains, tested on the fourth."""
    columns = ("uncalibrated", "set-level", "ensemble", "auto", "target-only")
    head = ["target", "paper: accuracy", "paper: ECE", "accuracy", *map(label, columns)]
    head.append(f"Ensemble, one source ({single.letter})")
    rows = []
    for target in run.scores.targets:
        shown = PAPER.multi_source(target)
        row = [target, *(number(shown.get(name)) for name in ("accuracy", "ECE"))]
        row.append(_accuracy(run, target))
        for method in columns:
            found = run.scores.of(method, target=target)
            row.append(number(column_mean(found, "ece_mean")))
        one = single.scores.of("ensemble", target=target)
        rows.append([*row, number(column_mean(one, "ece_mean"))])
    return f"{table(head, rows)}\n\n{origin([run, single])}"


def by_split(run: Run) -> str:
    """ECE of every split with its asterisks, and the printed one after a stroke."""
    header, body = page_layout(run.layouts()["by-split"])
    places = {name: number for number, name in enumerate(header)}
    shown = [label(m) for m in ("source-only", *PAPER_METHODS, "target-only")]
    rows = []
    for row in body:
        pairs = [[row[places[c]] for c in (name, f"{name}, paper")] for name in shown]
        rows.append([row[0], *(" / ".join(map(_short, pair)) for pair in pairs)])
    return f"{table(['ECE (%), here / paper', *shown], rows)}\n\n{origin([run])}"


def _short(cell: str) -> str:
    """The number and its asterisk, without spread and interval."""
    return cell.split()[0].rstrip("*†") + ("\\*" if "*" in cell else "")


def gains(run: Run) -> str:
    """Calibration gain of every split beside the printed one, with intervals."""
    header, body = page_layout(run.layouts()["gain"])
    places = {name: number for number, name in enumerate(header)}
    rows = []
    for row in body:
        for name in map(label, ("source-only", *PAPER_METHODS)):
            pair = [row[places[c]] for c in (name, f"{name}, paper")]
            rows.append([row[0], name, *(cell.replace("*", "\\*") for cell in pair)])
    head = ["split", "method", "here [95 % of the draws]", "paper [95 % of the draws]"]
    return f"{table(head, rows)}\n\n{origin([run])}"


def clear(runs: list[Run]) -> str:
    """Asterisks and reductions in sd of the draws, beside the printed ones."""
    stars: dict[str, list[str]] = {}
    counts: dict[str, dict[str, str]] = {}
    for place, run in enumerate(runs):
        for row, column, value in _values(run, "asterisks"):
            if column != "of" and row in map(label, (*PAPER_METHODS, "auto")):
                cells = stars.setdefault(row, [""] * (len(runs) + 1))
                cells[0 if column == "paper" else place + 1] = f"{value:.0f}"
        for row, column, value in _values(run, "sigma-counts"):
            if "post-hoc best" in row:
                who = "paper (CDAN)" if row.startswith("paper") else run.title
                name = f"{row.rpartition(' against ')[2]}: {who}"
                counts.setdefault(name, {})[column] = f"{value:.0f}"
    intervals = list(next(iter(counts.values())))
    rows = sorted(counts.items(), key=lambda pair: _paper_first(pair[0]))
    head = ["paper, fine-tuned ResNet18", *(run.title for run in runs)]
    return "\n\n".join(
        [
            table(
                ["splits of 12 with an asterisk", *head],
                [[row, *cells] for row, cells in stars.items()],
            ),
            ASTERISK.replace("*", "\\*"),
            origin(runs),
            table(
                ["post-hoc best against", *intervals],
                [[name, *cells.values()] for name, cells in rows],
            ),
            "Splits and seeds by the reduction of the ECE, in standard deviations of "
            "the draws. Post-hoc best: in each split the best of the paper's four "
            "methods, chosen by the errors that it is judged by, as in the paper.",
            origin(runs),
            _domainnet(),
        ]
    )


def _paper_first(name: str) -> tuple[str, bool]:
    rival, _, who = name.partition(": ")
    return rival, not who.startswith("paper")


def _domainnet() -> str:
    """The printed marks of the data that cannot be had here."""
    long = paper_table("domainnet_by_split_long")
    marked = long.filter(pl.col("significant_vs_source_only").is_not_null())
    counts = marked.group_by("method", maintain_order=True).agg(
        pl.col("significant_vs_source_only").sum(),
        splits=pl.len(),
        bold=pl.col("bold").sum(),
    )
    names = {find_method(m).paper: label(m) for m in PAPER_METHODS}
    rows = [
        [names[method], f"{stars} of {splits}", f"{bold} of {splits}"]
        for method, stars, splits, bold in counts.iter_rows()
    ]
    head = ["DomainNet, printed in the paper", "asterisks", "bold (best of the split)"]
    return f"{table(head, rows)}\n\nNot reproduced; printed marks alone."


def _values(run: Run, name: str):
    return run.layouts()[name].cells.select("row", "column", "value").iter_rows()


def commands(runs: list[Run]) -> str:
    """What each run was made by."""
    rows = []
    for run in runs:
        record = run.record
        command = (
            record["command"].replace("__main__.py", "coolhead").replace("|", "\\|")
        )
        rows.append(
            [
                run.title,
                f"`{command}`",
                f"`{record['data_checksum']}`",
                f"`{record['commit']}`",
                record["date"],
                str(record["n_cells"]),
            ]
        )
    head = ["run", "command", "data checksum", "commit", "date", "splits × seeds"]
    return table(head, rows)
