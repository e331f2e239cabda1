"""How often 90 % intervals of groups cover, where the truth is known.

    python benchmarks/group_intervals.py [REPETITIONS]

Three labelled domains and a new one, of four groups each, whose best log T varies by a
given spread around that of their domain.
"""

import sys

import numpy as np
from origin import print_origin

import coolhead as ch
from coolhead.new_domain import NewDomain, learn_evidence

CLASSES, GROUPS = 5, 4


def draw_domain(
    rng: np.random.Generator, n_rows: int, temperature: float, spread: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits, labels and groups."""
    groups = rng.integers(0, GROUPS, n_rows)
    scale = temperature * np.exp(rng.normal(0, spread, GROUPS))[groups, None]
    true = 2 * rng.normal(size=(n_rows, CLASSES))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    return scale * true, labels, groups


def arrive(repetition: int, spread: float) -> dict[int, list[tuple[bool, float]]]:
    """Whether each group's interval covers, and its width, by number of labels."""
    rng = np.random.default_rng([repetition, 5])
    scales = np.exp(rng.normal(0, 0.3, 4))
    parts = [draw_domain(rng, 300, scale, spread) for scale in scales[:3]]
    logits = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    domains = np.repeat(["a", "b", "c"], 300)
    cal = ch.TemperatureScaling("equal").fit(logits, labels, sample_domain=domains)
    known = learn_evidence(cal, logits, labels, sample_domain=domains)
    logits, labels, groups = draw_domain(rng, 12_000, scales[3], spread)
    right = logits.argmax(axis=1) == labels
    there = NewDomain(cal, logits[:1000], evidence=known)
    found: dict[int, list[tuple[bool, float]]] = {}
    for n in (0, 20, 100):
        told = there
        if n:
            rows = there.rows_to_label(n)
            told = there.with_labels(rows, labels[rows])
        found[n] = []
        for group, part in told.by_group(groups[:1000]).items():
            low, high = part.accuracy.low, part.accuracy.high
            truth = right[groups == group].mean()
            found[n].append((bool(low <= truth <= high), high - low))
    return found


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print_origin()
    print("| spread of groups | labels | covers % | width |\n|---|---|---|---|")
    for spread in (0.0, 0.3, 0.6):
        every = [arrive(repetition, spread) for repetition in range(repetitions)]
        for n in (0, 20, 100):
            pairs = np.array([pair for one in every for pair in one[n]], float)
            covers, width = 100 * pairs.mean(axis=0)
            print(f"| {spread} | {n} | {covers:.0f} | {width:.1f} |", flush=True)


if __name__ == "__main__":
    main()
