"""The bars of docs/new-domain.md: expected accuracy, few labels, the unlabelled batch.

    python benchmarks/new_domain.py sentiment digits features.npz --seeds 5 --cache DIR

Each argument is a bundled set or an archive of features with labels and domains. One
source, two calibration domains, one target. Batch and labels come from the target's
Small rows; accuracy and ECE are scored on its Large rows. `--out` keeps the scores of
every split, `--read` makes the tables of several such files, so that sets can be run
one by one. `--simulate` instead checks intervals and prediction sets where the truth is
known.
"""

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from new_domain_report import report
from new_domain_scores import Rows, Split, score
from origin import print_origin

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.datasets import load_dataset
from coolhead.io.archive import DomainArchive
from coolhead.io.calibrators import load_calibrator, save_calibrator
from coolhead.io.reading import load_archive
from coolhead.lab.heads.head import load_head
from coolhead.lab.heads.train import train_head
from coolhead.lab.images import split_large_small
from coolhead.new_domain import learn_evidence

REFERENCE_ROWS = 2_000
MOST_SPLITS = 12


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


def run(name: str, seeds: int, cache: Path) -> dict[str, list[float]]:
    """Scores of all splits and seeds of one set: (splits * seeds,) each."""
    bundled = name in ("sentiment", "digits")
    archive = load_dataset(name) if bundled else load_archive(name)
    rows = [
        score(split, seed)
        for seed in range(seeds)
        for split in splits(Path(name).stem, archive, seed, cache)
    ]
    return {key: [row[key] for row in rows] for key in rows[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="folder for heads and calibrators")
    parser.add_argument("--out", type=Path, help="JSON file for the scores")
    parser.add_argument("--read", type=Path, nargs="*", help="such files, to report")
    parser.add_argument("--simulate", type=int, help="repetitions, without archives")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print_origin()
    if given.simulate:
        from new_domain_simulated import simulate

        simulate(given.simulate)
        return
    tables = {}
    for path in given.read or ():
        tables |= json.loads(path.read_text())
    cache = given.cache or Path("new-domain-cache")
    cache.mkdir(parents=True, exist_ok=True)
    for name in given.archives:
        tables[Path(name).stem] = run(name, given.seeds, cache)
    if given.out:
        given.out.write_text(json.dumps(tables))
    report(
        {
            name: {key: np.array(values) for key, values in scores.items()}
            for name, scores in tables.items()
        }
    )


if __name__ == "__main__":
    main()
