"""What class offsets gain in new domains, and how often intervals hold.

    python benchmarks/class_offsets.py sentiment digits PACS=features.npz --seeds 5

Each argument is a bundled set or NAME=ARCHIVE of features with labels and domains. One
source, two calibration domains, one target (`new_domain.roles`). Unlabelled rows and
labels come from the target's Small rows; its Large rows score, with the predictions of
each method. "δ" corrects the temperature alone, "δ, b" class offsets, too; "plain call"
means neither `source_domain` nor reference features. `--out` keeps the scores of every
split; `--read` reports several such files, also of different seeds of one set.
"""

import argparse
import json
import warnings
from collections import defaultdict
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from class_offsets_report import CASES, SCORES, report
from class_offsets_rivals import rival_accuracies
from new_domain_scores import wilson
from origin import print_origin

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.temperature import TemperatureScaling
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
from coolhead.numerics.softmax import softmax
from new_domain import REFERENCE_ROWS, Rows, roles, rows_of

LABEL_DRAWS, INTERVAL_DRAWS = 3, 5
NORMAL_90 = NormalDist().inv_cdf(0.95)
Found = dict[str, list[float]]


def score(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    """NLL, and accuracy, ECE and class-wise ECE in per cent."""
    right = probabilities.argmax(axis=1) == labels
    return (
        float(negative_log_likelihood(labels, probabilities)),
        100 * float(right.mean()),
        100 * float(expected_calibration_error(labels, probabilities)),
        100 * float(classwise_calibration_error(labels, probabilities)),
    )


def remember_temperatures(calibrator: Any) -> Any:
    """Keep T(x) of rows that are asked for again: most of the time goes into it."""
    find, known = calibrator._temperature, {}

    def temperature(logits: np.ndarray, features: Any) -> np.ndarray:
        key = np.ascontiguousarray(logits).tobytes()
        if key not in known:
            known[key] = find(logits, features)
        return known[key]

    calibrator._temperature = temperature
    return calibrator


def fit_all(data: Rows, domains: np.ndarray, source: str, reference: Any) -> dict:
    """Fit every calibrator that is compared."""
    others = domains != source
    rest = Rows(*(values[others] for values in data))
    found: dict[str, Any] = {}
    for kind, offsets in (("δ", False), ("δ, b", "auto")):
        found[kind] = AutoCalibrator(class_offsets=offsets).fit(
            data.logits,
            data.labels,
            features=data.features,
            sample_domain=domains,
            source_domain=source,
            reference_features=reference,
        )
        found[f"{kind}, plain call"] = AutoCalibrator(class_offsets=offsets).fit(
            rest.logits,
            rest.labels,
            features=rest.features,
            sample_domain=domains[others],
        )
    equal = TemperatureScaling("equal")
    found["set-level"] = equal.fit(
        rest.logits, rest.labels, sample_domain=domains[others]
    )
    return {name: remember_temperatures(one) for name, one in found.items()}


def measure_scores(fitted: dict, small: Rows, large: Rows, found: Found) -> None:
    """Score every method on the target's Large rows."""

    def note(name: str, probabilities: np.ndarray) -> None:
        values = score(probabilities, large.labels)
        for kind, value in zip(SCORES, values, strict=True):
            found[f"{kind} {name}"].append(value)

    def note_by(name: str, calibrator: Any) -> None:
        note(name, calibrator.predict_proba(large.logits, large.features))

    note("uncalibrated", softmax(large.logits, np.ones(len(large.labels))))
    note_by("oracle", TemperatureScaling().fit(small.logits, small.labels))
    note_by("set-level", fitted["set-level"])
    for kind in ("δ", "δ, b"):
        note_by(f"{kind}: none", fitted[kind])
        note_by(f"{kind}: none, plain call", fitted[f"{kind}, plain call"])
    note_by("δ, b: batch", NewDomain(fitted["δ, b"], *small[:2]).calibrator)
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
                note_by(f"{name}{n}", there.calibrator)


def measure_intervals(
    calibrator: Any, small: Rows, large: Rows, seed: int, found: Found
) -> None:
    """Check intervals of the accuracy from batches of several sizes and labels."""
    for draw in range(INTERVAL_DRAWS):
        order = np.random.default_rng([seed, draw]).permutation(len(small.labels))
        for size, n in CASES:
            rows = order[:size]
            if n > len(rows) or len(rows) < (size or 0):
                continue
            part = Rows(*(values[rows] for values in small))
            there = NewDomain(calibrator, *part[:2], random_state=draw)
            name = f"{size or 'all'} rows, {n} labels"
            if n:
                asked = there.rows_to_label(n)
                there = there.with_labels(asked, part.labels[asked])
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
            if n:
                right = part.labels[:n] == part.logits[:n].argmax(axis=1)
                low, high = wilson(right)
                found[f"wilson {name}"].append(100 * (high - low))


def measure_expected(
    fitted: dict, data: Rows, domains: np.ndarray, small: Rows, large: Rows
) -> dict[str, float]:
    """Errors of the expected accuracy of uncorrected predictions, without labels."""
    truth = np.mean(large.logits.argmax(axis=1) == large.labels)
    there = NewDomain(fitted["δ, b"], *small[:2])
    estimates = {"NewDomain": there.uncorrected_accuracy.estimate}
    plain = fitted["δ"]
    estimates |= rival_accuracies(fitted["set-level"], plain, data, domains, small)
    return {f"error {n}": 100 * abs(e - truth) for n, e in estimates.items()}


def run(name: str, path: str, seeds: range, given: Any) -> dict[str, list[float]]:
    """Measure every split and seed of one set."""
    bundled = path in ("sentiment", "digits")
    archive = load_dataset(path) if bundled else load_archive(path)
    domains, rows = np.asarray(archive.domains), []
    for seed in seeds:
        small = split_large_small(archive, 0.2, random_state=seed)
        applied: dict[str, Any] = {}
        for source, target, rest in roles(list(archive.domain_names), seed):
            if source not in applied:
                stop = "" if given.patience is None else f"-{given.patience}"
                file = given.cache / f"{name}-{source}-{seed}{stop}.safetensors"
                if not file.exists():
                    settings = {"kind": "mlp", "small": small, "random_state": seed}
                    if given.patience is not None:
                        settings["patience"] = given.patience
                    train_head(archive, source, **settings).save(file)
                applied = {source: load_head(file).apply(archive)}
            whole = applied[source]
            trained = np.flatnonzero((domains == source) & ~small)
            rng = np.random.default_rng(seed)
            reference = whole.features[rng.permutation(trained)[:REFERENCE_ROWS]]
            mask = small & np.isin(domains, [source, *rest])
            data = rows_of(whole, mask)
            fitted = fit_all(data, domains[mask], source, reference)
            few, many = (
                rows_of(whole, one & (domains == target)) for one in (small, ~small)
            )
            found: Found = defaultdict(list)
            measure_scores(fitted, few, many, found)
            measure_intervals(fitted["δ, b"], few, many, seed, found)
            outside = domains[mask] != source
            seen = Rows(*(values[outside] for values in data))
            expected = measure_expected(fitted, seen, domains[mask][outside], few, many)
            rows.append({k: float(np.mean(v)) for k, v in found.items()} | expected)
    return {key: [row.get(key, np.nan) for row in rows] for key in rows[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--patience", type=int, help="stop the heads early")
    parser.add_argument("--cache", type=Path, default=Path("class-offsets-cache"))
    parser.add_argument("--out", type=Path, help="JSON file for the scores")
    parser.add_argument("--read", type=Path, nargs="*", help="such files, to report")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print_origin()
    given.cache.mkdir(parents=True, exist_ok=True)
    tables: dict[str, dict[str, list[float]]] = {}
    for path in given.read or ():
        for name, scores in json.loads(path.read_text()).items():
            known = tables.setdefault(name, {})
            for key, values in scores.items():
                known[key] = known.get(key, []) + values
    for each in given.archives:
        name, _, path = each.rpartition("=")
        name = name or Path(path).stem
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        tables[name] = run(name, path, seeds, given)
    if given.out:
        given.out.write_text(json.dumps(tables))
    report({n: {k: np.array(v) for k, v in s.items()} for n, s in tables.items()})


if __name__ == "__main__":
    main()
