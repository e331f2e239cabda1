"""The bars of docs/beyond.md: AutoCalibrator against the paper's methods, and why.

    python benchmarks/beyond.py sentiment digits PACS=features.npz --ablation

Each argument is a bundled set or NAME=ARCHIVE of features with labels and domains. One
head per source and seed; every other domain is the target once, the rest calibrate.
With ``--ablation`` also: each descriptor removed, each kind of knowledge withheld.
Markdown on standard output; experiments/beyond.md is kept so.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from beyond_report import EQUAL, PAPER, report
from origin import print_origin

from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.descriptors import DESCRIPTORS
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.datasets import load_dataset
from coolhead.io.archive import DomainArchive
from coolhead.io.reading import load_archive
from coolhead.lab.heads.head import Head, load_head
from coolhead.lab.heads.train import train_head
from coolhead.lab.images import split_large_small
from coolhead.metrics import expected_calibration_error
from coolhead.numerics.softmax import confidence

REFERENCE_ROWS = 2_000


class Split(NamedTuple):
    """Row numbers of one split, and the archive with logits they point into."""

    archive: Any
    source: str
    target: str
    calibration: np.ndarray
    source_small: np.ndarray
    target_small: np.ndarray
    target_large: np.ndarray
    reference: np.ndarray

    def given(self, rows: np.ndarray, *, extra: bool) -> dict[str, Any]:
        """Keyword arguments of `fit` for these rows."""
        named: dict[str, Any] = {
            "features": self.archive.features[rows],
            "sample_domain": self.archive.domains[rows],
        }
        if extra:
            named["source_domain"] = self.source
            named["reference_features"] = self.archive.features[self.reference]
        return named

    def fit(self, calibrator: Any, rows: np.ndarray, *, extra: bool = False) -> Any:
        """`calibrator` fitted on these rows."""
        return calibrator.fit(
            self.archive.logits[rows],
            self.archive.labels[rows],
            **self.given(rows, extra=extra),
        )

    def error(self, temperature: Any) -> float:
        """ECE on the target's Large rows, in per cent."""
        rows = self.target_large
        logits = self.archive.logits[rows]
        if callable(temperature):
            temperature = temperature(logits, self.archive.features[rows])
        sure, predicted = confidence(logits, temperature)
        right = predicted == self.archive.labels[rows]
        return 100 * float(expected_calibration_error(right, sure))


def cached_head(
    archive: DomainArchive, source: str, small: np.ndarray, seed: int, path: Path | None
) -> Head:
    """The head of the bars, trained or read."""
    if path is not None and path.exists():
        return load_head(path)
    head = train_head(archive, source, kind="erm", small=small, random_state=seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        head.save(path)
    return head


def splits(
    name: str, archive: DomainArchive, seed: int, cache: Path | None
) -> Iterator[Split]:
    """Every ordered pair of source and target; all other domains calibrate."""
    small = split_large_small(archive, 0.2, random_state=seed)
    domains = np.asarray(archive.domains)
    for source in archive.domain_names:
        path = cache and cache / f"{name}-{source}-{seed}.safetensors"
        applied = cached_head(archive, source, small, seed, path).apply(archive)
        trained = np.flatnonzero((domains == source) & ~small)
        rng = np.random.default_rng(seed)
        for target in archive.domain_names:
            if target == source:
                continue
            others = small & (domains != source) & (domains != target)
            yield Split(
                applied,
                source,
                target,
                np.flatnonzero(others),
                np.flatnonzero(small & (domains == source)),
                np.flatnonzero(small & (domains == target)),
                np.flatnonzero(~small & (domains == target)),
                rng.permutation(trained)[:REFERENCE_ROWS],
            )


def score(split: Split, *, ablation: bool) -> dict[str, float]:
    """ECE of every method on one split."""
    both = np.concatenate([split.calibration, split.source_small])
    scale = TemperatureScaling
    found = {
        "uncalibrated": split.error(1.0),
        "source-only": split.error(split.fit(scale(), split.source_small).temperature),
        "oracle": split.error(split.fit(scale(), split.target_small).temperature),
    }
    for ending, rows in (("", split.calibration), (" + source", both)):
        ensemble = split.fit(TemperatureEnsemble(), rows)
        for name, member in zip(PAPER, [*ensemble.members_, ensemble], strict=True):
            found[name + ending] = split.error(member.temperature)
        mdts = split.fit(MultiDomainTemperature(), rows)
        found["MD-TS" + ending] = split.error(mdts.temperature)
    equal = split.fit(scale(domain_weights="equal"), split.calibration)
    found[EQUAL] = split.error(equal.temperature)
    auto = split.fit(AutoCalibrator(), both, extra=True)
    found["auto"] = split.error(auto.temperature)
    found["shift-aware alone"] = split.error(
        auto.selection_.candidates_[-1].temperature
    )
    return found | (ablate(split, both) if ablation else {})


def ablate(split: Split, both: np.ndarray) -> dict[str, float]:
    """Shift-aware temperatures with something taken away."""
    found = {}
    for name in DESCRIPTORS:
        kept = [other for other in DESCRIPTORS if other != name]
        fitted = split.fit(ShiftAwareTemperature(kept), both, extra=True)
        found[f"without {name}"] = split.error(fitted.temperature)
    plain = split.fit(ShiftAwareTemperature(), both)
    found["no reference, no source name"] = split.error(plain.temperature)
    plain = split.fit(ShiftAwareTemperature(), split.calibration)
    found["calibration domains only"] = split.error(plain.temperature)
    return found


def run(
    name: str, archive: DomainArchive, seeds: int, cache: Path | None, *, ablation: bool
) -> dict[str, np.ndarray]:
    """ECE of every method, all splits and seeds of one set."""
    found: list[list[dict[str, float]]] = [
        [
            score(split, ablation=ablation)
            for split in splits(name, archive, seed, cache)
        ]
        for seed in range(seeds)
    ]
    return {
        method: np.array([[row[method] for row in rows] for rows in found]).T
        for method in found[0][0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="folder for trained heads")
    parser.add_argument("--ablation", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print_origin()
    tables = {}
    for given_name in given.archives:
        name, _, path = given_name.rpartition("=")
        bundled = path in ("sentiment", "digits")
        archive = load_dataset(path) if bundled else load_archive(path)
        name = name or Path(path).stem
        tables[name] = run(
            name, archive, given.seeds, given.cache, ablation=given.ablation
        )
    report(tables)


if __name__ == "__main__":
    main()
