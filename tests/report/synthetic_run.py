"""Run folders made from simulated logits, written as the sweep writes them."""

import json
from pathlib import Path

import numpy as np
import polars as pl

from coolhead.lab.pictures import thumbnail
from coolhead.lab.protocol import EvaluationSettings
from coolhead.lab.results import table_path
from coolhead.lab.rows import LabelledRows
from coolhead.lab.scoring import predict, score_methods
from coolhead.report.results import KEY_COLUMNS, TABLES, CellResult

# Temperatures that fit, that help half, and that harm, against the truth of 3.
TEMPERATURES = {
    "uncalibrated": 1.0,
    "source-only": 1.6,
    "target-only": 3.0,
    "set-level": 2.9,
    "nearest-cluster": 2.4,
    "regression": 2.0,
    "ensemble": 1.9,
    "set-level+source": 2.2,
    "nearest-cluster+source": 1.9,
    "regression+source": 1.8,
    "ensemble+source": 1.7,
    "md-ts": 2.3,
}
FEW_METHODS = ("uncalibrated", "source-only", "target-only", "set-level", "ensemble")
EVALUATION = EvaluationSettings(size=150, draws=20, bootstrap=40)


def write_run(
    folder: Path,
    domains=("amazon", "movies", "nyt"),
    methods=FEW_METHODS,
    *,
    splits=None,
    planned=None,
    failures=(),
    truth=3.0,
    n_rows=400,
    n_points=60,
    pictures=False,
) -> Path:
    """Write a run of every ordered pair of domains, or of the given pairs."""
    pairs = splits or [(s, t) for t in domains for s in domains if s != t]
    frames = {name: [] for name in TABLES}
    for number, (source, target) in enumerate(pairs):
        key = make_key(source, target)
        cell = make_cell(number, methods, truth, n_rows, n_points, pictures)
        for name, rows in cell.tables.items():
            frames[name] += [key | row for row in rows]
    for source, target, method, error in failures:
        key = make_key(source, target)
        frames["failures"].append(key | {"method": method, "error": error})
    write_tables(folder, frames)
    write_record(folder, domains, planned or methods, len(pairs))
    return folder


def make_key(source, target):
    return {
        "experiment": "made",
        "classifier": "mlp",
        "split": f"{source} > {target}",
        "source": source,
        "calibration": "the rest",
        "target": target,
        "seed": 0,
    }


def write_tables(folder, frames):
    (folder / "details").mkdir(parents=True, exist_ok=True)
    keys = dict.fromkeys(KEY_COLUMNS, pl.String) | {"seed": pl.Int64}
    for name, rows in frames.items():
        frame = pl.DataFrame(rows, schema=keys | TABLES[name])
        frame.write_parquet(table_path(folder, name))


class Given:
    """A calibrator that knows the temperature of each row."""

    def __init__(self, temperature):
        self.temperature = lambda logits, features: temperature


def make_cell(number, methods, truth, n_rows, n_points, pictures) -> CellResult:
    rng = np.random.default_rng(number)
    logits = rng.normal(size=(n_rows, 4)) * 2
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (chances.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    rows = LabelledRows(logits * truth, labels, None, np.full(n_rows, ""))
    spread = np.exp(rng.normal(size=n_rows) / 20)
    found = {
        name: predict(
            Given(TEMPERATURES[name] * spread ** (name != "uncalibrated")), rows
        )
        for name in methods
    }
    cell = CellResult()
    score_methods(found, EVALUATION, 0, cell)
    for name in methods:
        cell.add("runtimes", method=name, fit_seconds=0.1, predict_seconds=0.01)
        add_status(cell, name)
    add_adaptation(cell, number)
    add_shift(cell, number)
    add_map(cell, rng, n_points)
    if pictures:
        add_examples(cell, found, rng)
    return cell


def add_status(cell, name):
    cell.add(
        "status",
        method=name,
        status="converged",
        n_fallbacks=0,
        clipped_share=0.0,
        warnings="8 clusters asked, 7 found" if name == "ensemble" else "",
    )


def add_adaptation(cell, number):
    """The truth is 70 %; without labels the first split misses it."""
    expected = 0.3 if number == 0 else 0.6
    for method, n_labels in (("auto", 0), ("auto+batch+20", 20), ("plain+20", 20)):
        base, _, rest = method.partition("+")
        known = {"expected": expected, "low": expected - 0.2, "high": expected + 0.2}
        if n_labels:
            known = {"expected": 0.68, "low": 0.6, "high": 0.75}
        cell.add(
            "adaptation",
            method=method,
            base=base,
            batch="batch" in rest,
            n_labels=n_labels,
            draw=0,
            ece=0.1,
            truth=0.7,
            **(dict.fromkeys(known) if base == "plain" else known),
        )


def add_shift(cell, number):
    numbers = {
        "weight_variance": 4.5,
        "renyi_divergence": 5.5,
        "effective_sample_size": 36.4,
        "n_calibration": 200,
        "discriminator_auroc": 0.91,
        "share_clipped": 0.0,
        "unreliable": float(number == 0),
        "share_outside": 0.25,
    }
    for name, value in numbers.items():
        cell.add("shift", diagnostic=name, value=value)


def add_map(cell, rng, n_points):
    centres = rng.normal(size=(8, 2)) * 3
    roles = [("calibration", n_points), ("target", n_points // 2), ("centre", 8)]
    for role, count in roles:
        for row in range(count):
            cluster = row % 8
            x, y = centres[cluster] + rng.normal(size=2) * (role != "centre")
            cell.add(
                "map",
                x=float(f"{x:.5g}"),
                y=float(f"{y:.5g}"),
                role=role,
                domain="",
                cluster=cluster,
                temperature=1.5 + cluster / 4,
            )


def add_examples(cell, found, rng):
    from PIL import Image

    picture = thumbnail(Image.fromarray(rng.integers(255, size=(16, 16), dtype="u1")))
    for method, predictions in found.items():
        cell.add(
            "examples",
            rank=0,
            id=f"row {rng.integers(1000)}",
            label="<b>three</b>",
            predicted="eight",
            method=method,
            confidence=float(predictions.confidence[0]),
            thumbnail=picture if method == "uncalibrated" else "",
        )


def write_record(folder, domains, planned, n_cells):
    record = {
        "protocol": {
            "name": "made",
            "title": "A made-up run",
            "data": {"kind": "bundled", "dataset": "digits"},
            "roles": {
                "domains": list(domains),
                "source": 1,
                "calibration": 1,
                "target": 1,
                "calibrate_on": "rest",
            },
            "methods": {"names": list(planned), "clusters": 8},
            "classifiers": {"mlp": {"kind": "mlp"}},
            "division": {"small": 0.2},
            "evaluation": EVALUATION.model_dump(),
            "seeds": [0],
            "vary": ["classifier"],
            "paper": None,
        },
        "data_checksum": "abc",
        "n_cells": n_cells,
        "date": "2026-01-01 00:00 UTC",
        "command": "coolhead sweep made.toml",
        "commit": "1234567",
        "machine": "2 cores",
        "versions": {"python": "3.11", "coolhead": "0.1.0"},
    }
    (folder / "run.json").write_text(json.dumps(record))
