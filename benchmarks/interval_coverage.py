"""How often do the bootstrap's 95 % intervals hold the truth?

Two calibrations of one simulated classifier are compared on a fresh sample, again and
again. The truth is their 15-bin ECE on two million rows. Prints Markdown; `--json FILE`
also writes the numbers.

    python benchmarks/interval_coverage.py
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from coolhead.metrics import expected_calibration_error, paired_bootstrap


@dataclass(frozen=True)
class Setting:
    """Logits z0 are normal, labels follow softmax(z0), the classifier says
    sharpness * z0; the two methods divide that by their temperatures."""

    name: str
    n_rows: int
    n_classes: int
    sharpness: float
    temperatures: tuple[float, float]
    spread: float = 2.0


SETTINGS = (
    Setting("over-confident vs calibrated", 1500, 65, 2.0, (1.0, 2.0)),
    Setting("over-confident vs half way", 3500, 65, 2.0, (1.0, 1.5)),
    Setting("under- vs over-confident", 2000, 10, 1.0, (1.4, 0.7)),
    Setting("calibrated vs slightly off", 2000, 10, 1.0, (1.0, 1.1)),
)


@dataclass(frozen=True)
class Coverage:
    """Shares of replications whose interval held the truth, and mean widths."""

    setting: Setting
    truth: tuple[float, float]
    difference: float
    difference_plain: float
    single: float
    width: float
    width_plain: float


def sample(
    setting: Setting, n_rows: int, generator: np.random.Generator
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Correctness and the two methods' confidences, (n_rows,) each."""
    shape = (n_rows, setting.n_classes)
    logits = setting.spread * generator.standard_normal(shape)
    # Adding Gumbel noise and taking the largest draws from the softmax.
    labels = (logits + generator.gumbel(size=shape)).argmax(axis=1)
    correct = labels == logits.argmax(axis=1)
    logits -= logits.max(axis=1, keepdims=True)
    first, second = (
        1 / np.exp(logits * (setting.sharpness / temperature)).sum(axis=1)
        for temperature in setting.temperatures
    )
    return correct, {"first": first, "second": second}


def true_errors(setting: Setting, n_rows: int, seed: int = 1) -> tuple[float, float]:
    """ECE of both methods on a very large sample."""
    generator = np.random.default_rng(seed)
    parts = [sample(setting, 50_000, generator) for _ in range(n_rows // 50_000)]
    correct = np.concatenate([part[0] for part in parts])
    first, second = (
        expected_calibration_error(correct, np.concatenate([p[1][name] for p in parts]))
        for name in ("first", "second")
    )
    return first, second


def measure(
    setting: Setting,
    *,
    n_replications: int,
    n_draws: int = 1000,
    truth_rows: int = 2_000_000,
    seed: int = 0,
) -> Coverage:
    truth = true_errors(setting, truth_rows)
    change = truth[1] - truth[0]
    generator = np.random.default_rng(seed)
    held, widths = [], []
    for replication in range(n_replications):
        correct, methods = sample(setting, setting.n_rows, generator)
        result = paired_bootstrap(
            correct,
            methods,
            baseline="first",
            n_draws=n_draws,
            random_state=replication,
        )
        ours = result.differences["second"]
        draws = result.values["second"] - result.values["first"]
        plain = 2 * ours.estimate - np.quantile(draws, [0.975, 0.025])
        singles = [
            interval.low <= value <= interval.high
            for value, interval in zip(truth, result.estimates.values(), strict=True)
        ]
        held.append(
            (
                ours.low <= change <= ours.high,
                plain[0] <= change <= plain[1],
                np.mean(singles),
            )
        )
        widths.append((ours.high - ours.low, plain[1] - plain[0]))
    shares, width = np.mean(held, axis=0), np.mean(widths, axis=0)
    return Coverage(setting, truth, *map(float, (*shares, *width)))


def markdown(results: list[Coverage]) -> str:
    lines = [
        "| setting | n | classes | true ECE % | coverage of the difference % | "
        "plain basic % | single ECE % | width (plain), points |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        first, second = (f"{100 * value:.2f}" for value in r.truth)
        lines.append(
            f"| {r.setting.name} | {r.setting.n_rows} | {r.setting.n_classes} "
            f"| {first}, {second} | {100 * r.difference:.1f} "
            f"| {100 * r.difference_plain:.1f} | {100 * r.single:.1f} "
            f"| {100 * r.width:.2f} ({100 * r.width_plain:.2f}) |"
        )
    average = 100 * np.mean([r.difference for r in results])
    plain = 100 * np.mean([r.difference_plain for r in results])
    lines.append(f"| average | | | | {average:.1f} | {plain:.1f} | | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    options = {"n_replications": arguments.replications, "seed": arguments.seed}
    results = [measure(setting, **options) for setting in SETTINGS]
    print(markdown(results))
    if arguments.json:
        text = json.dumps([asdict(result) for result in results], indent=2)
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
