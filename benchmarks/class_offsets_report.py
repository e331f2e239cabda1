"""Tables of `class_offsets.py`: every bar, every score, and coverage of intervals."""

from typing import NamedTuple

import numpy as np

SCORES = ("nll", "accuracy", "ece", "class-wise ece")
METHODS = ("uncalibrated", "oracle", "set-level", "δ: none", "δ, b: none")
METHODS += ("δ: none, plain call", "δ, b: none, plain call", "δ, b: batch")
METHODS += tuple(
    f"{what}{n}" for n in (20, 100) for what in ("δ: ", "δ, b: ", "both: ")
)
# Rows of the batch (None for all), and labels, of the intervals that are checked.
CASES = [
    (size, n) for size in (30, 100, None) for n in (0, 20, 100) if n < (size or 101)
]
Tables = dict[str, dict[str, np.ndarray]]


class Bar(NamedTuple):
    """A value, and whether it was to be at least or at most a limit."""

    name: str
    limit: float
    value: float
    at_least: bool = False
    digits: int = 2

    def line(self) -> str:
        """Return a row of the table."""
        held = self.value >= self.limit if self.at_least else self.value <= self.limit
        sign, signed = ("≥" if self.at_least else "≤"), "+" if self.limit < 1 else ""
        value = f"{self.value:{signed}.{self.digits}f}"
        shown = "yes" if held else "**no**"
        return f"| {self.name} | {sign} {self.limit:g} | {value} | {shown} |"


def per_set(tables: Tables, name: str, against: str | None = None) -> np.ndarray:
    """Return the mean of a score on each set, or of its difference to another."""
    found = [s[name] - (0 if against is None else s[against]) for s in tables.values()]
    return np.array([np.nanmean(values) for values in found])


def gain_bars(tables: Tables) -> list[Bar]:
    """Bars of NLL, accuracy and ECE."""

    def change(kind: str, name: str, against: str) -> np.ndarray:
        return per_set(tables, f"{kind} {name}", f"{kind} {against}")

    none, before = "δ, b: none", "δ: none"
    accuracy = change("accuracy", none, before)
    batch = change("accuracy", "δ, b: batch", before)
    few = [change(kind, "both: 20", "δ: 20").max() for kind in ("nll", "ece")]
    found = [
        Bar(
            "no target data: NLL, worst set",
            0.0,
            change("nll", none, before).max(),
            digits=3,
        ),
        Bar("accuracy, worst set", -0.2, accuracy.min(), True),
        Bar("accuracy, mean", 1.0, accuracy.mean(), True),
        Bar("ECE, worst set", 0.3, change("ece", none, before).max()),
        Bar("batch: accuracy, mean", 2.2, batch.mean(), True),
        Bar("accuracy, worst set", -0.5, batch.min(), True),
        Bar(
            "batch and 20 labels: accuracy, mean",
            4.5,
            change("accuracy", "both: 20", before).mean(),
            True,
        ),
        Bar("NLL against δ alone, worst set", 0.0, few[0], digits=3),
        Bar("ECE against δ alone, worst set", 0.3, few[1]),
        Bar(
            "batch and 100 labels: accuracy, mean",
            6.2,
            change("accuracy", "both: 100", before).mean(),
            True,
        ),
    ]
    for call in ("", ", plain call"):
        name = f"δ, b: none{call}"
        worst = change("ece", name, "set-level").max()
        found.append(Bar(f"ECE against set-level{call}, worst set", 0.2, worst))
    return found


def harm_bars(tables: Tables) -> list[Bar]:
    """Bars of splits that lose, in per cent of all splits."""
    found = []
    for name, limit in (
        ("δ, b: none", 8),
        ("δ, b: batch", 10),
        ("both: 20", 5),
        ("both: 100", 2),
    ):
        lost = [
            np.mean(s[f"accuracy {name}"] - s["accuracy uncalibrated"] < -1)
            for s in tables.values()
        ]
        title = f"splits whose accuracy falls by more than a point, {name}"
        found.append(Bar(title, limit, 100 * float(np.mean(lost)), digits=1))
    for name, limit in (("δ, b: none", 10), ("δ, b: batch", 8), ("both: 20", 4)):
        harmed = [
            np.mean(
                (s[f"ece {name}"] > s["ece uncalibrated"] + 1)
                & (s["ece oracle"] <= s["ece uncalibrated"] + 1)
            )
            for s in tables.values()
        ]
        title = f"splits harmed in ECE, {name}"
        found.append(Bar(title, limit, 100 * float(np.mean(harmed)), digits=1))
    return found


def interval_bars(tables: Tables) -> list[Bar]:
    """Bars of coverage, in points below an exact interval, and of width."""
    found = []
    for size, n in CASES:
        name = f"{size or 'all'} rows, {n} labels"
        below = 100 * per_set(tables, f"exact {name}", f"covered {name}")
        title = f"coverage below an exact interval, worst set, {name}"
        found.append(Bar(title, 2, float(below.max())))
        if n:
            ours, wilson = (
                float(per_set(tables, f"{what} {name}").mean())
                for what in ("width", "wilson")
            )
            found.append(Bar(f"width against Wilson's, {name}", 0, ours - wilson))
    return found


def estimate_bars(tables: Tables) -> list[Bar]:
    """Bars of the expected accuracy without labels."""
    first = next(iter(tables.values()))
    rivals = [k for k in first if k.startswith("error ") and k != "error NewDomain"]
    best = min(rivals, key=lambda name: per_set(tables, name).mean())
    apart = per_set(tables, "error NewDomain", best)
    title = "expected accuracy against the best single rival"
    return [
        Bar(f"{title} ({best.removeprefix('error ')}), mean", 0.0, apart.mean()),
        Bar("the same, worst set", 1.0, apart.max()),
    ]


def report(tables: Tables) -> None:
    """Print a table of every bar, then those of every score."""
    n_splits = {name: len(s["nll δ: none"]) for name, s in tables.items()}
    print("Splits: " + ", ".join(f"{name} {n}" for name, n in n_splits.items()) + ".\n")
    print("| bar | wanted | reached | held |\n|---|---|---|---|")
    bars = gain_bars(tables) + harm_bars(tables)
    for bar in bars + interval_bars(tables) + estimate_bars(tables):
        print(bar.line())

    def head(title: str) -> None:
        print(f"\n| {title} | " + " | ".join(tables) + " | mean |")
        print("|---" * (len(tables) + 2) + "|")

    def line(key: str, name: str, digits: int = 1, scale: float = 1) -> None:
        values = scale * per_set(tables, key)
        cells = [f"{value:.{digits}f}" for value in [*values, values.mean()]]
        print(f"| {name} | " + " | ".join(cells) + " |")

    for kind in SCORES:
        head(kind + ("" if kind == "nll" else ", %"))
        for method in METHODS:
            line(f"{kind} {method}", method, 3 if kind == "nll" else 1)
    for what, title in (
        ("covered", "90 % intervals cover, %"),
        ("exact", "exact intervals would cover, %"),
        ("width", "mean width, points"),
        ("wilson", "mean width of Wilson's, points"),
        ("off", "mean absolute error, points"),
    ):
        head(title)
        for size, n in CASES:
            name = f"{size or 'all'} rows, {n} labels"
            if all(f"{what} {name}" in s for s in tables.values()):
                scale = 100 if what in ("covered", "exact") else 1
                line(f"{what} {name}", name, scale=scale)
    head("error of the expected accuracy of uncorrected predictions, points")
    for key in next(iter(tables.values())):
        if key.startswith("error "):
            line(key, key.removeprefix("error "))
