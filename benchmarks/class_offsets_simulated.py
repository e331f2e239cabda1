"""Class offsets where the truth is known: where they must help, and where not.

    python benchmarks/class_offsets_simulated.py --repetitions 4

Domains have one temperature each. A classifier may favour classes in all of them (class
bias), the shares of the classes may differ between domains (label shift), both, or
neither. Offsets of the classifier are recoverable from labels in each case, those of
label shift only from the target's own rows. Changes against the same calibrator with
`class_offsets=False`.
"""

import argparse
import warnings

import numpy as np
from origin import print_origin

import coolhead as ch
from coolhead.metrics import negative_log_likelihood

WORLDS = {
    "neither": (0.0, 0.0),
    "class bias": (1.0, 0.0),
    "label shift": (0.0, 0.7),
    "both": (1.0, 0.7),
}
ROWS, TEST_ROWS = 300, 2_300


def simulate(
    rng: np.random.Generator, n_domains: int, n_classes: int, bias: float, shift: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return logits and labels of the domains; the last one is the target."""
    favour = bias * rng.normal(size=n_classes)
    parts = []
    for domain in range(n_domains + 1):
        size = TEST_ROWS if domain == n_domains else ROWS
        evidence = 2 * rng.normal(size=(size, n_classes))
        # More common classes win more often, which the classifier does not know.
        truth = evidence + shift * rng.normal(size=n_classes)
        labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
        temperature = np.exp(rng.normal(0.4, 0.2))
        parts.append((temperature * (evidence + favour), labels))
    return parts


def measure(seed: int, n_domains: int, n_classes: int, world: str) -> np.ndarray:
    """Change of accuracy and NLL: no target data, batch, batch and 20 labels."""
    rng = np.random.default_rng([seed, n_domains, n_classes])
    *seen, target = simulate(rng, n_domains, n_classes, *WORLDS[world])
    logits, labels = (np.concatenate(each) for each in zip(*seen, strict=True))
    given = {
        "features": rng.normal(size=(len(labels), 3)),
        "sample_domain": np.repeat(np.arange(n_domains), ROWS).astype(str),
    }
    features = rng.normal(size=(TEST_ROWS, 3))
    batch = slice(0, ROWS)
    found = []
    for offsets in (False, "auto"):
        cal = ch.AutoCalibrator(class_offsets=offsets).fit(logits, labels, **given)
        there = ch.NewDomain(cal, target[0][batch], features[batch])
        rows = there.rows_to_label(20)
        labelled = there.with_labels(rows, target[1][rows])
        for one in (cal, there.calibrator, labelled.calibrator):
            values = one.predict_proba(target[0][ROWS:], features[ROWS:])
            right = values.argmax(axis=1) == target[1][ROWS:]
            loss = negative_log_likelihood(target[1][ROWS:], values)
            found.append((100 * float(right.mean()), float(loss)))
    plain, ours = np.split(np.array(found), 2)
    return ours - plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--domains", type=int, nargs="*", default=(2, 5, 10))
    parser.add_argument("--classes", type=int, nargs="*", default=(2, 10, 100))
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print_origin()
    evidence = ("none", "batch", "batch, 20 labels")
    print(
        "| world | domains | classes | "
        + " | ".join(f"accuracy, {each}" for each in evidence)
        + " | "
        + " | ".join(f"NLL, {each}" for each in evidence)
        + " |\n"
        + "|---" * 9
        + "|"
    )
    for world in WORLDS:
        for n_domains in given.domains:
            for n_classes in given.classes:
                changes = [
                    measure(seed, n_domains, n_classes, world)
                    for seed in range(given.repetitions)
                ]
                accuracy, loss = np.mean(changes, axis=0).T
                cells = [f"{value:+.1f}" for value in accuracy]
                cells += [f"{value:+.3f}" for value in loss]
                row = [world, str(n_domains), str(n_classes), *cells]
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
