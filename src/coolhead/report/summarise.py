"""What the templates of the page need: strings, numbers, lists and dictionaries."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from coolhead.figures.maps import cell_text, change_steps, changes, largest_change
from coolhead.report.answer import (
    BEFORE,
    VERDICTS,
    describe_answer,
    domain_verdicts,
    plural,
)
from coolhead.report.diagnostics import (
    FEW_ROWS,
    abstention,
    adaptation_section,
    example_strip,
    fit_statuses,
    shift_warnings,
)
from coolhead.report.plot import feature_map, reliability_panel
from coolhead.report.tables import (
    RunScores,
    Table,
    label,
    page_layout,
    plain_name,
    render_table,
    scores_by_classifier,
    seen_of_target,
)

# The methods shown at first, with the recommended one; others fill up to that number.
SHOWN = (BEFORE, "source-only", "set-level", "auto", "target-only", "ensemble")


@dataclass(frozen=True)
class ReportData:
    """Everything the page shows.

    Attributes
    ----------
    title : str
    frames : dict of str to DataFrame
        By the names of the tables in `coolhead.report.results`.
    tables : list of Table
        The finished tables, in order.
    planned : tuple of str
        Names of the methods that were asked for.
    facts : dict of str to str
        What is needed to repeat it.
    noun : {"split", "domain"}
        What a row of the results is called.
    judged : tuple of str or None
        The rows the answer rests on, where not on all: domains that the calibrator
        has not seen.
    order : str or None
        What the list of domains is ordered by.
    """

    title: str
    frames: dict[str, pl.DataFrame]
    tables: list[Table]
    planned: tuple[str, ...]
    facts: dict[str, str]
    noun: str = "split"
    judged: tuple[str, ...] | None = None
    order: str | None = None


def summarise(data: ReportData) -> dict[str, Any]:
    """Return everything the templates need."""
    sized, without_rows = _with_rows(data.frames["results"])
    by_classifier = scores_by_classifier(sized) if len(sized) else {}
    parts = [
        summarise_classifier(data, name, scores)
        for name, scores in by_classifier.items()
    ]
    failures = data.frames["failures"].to_dicts()
    present = set(sized["method"])
    return {
        "title": data.title,
        "noun": data.noun,
        "order": data.order,
        "facts": data.facts,
        "lead": _lead(by_classifier, data),
        "classifiers": parts,
        "several": len(parts) > 1,
        "failures": [row | {"label": _failed(row["method"])} for row in failures],
        "without_rows": without_rows,
        "never_ran": [label(name) for name in data.planned if name not in present],
        "notes": _notes(data.frames["notes"]),
        "tables": [page_table(table) for table in data.tables],
    }


def summarise_classifier(
    data: ReportData, name: str, scores: RunScores
) -> dict[str, Any]:
    """Return the sections of one classifier."""
    own = pl.col("classifier") == name
    frames = {key: frame.filter(own) for key, frame in data.frames.items()}
    answer = _answer(data, scores)
    # A number and its unit stay on one line.
    answer["sentence"] = answer["sentence"].replace(" %", "\N{NO-BREAK SPACE}%")
    after = answer["method"]
    verdicts = domain_verdicts(scores, after)
    found = [row["verdict"] for row in verdicts]
    return {
        "name": name,
        "answer": answer,
        "verdicts": [row | {"few": row["n_rows"] < FEW_ROWS} for row in verdicts],
        "counts": {v: found.count(v) for v in reversed(VERDICTS) if v in found},
        "heat": heat_rows(scores, frames["failures"], after),
        "splits": _splits(scores, frames, after),
        "maps": _maps(frames["map"], frames["shift"], scores.splits),
        "shift": shift_warnings(frames["shift"]),
        "abstention": abstention(frames["histogram"], after),
        "examples": example_strip(frames["examples"], after),
        "adaptation": adaptation_section(frames["adaptation"], data.noun),
        "seeing": _seeing(scores.methods),
        "statuses": fit_statuses(frames["status"]),
        "frames": frames,
        "shown": shown_methods(scores.methods, after),
    }


def shown_methods(methods: list[str], chosen: str | None) -> list[str]:
    """Return at most six methods, the recommended one among them."""
    wanted = dict.fromkeys([BEFORE, chosen, *SHOWN, *methods])
    kept = [name for name in wanted if name in methods][: len(SHOWN)]
    return [name for name in methods if name in kept]


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
    shown = shown_methods(methods, chosen)
    hidden = ["" if name in shown else " extra" for name in methods]
    table = zip(splits, values, moved, change_steps(moved), strict=True)
    rows = [
        {"split": split, "cells": list(map(_cell, *row, hidden))}
        for split, *row in table
    ]
    heads = [
        {
            "name": label(name),
            "plain": plain_name(name),
            "css": ("chosen" if name == chosen else "") + extra,
        }
        for name, extra in zip(methods, hidden, strict=True)
    ]
    return {
        "methods": heads,
        "rows": rows,
        "n_hidden": sum(map(bool, hidden)),
        "largest": largest_change(moved),
    }


def _cell(ece: float, change: float, step: str, hidden: str) -> dict[str, str]:
    text = cell_text(ece, step)
    if np.isnan(ece):
        return {"text": text, "step": f"none{hidden}", "title": "failed or not run"}
    if not step:
        return {"text": text, "step": f"plain{hidden}", "title": ""}
    title = f"{change:+.1f} points against uncalibrated".replace("-", "−")
    return {"text": text, "step": step + hidden, "title": title}


def _seeing(methods: list[str]) -> str:
    """List what is seen of the target, and by which methods."""
    found: dict[str, list[str]] = {}
    for name in methods:
        if words := seen_of_target(name):
            # Some names hold a comma.
            found.setdefault(words, []).append(label(name).replace(", ", " with "))
    return "; ".join(f"{words}: {', '.join(names)}" for words, names in found.items())


def _answer(data: ReportData, scores: RunScores) -> dict[str, Any]:
    if data.judged is None:
        return describe_answer(scores, data.noun)
    unseen = RunScores(scores.frame.filter(pl.col("split").is_in(data.judged)))
    return describe_answer(unseen, f"unseen {data.noun}")


def page_table(table: Table) -> dict[str, Any]:
    """Return a table as text, with its CSV as a link that needs no server."""
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
    errors: dict[str, list[str]] = {}
    for row in frames["failures"].iter_rows(named=True):
        text = f"{_failed(row['method'])}: {row['error']}"
        errors.setdefault(row["split"], []).append(text)
    found = []
    for split in dict.fromkeys([*scores.splits, *errors]):
        panels = {
            method: _panel(scores, bins, split, method)
            for method in scores.methods
            if (split, method) in bins
        }
        found.append(
            {
                "split": split,
                "before": panels.pop(BEFORE, None),
                "after": panels.pop(after or "", None),
                "others": list(panels.values()),
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
    counts = {
        "classifier": len(by_classifier) if len(by_classifier) > 1 else 0,
        data.noun: len(some.splits),
        "method": len(some.methods),
        "seed": len(some.seeds) if data.noun == "split" else 0,
    }
    return " · ".join(plural(n, noun) for noun, n in counts.items() if n)


def _notes(notes: pl.DataFrame) -> list[str]:
    groups = notes.group_by("note", maintain_order=True).agg(pl.col("split"))
    return [f"{', '.join(dict.fromkeys(s))}: {note}" for note, s in groups.iter_rows()]


def _failed(method: str) -> str:
    return "whole cell" if method == "*" else label(method)
