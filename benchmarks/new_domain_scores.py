"""What is measured on one split of `new_domain.py`."""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from coolhead.calibrators.class_offsets import add_offsets, used_offsets
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.metrics import expected_calibration_error
from coolhead.new_domain import NewDomain
from coolhead.new_domain.labels import uncertainty
from coolhead.new_domain.sets import find_limit, members
from coolhead.numerics.softmax import confidence

LABELS = (20, 100)
DRAWS = 2
# Two left-out domains can promise two thirds at most, for a new one.
PROMISES = (("pooled", 0.9), ("every_domain", 0.9), ("new_domain", 0.6))
Found = dict[str, list[float]]


class Rows(NamedTuple):
    """Logits, features and labels of some rows."""

    logits: np.ndarray
    features: np.ndarray
    labels: np.ndarray

    @property
    def right(self) -> np.ndarray:
        return self.logits.argmax(axis=1) == self.labels


class Split(NamedTuple):
    """A fitted calibrator with its evidence, and the rows of one target."""

    name: str
    calibrator: Any
    source: Rows
    small: Rows
    large: Rows


def score(split: Split, seed: int) -> dict[str, float]:
    """All that is measured on one split, averaged over draws of labels."""
    found: Found = defaultdict(list)
    small = split.small
    _add_references(split, found)
    there = NewDomain(split.calibrator, small.logits, small.features)
    alone = there.without("batch")
    _measure("none", alone, split, found)
    _measure("batch", there, split, found)
    _add_threshold("batch", there, split, found)
    _add_sets(split, found)
    doubt = uncertainty(there._state.seen.confidence)
    # What rows chosen in proportion to their doubt can win at most over random ones.
    found["neyman"].append(float(doubt.mean() / np.sqrt(np.mean(doubt**2))))
    for draw in range(DRAWS):
        shuffled = np.random.default_rng([seed, draw]).permutation(len(small.labels))
        asked = NewDomain(
            split.calibrator, small.logits, small.features, random_state=draw
        )
        for n in LABELS:
            rows, drawn = asked.rows_to_label(n), shuffled[:n]
            one = alone.with_labels(rows, small.labels[rows])
            both = there.with_labels(rows, small.labels[rows])
            random = there.with_labels(drawn, small.labels[drawn])
            _measure(f"{n}", one, split, found)
            _measure(f"batch+{n}", both, split, found)
            _measure(f"batch+{n} random", random, split, found)
            _add_threshold(f"batch+{n}", both, split, found)
            plain = TemperatureScaling().fit(small.logits[drawn], small.labels[drawn])
            found[f"ece plain {n}"].append(_error(split, plain))
            uncorrected = float(split.large.right.mean())
            _note(f"wilson {n}", *wilson(small.right[drawn]), uncorrected, found)
    return {key: float(np.mean(values)) for key, values in found.items()}


def wilson(right: np.ndarray) -> tuple[float, float]:
    """Wilson's 90 % interval."""
    n, share, z = len(right), right.mean(), 1.6448536
    middle = (share + z * z / 2 / n) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / 4 / n / n) / (1 + z * z / n)
    return middle - half, middle + half


def _error(split: Split, calibrator: Any) -> float:
    """ECE in per cent on the target's Large rows."""
    return 100 * float(expected_calibration_error(*_scored(split, calibrator)))


def _scored(split: Split, calibrator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Whether the calibrator's predictions of Large rows are right; their confidence.

    Class offsets change predictions.
    """
    rows = split.large
    sure, predicted = calibrator.confidence(rows.logits, rows.features)
    return predicted == rows.labels, sure


def _add_references(split: Split, found: Found) -> None:
    for name, rows in (("source-only", split.source), ("oracle", split.small)):
        fitted = TemperatureScaling().fit(rows.logits, rows.labels)
        found[f"ece {name}"].append(_error(split, fitted))
    sure = confidence(split.large.logits, 1.0)[0]
    plain = expected_calibration_error(split.large.right, sure)
    found["ece uncalibrated"].append(100 * float(plain))


def _measure(name: str, there: NewDomain, split: Split, found: Found) -> None:
    found[f"ece {name}"].append(_error(split, there.calibrator))
    expected = there.accuracy
    truth = float(_scored(split, there.calibrator)[0].mean())
    _note(name, expected.low, expected.high, truth, found)
    found[f"off {name}"].append(100 * abs(expected.estimate - truth))


def _note(name: str, low: float, high: float, truth: float, found: Found) -> None:
    found[f"width {name}"].append(100 * (high - low))
    found[f"covered {name}"].append(float(low <= truth <= high))


def _add_threshold(name: str, there: NewDomain, split: Split, found: Found) -> None:
    """Whether answered Large rows are right in 90 %, and how many are answered."""
    limit, rows = there.threshold(0.9).confidence, split.large
    right, sure = _scored(split, there.calibrator)
    answered = np.zeros(len(rows.labels), bool) if limit is None else sure >= limit
    found[f"answered {name}"].append(100 * float(answered.mean()))
    kept = right[answered].mean() >= 0.9 if answered.any() else True
    found[f"threshold kept {name}"].append(float(kept))


def _add_sets(split: Split, found: Found) -> None:
    """Share of the target's Large rows whose set holds their label, and its size."""
    rows, known = split.large, split.calibrator.evidence_
    temperature = split.calibrator.temperature(rows.logits, rows.features)
    offsets = used_offsets(split.calibrator)
    logits = rows.logits
    if offsets is not None:
        logits = add_offsets(logits, temperature, offsets)
    for promise, wanted in PROMISES:
        limit = find_limit(known, "lac", wanted, promise)
        sets = members(logits, temperature, "lac", limit)
        held = sets[np.arange(len(rows.labels)), rows.labels]
        name = f"{promise} {100 * wanted:.0f} %"
        found[f"held {name}"].append(100 * float(held.mean()))
        found[f"size {name}"].append(float(sets.sum(axis=1).mean()))
