"""Intervals and prediction sets where the truth is known.

Domains differ by a random offset of the logit of their accuracy, beyond what
confidence says; nothing is fitted, so that only the intervals are on trial.
"""

import numpy as np

from coolhead.calibrators.evidence import conformal_scores
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.new_domain import NewDomain, learn_evidence
from coolhead.new_domain.sets import domains_needed, score_limit

CLASSES = 5


def draw_domain(
    rng: np.random.Generator, n_rows: int, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """Logits and labels whose best temperature is the given one."""
    level = rng.normal(scale=0.3)
    true = (2 + level) * rng.normal(size=(n_rows, CLASSES))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    return temperature * true, labels


def simulate_intervals(
    repetitions: int, n_domains: int, spread: float, n_labels: int = 20
) -> dict[str, float]:
    """Coverage and width of 90 % intervals, without and with labels."""
    found: dict[str, list[float]] = {
        key: []
        for key in ("covered", "width", "covered labels", "width labels", "chosen")
    }
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, n_domains])
        scales = np.exp(rng.normal(scale=spread, size=n_domains + 1))
        parts = [draw_domain(rng, 200, scale) for scale in scales[:-1]]
        logits = np.concatenate([part[0] for part in parts])
        labels = np.concatenate([part[1] for part in parts])
        domain = np.repeat(np.arange(n_domains), 200).astype(str)
        fitted = TemperatureScaling("equal").fit(logits, labels, sample_domain=domain)
        known = learn_evidence(fitted, logits, labels, sample_domain=domain)
        # Truth from many rows, what is seen from some of them.
        logits, labels = draw_domain(rng, 8_000, scales[-1])
        truth = float(np.mean(logits.argmax(axis=1) == labels))
        there = NewDomain(fitted, logits[:1000], evidence=known)
        drawn = rng.permutation(1000)[:n_labels]
        chosen = there.rows_to_label(n_labels)
        for ending, one in (
            ("", there),
            (" labels", there.with_labels(drawn, labels[drawn])),
        ):
            found[f"covered{ending}"].append(
                one.accuracy.low <= truth <= one.accuracy.high
            )
            found[f"width{ending}"].append(one.accuracy.high - one.accuracy.low)
        asked = there.with_labels(chosen, labels[chosen]).accuracy
        found["chosen"].append(asked.low <= truth <= asked.high)
    return {key: float(np.mean(values)) for key, values in found.items()}


def simulate_sets(
    repetitions: int, n_domains: int, spread: float, promise: str, coverage: float
) -> float:
    """Share of new rows, one of a new domain each time, whose set holds the label."""
    held = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, 7])
        scales = np.exp(rng.normal(scale=spread, size=n_domains + 1))
        parts = [draw_domain(rng, 60, scale) for scale in scales]
        scores = [
            conformal_scores(logits, labels, np.ones(len(labels)))["lac"]
            for logits, labels in parts
        ]
        domain = np.repeat(np.arange(n_domains), 60)
        limit = score_limit(np.concatenate(scores[:-1]), domain, coverage, promise)
        held.append(float(np.mean(scores[-1] <= limit)))
    return float(np.mean(held))


def simulate(repetitions: int) -> None:
    """Print both tables."""
    print(
        "| domains | spread of log T | covers without labels % | width "
        "| with 20 random labels % | width | with 20 chosen rows % |\n"
        "|---|---|---|---|---|---|---|"
    )
    for n_domains in (2, 3, 5, 10):
        for spread in (0.2, 0.4):
            found = simulate_intervals(repetitions, n_domains, spread)
            shown = " | ".join(f"{100 * value:.1f}" for value in found.values())
            print(f"| {n_domains} | {spread} | {shown} |", flush=True)
    print("\n| sets | domains | promised % | held % |\n|---|---|---|---|")
    for coverage, n_domains in ((0.9, 9), (0.9, 20), (0.8, 4), (0.8, 10)):
        assert n_domains >= domains_needed(coverage)
        for promise in ("pooled", "every_domain", "new_domain"):
            # Sets need no fit: more repetitions cost little.
            times = max(repetitions, 1000)
            reached = simulate_sets(times, n_domains, 0.5, promise, coverage)
            shown = f"{100 * coverage:.0f} | {100 * reached:.1f}"
            print(f"| `{promise}` | {n_domains} | {shown} |", flush=True)
