"""What class offsets gain in new domains, and how often intervals hold.

    python benchmarks/class_offsets.py sentiment digits PACS=features.npz --seeds 5

Each argument is a bundled set or NAME=ARCHIVE of features with labels and domains. One
source, two calibration domains, one target (`new_domain.roles`). Unlabelled rows and
labels come from the target's Small rows; its Large rows score, with the predictions of
each method. "δ" corrects the temperature alone, "δ, b" class offsets, too. `--out`
keeps the scores of every split; `--read` reports several such files.
"""

import argparse
import json
import warnings
from collections import defaultdict
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from new_domain_scores import wilson
from origin import print_origin

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.datasets import load_dataset
from coolhead.io.reading import load_archive
from coolhead.lab.heads.head import load_head
from coolhead.lab.heads.train import train_head
from coolhead.lab.images import split_large_small
from coolhead.metrics import (
    classwise_calibration_error,
    expected_calibration_error,
    negative_log_likelihood,
)
from coolhead.new_domain import NewDomain
from new_domain import REFERENCE_ROWS, Rows, roles, rows_of

SCORES = ("nll", "accuracy", "ece", "class-wise ece")
METHODS = ("uncalibrated", "δ: none", "δ, b: none", "δ, b: batch")
METHODS += tuple(
    f"{what}{n}" for n in (20, 100) for what in ("δ: ", "δ, b: ", "both: ")
)
# Rows of the batch (None for all), and labels, of the intervals that are checked.
CASES = [
    (size, n) for size in (30, 100, None) for n in (0, 20, 100) if n < (size or 101)
]
LABEL_DRAWS, INTERVAL_DRAWS = 3, 5
NORMAL_90 = NormalDist().inv_cdf(0.95)


def score(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    """NLL, and accuracy, ECE and class-wise ECE in per cent."""
    right = probabilities.argmax(axis=1) == labels
    return (
        float(negative_log_likelihood(labels, probabilities)),
        100 * float(right.mean()),
        100 * float(expected_calibration_error(labels, probabilities)),
        100 * float(classwise_calibration_error(labels, probabilities)),
    )


def measure(fitted: dict[str, Any], small: Rows, large: Rows, seed: int) -> dict:
    """Score every method on one split, and check intervals."""
    found: dict[str, list[float]] = defaultdict(list)

    def note(name: str, calibrator: Any) -> None:
        values = calibrator.predict_proba(large.logits, large.features)
        for kind, value in zip(SCORES, score(values, large.labels), strict=True):
            found[f"{kind} {name}"].append(value)

    raw = np.exp(large.logits - large.logits.max(axis=1, keepdims=True))
    raw /= raw.sum(axis=1, keepdims=True)
    for kind, value in zip(SCORES, score(raw, large.labels), strict=True):
        found[f"{kind} uncalibrated"].append(value)
    note("δ: none", fitted["δ"])
    note("δ, b: none", fitted["δ, b"])
    note("δ, b: batch", NewDomain(fitted["δ, b"], *small[:2]).calibrator)
    for draw in range(LABEL_DRAWS):
        for n in (20, 100):
            for name, kind, without in (
                ("δ: ", "δ", ["batch"]),
                ("δ, b: ", "δ, b", ["batch"]),
                ("both: ", "δ, b", []),
            ):
                there = NewDomain(fitted[kind], *small[:2], random_state=draw)
                there = there.without(*without)
                rows = there.rows_to_label(n)
                there = there.with_labels(rows, small.labels[rows])
                note(f"{name}{n}", there.calibrator)
    for draw in range(INTERVAL_DRAWS):
        order = np.random.default_rng([seed, draw]).permutation(len(small.labels))
        for size, n in CASES:
            rows = order[:size]
            if n > len(rows) or len(rows) < (size or 0):
                continue
            part = Rows(*(values[rows] for values in small))
            there = NewDomain(fitted["δ, b"], *part[:2], random_state=draw)
            name = f"{size or 'all'} rows, {n} labels"
            if n:
                asked = there.rows_to_label(n)
                there = there.with_labels(asked, part.labels[asked])
                right = part.labels[:n] == part.logits[:n].argmax(axis=1)
                low, high = wilson(right)
                found[f"wilson {name}"].append(100 * (high - low))
            interval = there.accuracy
            predicted = there.calibrator.confidence(large.logits, large.features)[1]
            truth = float(np.mean(predicted == large.labels))
            found[f"covered {name}"].append(interval.low <= truth <= interval.high)
            found[f"width {name}"].append(100 * (interval.high - interval.low))
            # An exact interval would miss more, as the truth is measured, too.
            spread = (interval.high - interval.low) / 2 / NORMAL_90
            noise = np.sqrt(truth * (1 - truth) / len(large.labels))
            share = NormalDist().cdf(NORMAL_90 * spread / np.hypot(spread, noise))
            found[f"exact {name}"].append(2 * share - 1)
            found[f"off {name}"].append(100 * abs(interval.estimate - truth))
    return {key: float(np.mean(values)) for key, values in found.items()}


def run(name: str, path: str, seeds: int, cache: Path) -> dict[str, list[float]]:
    """Measure every split and seed of one set."""
    bundled = path in ("sentiment", "digits")
    archive = load_dataset(path) if bundled else load_archive(path)
    domains, rows = np.asarray(archive.domains), []
    for seed in range(seeds):
        small = split_large_small(archive, 0.2, random_state=seed)
        applied: dict[str, Any] = {}
        for source, target, rest in roles(list(archive.domain_names), seed):
            if source not in applied:
                file = cache / f"{name}-{source}-{seed}.safetensors"
                if not file.exists():
                    settings = {"kind": "mlp", "small": small, "random_state": seed}
                    train_head(archive, source, **settings).save(file)
                applied = {source: load_head(file).apply(archive)}
            whole = applied[source]
            trained = np.flatnonzero((domains == source) & ~small)
            rng = np.random.default_rng(seed)
            reference = whole.features[rng.permutation(trained)[:REFERENCE_ROWS]]
            mask = small & np.isin(domains, [source, *rest])
            data = rows_of(whole, mask)
            fitted = {
                kind: AutoCalibrator(class_offsets=offsets).fit(
                    data.logits,
                    data.labels,
                    features=data.features,
                    sample_domain=domains[mask],
                    source_domain=source,
                    reference_features=reference,
                )
                for kind, offsets in (("δ", False), ("δ, b", "auto"))
            }
            target_rows = [
                rows_of(whole, one & (domains == target)) for one in (small, ~small)
            ]
            rows.append(measure(fitted, *target_rows, seed))
    return {key: [row.get(key, np.nan) for row in rows] for key in rows[0]}


def report(tables: dict[str, dict[str, np.ndarray]]) -> None:
    """Print a table of every score, of splits that lose, and of intervals."""

    def head(title: str) -> None:
        print(f"\n| {title} | " + " | ".join(tables) + " | mean |")
        print("|---" * (len(tables) + 2) + "|")

    def line(name: str, values: list[float], digits: int) -> None:
        cells = " | ".join(
            f"{value:.{digits}f}" for value in [*values, np.mean(values)]
        )
        print(f"| {name} | {cells} |")

    for kind in SCORES:
        head(kind + ("" if kind == "nll" else ", %"))
        for method in METHODS:
            values = [float(s[f"{kind} {method}"].mean()) for s in tables.values()]
            line(method, values, 3 if kind == "nll" else 1)
    head("splits whose accuracy falls by more than a point, %")
    for method in METHODS[2:]:
        name = f"accuracy {method}"
        changes = [s[name] - s["accuracy uncalibrated"] for s in tables.values()]
        line(method, [100 * float(np.mean(each < -1)) for each in changes], 0)
    for what, title in (
        ("covered", "90 % intervals cover, %"),
        ("exact", "exact intervals would cover, %"),
        ("width", "mean width, points"),
        ("wilson", "mean width of Wilson's, points"),
        ("off", "mean absolute error, points"),
    ):
        scale = 100 if what in ("covered", "exact") else 1
        head(title)
        for size, n in CASES:
            key = f"{what} {size or 'all'} rows, {n} labels"
            if all(key in s for s in tables.values()):
                values = [scale * float(np.nanmean(s[key])) for s in tables.values()]
                line(key.removeprefix(f"{what} "), values, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path("class-offsets-cache"))
    parser.add_argument("--out", type=Path, help="JSON file for the scores")
    parser.add_argument("--read", type=Path, nargs="*", help="such files, to report")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print_origin()
    given.cache.mkdir(parents=True, exist_ok=True)
    tables: dict[str, dict[str, list[float]]] = {}
    for path in given.read or ():
        tables |= json.loads(path.read_text())
    for each in given.archives:
        name, _, path = each.rpartition("=")
        name = name or Path(path).stem
        tables[name] = run(name, path, given.seeds, given.cache)
    if given.out:
        given.out.write_text(json.dumps(tables))
    report({n: {k: np.array(v) for k, v in s.items()} for n, s in tables.items()})


if __name__ == "__main__":
    main()
