"""The tables of `beyond.py`, and every bar with what was reached."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

PAPER = ("set-level", "nearest cluster", "regression", "ensemble")
EQUAL = "set-level, equal domains"
WITH_SOURCE = tuple(f"{name} + source" for name in PAPER)
FIXED = (*PAPER, *WITH_SOURCE, EQUAL, "MD-TS")
WANTED = "PACS ≥ 0.85, sentiment ≥ 0.75, digits above the paper's methods"
ABLATED = ("without ", "no reference", "calibration domains only")
DRAWS = 2_000

Scores = dict[str, np.ndarray]


def interval(differences: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of a mean over splits; seeds of a split stay together."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(differences), (DRAWS, len(differences)))
    low, high = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def report(tables: dict[str, Scores]) -> None:
    """Print every set's methods, then the bars and the ablation, a column per set.

    tables : set -> method -> (splits, seeds) ECE in per cent.
    """
    for name, scores in tables.items():
        auto = scores["auto"]
        _print_head(
            f"{name}, {auto.shape[0]} splits, {auto.shape[1]} seeds",
            ["method", "ECE", "IR", "minus Auto [95 %]", "harm", "worse"],
        )
        for method, values in scores.items():
            if not method.startswith(ABLATED):
                _print_row(_name(method), *cells(scores, method, values))
    _print_head("Every bar", ["", *tables, "mean", "wanted"])
    for line, (reached, shown, wanted) in BARS.items():
        found = [reached(scores) for scores in tables.values()]
        _print_row(line, *map(shown.format, [*found, np.mean(found)]), wanted)
    ablated = [m for m in next(iter(tables.values())) if m.startswith(ABLATED)]
    if ablated:
        _print_head("Shift-aware with something taken away, IR", ["", *tables])
        for method in ["shift-aware alone", *ablated]:
            ratios = (f"{ratio(each, method):.2f}" for each in tables.values())
            _print_row(_name(method), *ratios)


def cells(scores: Scores, method: str, values: np.ndarray) -> Iterator[str]:
    """Mean ECE, IR, paired interval against Auto, and both kinds of harm."""
    apart = (values - scores["auto"]).mean(axis=1)
    low, high = interval(apart)
    yield f"{values.mean():.2f}"
    yield f"{ratio(scores, method):.2f}"
    yield "" if method == "auto" else f"{apart.mean():.2f} [{low:.2f}, {high:.2f}]"
    yield f"{harm(scores, method):.0f} %"
    yield f"{100 * (values > scores['uncalibrated'] + 1).mean():.0f} %"


def ratio(scores: Scores, method: str) -> float:
    """Ratio of mean ECEs: 0 for source-only, 1 for the oracle."""
    source, oracle = scores["source-only"].mean(), scores["oracle"].mean()
    return float((source - scores[method].mean()) / (source - oracle))


def harm(scores: Scores, method: str) -> float:
    """Per cent of cells a point above uncalibrated where the oracle is not."""
    plain = scores["uncalibrated"]
    possible = scores["oracle"] <= plain + 1
    return float(100 * ((scores[method] > plain + 1) & possible).mean())


def best(scores: Scores, names: Iterable[str]) -> float:
    """The largest ratio of these methods."""
    return max(ratio(scores, name) for name in names)


# What is reached, how it is shown, what was wanted.
BARS: dict[str, tuple[Callable[[Scores], float], str, str]] = {
    "IR of `AutoCalibrator`": (lambda s: ratio(s, "auto"), "{:.2f}", WANTED),
    "IR of set-level, every domain counting the same": (
        lambda s: ratio(s, EQUAL),
        "{:.2f}",
        "",
    ),
    "IR of the best of the paper's four": (lambda s: best(s, PAPER), "{:.2f}", ""),
    "IR of the best of the paper's four, with the source": (
        lambda s: best(s, WITH_SOURCE),
        "{:.2f}",
        "",
    ),
    "best fixed method in hindsight, minus Auto": (
        lambda s: best(s, FIXED) - ratio(s, "auto"),
        "{:.2f}",
        "mean ≤ 0.05",
    ),
    "cells a point worse than uncalibrated where the oracle is not": (
        lambda s: harm(s, "auto"),
        "{:.0f} %",
        "≤ 5 % overall",
    ),
}


def _name(method: str) -> str:
    return method[0].upper() + method[1:]


def _print_head(heading: str, columns: list[str]) -> None:
    print(f"\n### {heading}\n")
    _print_row(*columns)
    print(f"|{'---|' * len(columns)}")


def _print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |")
