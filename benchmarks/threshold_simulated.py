"""How often `NewDomain.threshold` keeps its promise where the truth is known.

    python benchmarks/threshold_simulated.py [REPETITIONS]

Domains differ by one temperature each and by nothing else, except in the last
settings, where log T also varies from row to row. A promise is kept if the expected
accuracy of all rows of the domain at or above the threshold is at least the wanted
one, or if no threshold is given; `kept if given` leaves out the latter. `allowed` is
the share of rows that could be answered if the true probabilities were known.
"""

import sys
from typing import NamedTuple

import numpy as np
from origin import print_origin

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.new_domain import NewDomain, learn_evidence
from coolhead.numerics.softmax import softmax

ACCURACIES, LABELS = (0.8, 0.9, 0.95), (0, 20, 100)
SPREAD, CALIBRATION_ROWS, FRESH_ROWS = 0.3, 300, 20_000
# Development used other seeds.
SEED = 7
# Standard deviation of the true logits; 10 classes are hard to tell apart with less.
STRENGTH = {2: 2.0, 3: 2.0, 10: 4.0}


class Setting(NamedTuple):
    """What is varied; `within` is the spread of log T between rows of a domain."""

    classes: int = 3
    domains: int = 5
    rows: int = 300
    within: float = 0.0


SETTINGS = [
    Setting(),
    *(Setting(classes=classes) for classes in (2, 10)),
    *(Setting(domains=domains) for domains in (3, 10)),
    *(Setting(rows=rows) for rows in (100, 1000)),
    *(Setting(within=within) for within in (0.3, 0.6)),
]


class Domain(NamedTuple):
    """Logits (n, k), labels (n,), and the probability that each row is right, (n,)."""

    logits: np.ndarray
    labels: np.ndarray
    chance: np.ndarray


def draw_domain(rng: np.random.Generator, n_rows: int, setting: Setting) -> Domain:
    """Draw a domain with a temperature of its own."""
    row_effects = rng.normal(scale=setting.within, size=(n_rows, 1))
    scales = np.exp(rng.normal(scale=SPREAD) + row_effects)
    true = STRENGTH[setting.classes] * rng.normal(size=(n_rows, setting.classes))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    return Domain(scales * true, labels, softmax(true, 1.0).max(axis=1))


def enter_domain(
    rng: np.random.Generator, setting: Setting
) -> tuple[NewDomain, Domain]:
    """A calibrator of some domains meets the first rows of a new one."""
    parts = [
        draw_domain(rng, CALIBRATION_ROWS, setting) for _ in range(setting.domains)
    ]
    logits = np.concatenate([part.logits for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    names = np.repeat(np.arange(setting.domains), CALIBRATION_ROWS).astype(str)
    fitted = TemperatureScaling("equal").fit(logits, labels, sample_domain=names)
    known = learn_evidence(fitted, logits, labels, sample_domain=names)
    new = draw_domain(rng, setting.rows + FRESH_ROWS, setting)
    return NewDomain(fitted, new.logits[: setting.rows], evidence=known), new


def allowed_share(chance: np.ndarray, wanted: float) -> float:
    """Return the share of rows that true probabilities would allow to answer."""
    means = np.cumsum(np.sort(chance)[::-1]) / np.arange(1, len(chance) + 1)
    return float(np.mean(means >= wanted))


def simulate(repetitions: int, setting: Setting) -> np.ndarray:
    """Return kept, refused, answered and allowed, in %: (accuracies, labels, 4)."""
    found = np.empty((repetitions, len(ACCURACIES), len(LABELS), 4))
    for repetition in range(repetitions):
        rng = np.random.default_rng([SEED, repetition, *setting[:3]])
        there, new = enter_domain(rng, setting)
        fresh, chance = new.logits[setting.rows :], new.chance[setting.rows :]
        for column, n_labels in enumerate(LABELS):
            one = there
            if n_labels:
                rows = there.rows_to_label(n_labels)
                one = there.with_labels(rows, new.labels[rows])
            confidence = one.calibrator.confidence(fresh)[0]
            for line, wanted in enumerate(ACCURACIES):
                limit = one.threshold(wanted).confidence
                answered = confidence >= (np.inf if limit is None else limit)
                kept = not answered.any() or chance[answered].mean() >= wanted
                share, allowed = answered.mean(), allowed_share(chance, wanted)
                found[repetition, line, column] = kept, limit is None, share, allowed
    return 100 * found.mean(axis=0)


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print_origin()
    print(
        "Three figures of a cell are with 0 / 20 / 100 labels.\n\n| classes | domains "
        "| rows | spread within | wanted % | kept % | kept if given % | no threshold % "
        "| answered % | allowed % |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for setting in SETTINGS:
        found = simulate(repetitions, setting)
        for wanted, by_labels in zip(ACCURACIES, found, strict=True):
            cells = [*map(str, setting), f"{100 * wanted:.0f}"]
            kept, refused, answered, allowed = by_labels.T
            broken = 100 * (100 - kept) / np.maximum(100 - refused, 1e-9)
            shown = ((kept, 1), (100 - broken, 0), (refused, 0), (answered, 0))
            for column, digits in shown:
                cells.append(" / ".join(f"{value:.{digits}f}" for value in column))
            print("|", " | ".join([*cells, f"{allowed[0]:.0f}"]), "|", flush=True)


if __name__ == "__main__":
    main()
