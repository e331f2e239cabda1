"""One table with every split and method: the numbers behind all figures."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from coolhead.figures.maps import cell_text, change_steps, changes
from coolhead.report.answer import BEFORE, describe_answer, plural
from coolhead.report.diagnostics import (
    abstention,
    arrival_section,
    example_strip,
    fit_statuses,
    shift_rows,
    target_shape,
)
from coolhead.report.plot import feature_map, reliability_panel
from coolhead.report.tables import (
    RunScores,
    Table,
    TableBuilder,
    label,
    page_layout,
    render_table,
    scores_by_classifier,
    seen_of_target,
)


@dataclass(frozen=True)
class ReportData:
    """Everything the page shows.

    Attributes
    ----------
    title : heading of the page.
    frames : {name: table} by the names of `coolhead.lab.results`.
    tables : the finished tables, in order.
    planned : names of the methods that were asked for.
    facts : what is needed to repeat it, {name: text}.
    noun : what a row of the results is called: "split" or "domain".
    judged : the rows the answer rests on, where not on all: domains that the
        calibrator has not seen.
    order : along what the list of domains runs, if along something.
    """

    title: str
    frames: dict[str, pl.DataFrame]
    tables: list[Table]
    planned: tuple[str, ...]
    facts: dict[str, str]
    noun: str = "split"
    judged: tuple[str, ...] | None = None
    order: str | None = None


COLUMNS = {
    "ECE (%)": "ece_mean",
    "null": "ece_null",
    "debiased": "ece_debiased",
    "class-wise": "ece_classwise",
    "one class": "ece_class",
    "signed gap": "signed_gap",
    "NLL": "nll",
    "Brier": "brier",
    "gain": "gain",
    "accuracy": "accuracy",
    "median T": "temperature_median",
    "rows": "n_evaluated",
}
CHANGE = "change of ECE"


def scores_table(scores: RunScores, noun: str) -> Table:
    """Scores by split and method, averaged over the seeds."""
    cells = TableBuilder()
    frame = scores.frame
    numeric = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    groups = frame.group_by("split", "method", maintain_order=True)
    rows = groups.agg(pl.col(numeric).mean()).to_dicts()
    present = {n: c for n, c in COLUMNS.items() if c in numeric}
    for row in rows:
        name = f"{row['split']} · {label(row['method'])}"
        for column, metric in present.items():
            cells.add(name, column, row[metric])
            if metric == "ece_mean":
                _add_change(cells, name, row)
    classifier = frame["classifier"][0]
    notes = (
        "ECE, gap, Brier, gain and accuracy in per cent. Change: against uncalibrated, "
        "on all rows, with its 95 % paired bootstrap interval; negative is better.",
    )
    title = f"All scores by {noun} and method"
    name = f"all-scores-{classifier}"
    return Table(name, title, cells.frame(), notes, f"{noun} · method")


def _add_change(cells: TableBuilder, name: str, row: dict[str, Any]) -> None:
    parts = [row.get(f"ece_vs_uncalibrated{end}") for end in ("", "_low", "_high")]
    if None not in parts:
        cells.add(name, CHANGE, parts[0], low=parts[1], high=parts[2])
    else:
        cells.add(name, CHANGE, None)


def heat_rows(
    scores: RunScores, failures: pl.DataFrame, chosen: str | None
) -> dict[str, Any]:
    """Cells of text and CSS class; the number is the ECE, the colour its change."""
    means = scores.frame.group_by("split", "method").agg(pl.col("ece_mean").mean())
    ece = {(split, method): value for split, method, value in means.iter_rows()}
    failed = [s for s in dict.fromkeys(failures["split"]) if s not in scores.splits]
    splits, methods = [*scores.splits, *failed], scores.methods
    values = np.array([[ece.get((s, m)) for m in methods] for s in splits], float)
    moved = changes(values, methods, BEFORE)
    table = zip(splits, values, moved, change_steps(moved), strict=True)
    rows = [
        {"split": split, "cells": [_cell(*cell) for cell in zip(*row, strict=True)]}
        for split, *row in table
    ]
    heads = [(label(name), name == chosen) for name in methods]
    return {"methods": heads, "rows": rows}


def _cell(ece: float, change: float, step: str) -> dict[str, str]:
    text = cell_text(ece, step)
    if np.isnan(ece):
        return {"text": text, "step": "none", "title": "failed or not run"}
    if not step:
        return {"text": text, "step": "plain", "title": ""}
    title = f"{change:+.1f} points against uncalibrated".replace("-", "−")
    return {"text": text, "step": step, "title": title}


def summarise(data: ReportData) -> dict[str, Any]:
    """Everything the templates need, as strings, numbers, lists and dictionaries."""
    sized, without_rows = _with_rows(data.frames["results"])
    by_classifier = scores_by_classifier(sized) if len(sized) else {}
    parts = [
        summarise_classifier(data, name, scores)
        for name, scores in by_classifier.items()
    ]
    failures = data.frames["failures"].to_dicts()
    extra = [scores_table(scores, data.noun) for scores in by_classifier.values()]
    return {
        "title": data.title,
        "noun": data.noun,
        "order": data.order,
        "facts": data.facts,
        "lead": _lead(by_classifier, data),
        "classifiers": parts,
        "several": len(parts) > 1,
        "failures": [row | {"label": _who(row["method"])} for row in failures],
        "without_rows": without_rows,
        "never_ran": _never_ran(data, sized),
        "notes": _notes(data.frames["notes"]),
        "tables": [page_table(table) for table in [*data.tables, *extra]],
    }


def summarise_classifier(
    data: ReportData, name: str, scores: RunScores
) -> dict[str, Any]:
    """The sections of one classifier."""
    own = pl.col("classifier") == name
    frames = {key: frame.filter(own) for key, frame in data.frames.items()}
    answer = _answer(data, scores)
    # A number and its unit stay on one line.
    answer["sentence"] = answer["sentence"].replace(" %", "\N{NO-BREAK SPACE}%")
    after = answer["method"]
    return {
        "name": name,
        "answer": answer,
        "heat": heat_rows(scores, frames["failures"], after),
        "splits": _splits(scores, frames, after),
        "maps": _maps(frames["map"], frames["shift"], scores.splits),
        "shift": shift_rows(frames["shift"]),
        "abstention": abstention(frames["histogram"], after),
        "examples": example_strip(frames["examples"], after),
        "arrival": arrival_section(frames["arrival"], data.noun),
        "seeing": _seeing(scores.methods),
        "statuses": fit_statuses(frames["status"]),
        "shape": None if data.order is None else target_shape(scores, after),
        "frames": frames,
        "has_temperatures": len(frames["temperature"]) > 0,
    }


def _seeing(methods: list[str]) -> str:
    """What is seen of the target and by whom, in words: each kind once."""
    who: dict[str, list[str]] = {}
    for name in methods:
        if words := seen_of_target(name):
            # Some names hold a comma.
            who.setdefault(words, []).append(label(name).replace(", ", " with "))
    return "; ".join(f"{words}: {', '.join(names)}" for words, names in who.items())


def _answer(data: ReportData, scores: RunScores) -> dict[str, Any]:
    if data.judged is None:
        return describe_answer(scores, data.noun)
    unseen = RunScores(scores.frame.filter(pl.col("split").is_in(data.judged)))
    return describe_answer(unseen, f"unseen {data.noun}")


def page_table(table: Table) -> dict[str, Any]:
    """A table as text, with its CSV as a link that needs no server."""
    header, body = page_layout(table)
    text = render_table(table, "csv") + "\n"
    return {
        "name": table.name,
        "title": table.title,
        "header": header,
        "body": body,
        "notes": table.notes,
        "csv": "data:text/csv;charset=utf-8;base64,"
        + b64encode(text.encode("utf-8")).decode(),
    }


def _with_rows(results: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The results without those of empty targets, and the names of the latter."""
    empty = results.filter(pl.col("metric") == "n_evaluated", pl.col("value") == 0)
    names = list(dict.fromkeys(empty["split"]))
    return results.filter(~pl.col("split").is_in(names)), names


def _splits(
    scores: RunScores, frames: dict[str, pl.DataFrame], after: str | None
) -> list[dict[str, Any]]:
    """For each split the diagrams before and after, then those of all others."""
    bins = frames["reliability"].partition_by("split", "method", as_dict=True)
    keys = ("split", "source", "calibration", "target")
    named = {
        row["split"]: row for row in scores.frame.select(keys).iter_rows(named=True)
    }
    errors = _errors_by_split(frames["failures"])
    found = []
    for split in [*scores.splits, *(s for s in errors if s not in named)]:
        panels = [
            _panel(scores, bins, split, method)
            for method in scores.methods
            if (split, method) in bins
        ]
        first = {panel["method"]: panel for panel in panels}
        found.append(
            named.get(split, {"split": split})
            | {
                "before": first.pop(BEFORE, None),
                "after": first.pop(after, None),
                "others": list(first.values()),
                "errors": errors.get(split, []),
            }
        )
    return found


def _panel(scores: RunScores, bins: dict, split: str, method: str) -> dict[str, Any]:
    numbers = scores.of(method, split=split).select(
        pl.col("ece_mean", "ece_null").mean()
    )
    ece, null = numbers.row(0)
    return {
        "method": method,
        "label": label(method),
        "ece": "–" if ece is None else f"{ece:.1f}",
        "null": "–" if null is None else f"{null:.1f}",
    } | reliability_panel(bins[split, method])


def _errors_by_split(failures: pl.DataFrame) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    for row in failures.iter_rows(named=True):
        text = f"{_who(row['method'])}: {row['error']}"
        errors.setdefault(row["split"], []).append(text)
    return errors


def _maps(
    points: pl.DataFrame, shift: pl.DataFrame, splits: list[str]
) -> list[dict[str, Any]]:
    """The map of every split; of several seeds the first is drawn."""
    outside = shift.filter(pl.col("diagnostic") == "share_outside")
    shares = dict(outside.group_by("split").agg(pl.col("value").mean()).iter_rows())
    found = []
    for split in splits:
        own = points.filter(pl.col("split") == split)
        if not own.is_empty():
            own = own.filter(pl.col("seed") == own["seed"].min())
            share = shares.get(split)
            text = None if share is None else f"{100 * share:.0f} %"
            found.append({"split": split, "outside": text} | feature_map(own))
    return found


def _lead(by_classifier: dict[str, RunScores], data: ReportData) -> str:
    """One line under the title: how much there is."""
    if not by_classifier:
        return "No cell finished."
    some = next(iter(by_classifier.values()))
    parts = [
        plural(len(some.splits), data.noun),
        plural(len(some.methods), "method"),
    ]
    if data.noun == "split":
        parts.append(plural(len(some.seeds), "seed"))
    if len(by_classifier) > 1:
        parts.insert(0, plural(len(by_classifier), "classifier"))
    return " · ".join(parts)


def _never_ran(data: ReportData, results: pl.DataFrame) -> list[str]:
    present = set(results["method"])
    return [label(name) for name in data.planned if name not in present]


def _notes(notes: pl.DataFrame) -> list[str]:
    groups = notes.group_by("note", maintain_order=True).agg(pl.col("split"))
    return [f"{', '.join(dict.fromkeys(s))}: {note}" for note, s in groups.iter_rows()]


def _who(method: str) -> str:
    return "whole cell" if method == "*" else label(method)
