"""The tables of `new_domain.py`, and every bar with what was reached."""

from collections.abc import Callable, Iterator

import numpy as np

Scores = dict[str, np.ndarray]
Tables = dict[str, Scores]


def report(tables: Tables) -> None:
    """Print everything, one column per set."""
    some = next(iter(tables.values()))
    _print_ratios(tables, [key[4:] for key in some if key.startswith("ece ")])
    titles = {
        "covered ": ("90 % intervals", "coverage %, median width"),
        "off ": ("Expected accuracy", "mean absolute error, points"),
        "held ": ("Prediction sets", "label held %, mean size"),
        "threshold kept ": (
            "Thresholds",
            "answered rows right in 90 %: splits %, mean share answered",
        ),
    }
    cells: dict[str, Callable[[Scores, str], str]] = {
        "covered ": lambda s, n: (
            f"{100 * _mean(s, 'covered ' + n):.0f}, {np.median(s['width ' + n]):.1f}"
        ),
        "off ": lambda s, n: f"{_mean(s, 'off ' + n):.1f}",
        "held ": lambda s, n: (
            f"{_mean(s, 'held ' + n):.1f}, {_mean(s, 'size ' + n):.1f}"
        ),
        "threshold kept ": lambda s, n: (
            f"{100 * _mean(s, 'threshold kept ' + n):.0f}, "
            f"{_mean(s, 'answered ' + n):.0f}"
        ),
    }
    for start, (heading, title) in titles.items():
        names = [key.removeprefix(start) for key in some if key.startswith(start)]
        _print_head(heading, title, list(tables))
        for name in names:
            shown = " | ".join(cells[start](scores, name) for scores in tables.values())
            print(f"| {name} | {shown} |")
    _print_head("Every bar", "bar", ["wanted", "reached"])
    for name, wanted, reached in bars(tables):
        print(f"| {name} | {wanted} | {reached} |")


def ratio(scores: Scores, method: str) -> float:
    """Ratio of mean ECEs: 0 for source-only, 1 for the oracle."""
    source, oracle = _mean(scores, "ece source-only"), _mean(scores, "ece oracle")
    return (source - _mean(scores, f"ece {method}")) / (source - oracle)


def harm(tables: Tables, method: str) -> float:
    """Share of splits more than a point above uncalibrated where the oracle is not."""
    worse = [
        (s[f"ece {method}"] > s["ece uncalibrated"] + 1)[
            s["ece oracle"] <= s["ece uncalibrated"] + 1
        ]
        for s in tables.values()
    ]
    return float(np.concatenate(worse).mean())


def bars(tables: Tables) -> Iterator[tuple[str, str, str]]:
    """What was asked for, and what came out."""
    ir = {
        name: np.array([ratio(scores, name) for scores in tables.values()])
        for name in ("none", "batch", "20", "100", "batch+20", "batch+100", "plain 100")
    }

    def all_of(key: str) -> np.ndarray:
        return np.concatenate([scores[key] for scores in tables.values()])

    def narrower(one: str, other: str) -> str:
        """Mean over sets of one minus the ratio of median widths."""
        ratios = [np.median(s[one]) / np.median(s[other]) for s in tables.values()]
        return f"{100 * (1 - np.mean(ratios)):.0f} %"

    less = np.max([ir["none"], ir["batch"], ir["20"]], axis=0)
    yield "batch: mean IR", ">= .75", f"{ir['batch'].mean():.2f}"
    yield "batch: lowest IR of a set", ">= .60", f"{ir['batch'].min():.2f}"
    yield (
        "batch minus none, worst",
        ">= -.03",
        f"{(ir['batch'] - ir['none']).min():.2f}",
    )
    yield "batch+20: mean IR", ">= .85", f"{ir['batch+20'].mean():.2f}"
    yield (
        "batch+20 minus less, worst",
        ">= -.03",
        f"{(ir['batch+20'] - less).min():.2f}",
    )
    yield "batch+100: mean IR", ">= .95", f"{ir['batch+100'].mean():.2f}"
    gap = (ir["batch+100"] - ir["plain 100"]).min()
    yield "batch+100 minus plain, worst", ">= -.02", f"{gap:.2f}"
    for n in (20, 100):
        yield f"harm, batch+{n}", "<= 5 %", f"{100 * harm(tables, f'batch+{n}'):.1f} %"
    for name in ("none", "batch", "batch+20", "batch+20 random", "batch+100"):
        covered = 100 * all_of(f"covered {name}").mean()
        yield f"interval covers, {name}", "85 to 97 %", f"{covered:.0f} %"
    yield "median width, none", "<= 40", f"{np.median(all_of('width none')):.1f}"
    yield "median width, batch", "<= 40", f"{np.median(all_of('width batch')):.1f}"
    same = narrower("width batch+20 random", "width wilson 20")
    yield "narrower than Wilson, the same 20 random rows", ">= 25 %", same
    chosen = narrower("width batch+20", "width wilson 20")
    yield "20 chosen rows against Wilson on random ones", "", chosen
    for n in (20, 100):
        won = narrower(f"width batch+{n}", f"width batch+{n} random")
        yield f"{n} chosen against random rows", ">= 15 %", won
    most = 100 * (1 - all_of("neyman").mean())
    yield "the most that choosing rows can win, before priors", "", f"{most:.0f} %"


def _print_ratios(tables: Tables, methods: list[str]) -> None:
    _print_head("Improvement ratio and harm", "IR", [*tables, "mean", "harm"])
    for method in methods:
        ratios = [ratio(scores, method) for scores in tables.values()]
        shown = " | ".join(f"{value:.2f}" for value in [*ratios, np.mean(ratios)])
        print(f"| {method} | {shown} | {100 * harm(tables, method):.0f} % |")


def _print_head(heading: str, title: str, names: list[str]) -> None:
    print(f"\n### {heading}\n\n| {title} | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")


def _mean(scores: Scores, key: str) -> float:
    return float(scores[key].mean())
