"""The bars of docs/new-domain.md: expected accuracy, few labels, the unlabelled batch.

    python benchmarks/new_domain.py sentiment digits features.npz --seeds 5 --cache DIR

Each argument is a bundled set or an archive of features with labels and domains. One
source, two calibration domains, one target. Batch and labels come from the target's
Small rows; accuracy and ECE are scored on its Large rows. `--simulate` instead checks
intervals and prediction sets where the truth is known.
"""

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coolhead.archive import DomainArchive, load_archive
from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.datasets import load_dataset, split_large_small
from coolhead.heads import load_head, train_head
from coolhead.metrics import expected_calibration_error
from coolhead.new_domain import NewDomain, learn_evidence
from coolhead.numerics.softmax import confidence
from coolhead.persist import load_calibrator, save_calibrator

REFERENCE_ROWS = 2_000
LABELS = (10, 20, 50, 100)
DRAWS = 3
MOST_SPLITS = 12
Found = dict[str, list[float]]


class Split(NamedTuple):
    """A fitted calibrator with its evidence, and the rows of one target."""

    name: str
    calibrator: Any
    source: Any
    small: Any
    large: Any


class Rows(NamedTuple):
    """Logits, features and labels of some rows."""

    logits: np.ndarray
    features: np.ndarray
    labels: np.ndarray

    @property
    def right(self) -> np.ndarray:
        return self.logits.argmax(axis=1) == self.labels


def rows_of(archive: Any, mask: np.ndarray) -> Rows:
    rows = np.flatnonzero(mask)
    return Rows(archive.logits[rows], archive.features[rows], archive.labels[rows])


def roles(names: list[str], seed: int) -> list[tuple[str, str, list[str]]]:
    """Source, target and two calibration domains; at most twelve splits."""
    rng = np.random.default_rng(seed)
    found = []
    for source in names:
        for target in names:
            rest = [name for name in names if name not in (source, target)]
            if source == target:
                continue
            if len(rest) > 2:
                rest = sorted(rng.choice(rest, 2, replace=False).tolist())
            found.append((source, target, rest))
    if len(found) <= MOST_SPLITS:
        return found
    kept = rng.choice(len(found), MOST_SPLITS, replace=False)
    return [found[index] for index in sorted(kept)]


def splits(
    name: str, archive: DomainArchive, seed: int, cache: Path
) -> Iterator[Split]:
    """Heads, calibrators and evidence, fitted once and read again from the cache."""
    small = split_large_small(archive, 0.2, random_state=seed)
    domains = np.asarray(archive.domains)
    applied: dict[str, Any] = {}
    for source, target, rest in roles(list(archive.domain_names), seed):
        if source not in applied:
            path = cache / f"{name}-{source}-{seed}.safetensors"
            if not path.exists():
                train_head(
                    archive, source, kind="mlp", small=small, random_state=seed
                ).save(path)
            applied = {source: load_head(path).apply(archive)}
        whole = applied[source]
        trained = np.flatnonzero((domains == source) & ~small)
        reference = np.random.default_rng(seed).permutation(trained)[:REFERENCE_ROWS]
        path = cache / f"{name}-{source}-{target}-{seed}.skops"
        if not path.exists():
            mask = small & np.isin(domains, [source, *rest])
            data = rows_of(whole, mask)
            named = {
                "features": data.features,
                "sample_domain": domains[mask],
                "source_domain": source,
                "reference_features": whole.features[reference],
            }
            fitted: Any = AutoCalibrator().fit(data.logits, data.labels, **named)
            fitted.evidence_ = learn_evidence(fitted, data.logits, data.labels, **named)
            save_calibrator(fitted, path)
        yield Split(
            f"{source} to {target}",
            load_calibrator(path),
            rows_of(whole, small & (domains == source)),
            rows_of(whole, small & (domains == target)),
            rows_of(whole, ~small & (domains == target)),
        )


def error(split: Split, calibrator: Any) -> float:
    """ECE in per cent on the target's Large rows."""
    rows = split.large
    sure = calibrator.confidence(rows.logits, rows.features)[0]
    return 100 * float(expected_calibration_error(rows.right, sure))


def wilson(right: np.ndarray) -> tuple[float, float]:
    """Wilson's 90 % interval."""
    n, share, z = len(right), right.mean(), 1.6448536
    middle = (share + z * z / 2 / n) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / 4 / n / n) / (1 + z * z / n)
    return middle - half, middle + half


def note(found: Found, name: str, low: float, high: float, truth: float) -> None:
    found[f"width {name}"].append(100 * (high - low))
    found[f"covered {name}"].append(float(low <= truth <= high))


def score(split: Split, seed: int) -> Found:
    """All that is measured on one split, averaged over draws of labels."""
    found: Found = defaultdict(list)
    small, large = split.small, split.large
    truth = float(large.right.mean())
    scale = TemperatureScaling
    source, oracle = (
        scale().fit(rows.logits, rows.labels) for rows in (split.source, small)
    )
    found["ece source-only"].append(error(split, source))
    found["ece oracle"].append(error(split, oracle))
    sure = confidence(large.logits, 1.0)[0]
    plain = 100 * float(expected_calibration_error(large.right, sure))
    found["ece uncalibrated"].append(plain)
    there = NewDomain(split.calibrator, small.logits, small.features)
    alone = there.without("batch")

    def measure(name: str, domain: NewDomain) -> None:
        found[f"ece {name}"].append(error(split, domain.calibrator))
        expected = domain.accuracy
        note(found, name, expected.low, expected.high, truth)
        found[f"off {name}"].append(100 * abs(expected.estimate - truth))

    measure("none", alone)
    measure("batch", there)
    limit = there.threshold(0.9)
    found["threshold found"].append(float(limit.confidence is not None))
    for draw in range(DRAWS):
        rng = np.random.default_rng([seed, draw])
        shuffled = rng.permutation(len(small.labels))
        asked = NewDomain(
            split.calibrator, small.logits, small.features, random_state=draw
        )
        for n in LABELS:
            drawn = shuffled[:n]
            rows = asked.rows_to_label(n)
            for start, name in ((alone, ""), (there, "batch+")):
                measure(f"{name}{n}", start.with_labels(rows, small.labels[rows]))
                measure(
                    f"{name}{n} random", start.with_labels(drawn, small.labels[drawn])
                )
            fitted = scale().fit(small.logits[drawn], small.labels[drawn])
            found[f"ece plain {n}"].append(error(split, fitted))
            note(found, f"wilson {n}", *wilson(small.right[drawn]), truth)
    return {key: [float(np.mean(values))] for key, values in found.items()}


def report(tables: dict[str, dict[str, np.ndarray]]) -> None:
    """Improvement ratios, intervals and harm, one column per set."""
    names = list(tables)
    methods = [key[4:] for key in tables[names[0]] if key.startswith("ece ")]
    print("\n| IR | " + " | ".join(names) + " | mean | harm |")
    print("|---" * (len(names) + 3) + "|")
    for method in methods:
        ratios, harm = [], []
        for scores in tables.values():
            source, oracle = scores["ece source-only"], scores["ece oracle"]
            values, plain = scores[f"ece {method}"], scores["ece uncalibrated"]
            gained = source.mean() - values.mean()
            ratios.append(gained / (source.mean() - oracle.mean()))
            harm.append((values > plain + 1)[oracle <= plain + 1])
        shown = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        share = 100 * np.concatenate(harm).mean()
        print(f"| {method} | {shown} | {np.mean(ratios):.2f} | {share:.0f} % |")
    print("\n| 90 % interval: coverage %, median width | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for key in tables[names[0]]:
        if not key.startswith("covered "):
            continue
        cells = []
        for scores in tables.values():
            width = np.median(scores[f"width {key[8:]}"])
            cells.append(f"{100 * scores[key].mean():.0f}, {width:.1f}")
        print(f"| {key[8:]} | " + " | ".join(cells) + " |")
    print("\n| mean absolute error of accuracy, points | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for method in ("none", "batch", "batch+20", "batch+100"):
        cells = [f"{scores[f'off {method}'].mean():.1f}" for scores in tables.values()]
        print(f"| {method} | " + " | ".join(cells) + " |")


def run(name: str, seeds: int, cache: Path) -> dict[str, np.ndarray]:
    """Scores of all splits and seeds of one set: (splits * seeds,) each."""
    bundled = name in ("sentiment", "digits")
    archive = load_dataset(name) if bundled else load_archive(name)
    rows = [
        score(split, seed)
        for seed in range(seeds)
        for split in splits(Path(name).stem, archive, seed, cache)
    ]
    return {key: np.array([row[key][0] for row in rows]) for key in rows[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="folder for heads and calibrators")
    parser.add_argument(
        "--simulate", type=int, help="repetitions, in place of archives"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.simulate:
        from new_domain_simulated import simulate

        simulate(given.simulate)
        return
    cache = given.cache or Path("new-domain-cache")
    cache.mkdir(parents=True, exist_ok=True)
    tables = {Path(name).stem: run(name, given.seeds, cache) for name in given.archives}
    report(tables)
    means = {
        name: {key: float(values.mean()) for key, values in scores.items()}
        for name, scores in tables.items()
    }
    print(json.dumps(means))


if __name__ == "__main__":
    main()
