"""Write docs/paper-reproduced.md and its pictures from finished runs of Office-Home.

    python scripts/write_paper_page.py RUN [RUN ...] [--multi-source RUN ...]
        [--formations RUN] [--titles TITLE ...]

Runs go by the titles of their protocols unless `--titles` gives one for each RUN.

Every number of the page is read from the runs or from the paper's printed tables;
nothing of the images is in it.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import polars as pl

from coolhead import figures
from coolhead.experiment.record import read_run_record
from coolhead.experiment.results import read_table
from coolhead.experiment.tables.beside_paper import Published
from coolhead.experiment.tables.findings import check_findings
from coolhead.experiment.tables.run_scores import (
    RunScores,
    column_mean,
    label,
    load_scores,
)
from coolhead.figures.svg import draw_svg
from coolhead.files import atomic_path

DOCS = Path(__file__).parent.parent / "docs"
SHOWN = (
    *("uncalibrated", "source-only", "target-only", "set-level", "nearest-cluster"),
    *("regression", "ensemble", "auto", "transcal", "wts", "cpcs"),
    *("transcal-ours", "wts-ours", "cpcs-ours"),
)
DRAWN = ("uncalibrated", "source-only", "ensemble", "auto", "target-only")
TOP = """# The paper, reproduced

Gong et al., *Confidence Calibration for Domain Generalization under Covariate Shift*
(ICCV 2021), on the data the paper used: Office-Home, 15,588 images of 65 classes in
four domains. Written by `scripts/write_paper_page.py` from finished runs; no number is
typed. From the folder of images to tables and report it is one command:

```
coolhead reproduce office-home --images FOLDER
coolhead reproduce office-home --images FOLDER --finetune --size 160 --frozen 0.5 \\
    --epochs 6 --batch-size 32 --learning-rate 0.01 --seeds 0
```

The first ran from images to report in one go, on two cores that other work shared: the
processor times below are its own, the wall times are longer than on a quiet machine.
The features of ResNet50, and the runs on several sources, were swept by `coolhead
sweep office-home` and `office-home-multi-source`.

The second was run in its parts, `coolhead train --finetune` for each source and
`coolhead sweep`, on two cores that other work shared. EfficientNet-Lite0 from ImageNet
weights, images of 160 pixels, the first half of its layers as they were, six epochs of
SGD: chosen to fit four sources into about two hours of two cores, not by any result.

One domain trains the classifier, two calibrate it, the fourth tests it: 12 splits. A
fifth of every domain, its Small rows, calibrates; the rest trains or tests. ECE has 15
equal-width bins and is the mean of 1000 draws of 1500 target images. The paper
fine-tuned a ResNet18 by a recipe it does not give. How sure of itself a network is
before calibration depends on that recipe: compare the calibrated rows.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--multi-source", nargs="*", type=Path, default=[])
    parser.add_argument("--formations", type=Path)
    parser.add_argument("--titles", nargs="*")
    options = parser.parse_args()
    titles = options.titles or [_title(run) for run in options.runs]
    runs = dict(zip(titles, options.runs, strict=True))
    parts = [
        TOP.strip(),
        "## Calibration error",
        _errors(runs),
        "## The paper's findings",
        _findings(runs),
        "## Is the target nearer to the calibration domains than to the source?",
        _variances(runs),
        "## Pictures",
        *(_pictures(title, run) for title, run in runs.items()),
    ]
    if options.multi_source:
        parts += ["## Several sources", _multi_source(options.multi_source)]
    if options.formations:
        parts += ["## Does MLDG help?", _formations(options.formations)]
    parts += ["## What it took", _costs(runs)]
    with atomic_path(DOCS / "paper-reproduced.md") as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _title(run: Path) -> str:
    return read_run_record(run)["protocol"]["title"].removeprefix("Office-Home, ")


def _scores(run: Path) -> RunScores:
    (scores,) = load_scores(run).values()
    return scores


def _table(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def _errors(runs: dict[str, Path]) -> str:
    """Mean ECE and improvement ratio of every method, the paper's first."""
    paper = Published("office_home")
    rows = []
    scores = {title: _scores(run) for title, run in runs.items()}
    for method in SHOWN:
        printed = paper.by_target(method, "all")
        row = [label(method), "" if printed is None else f"{printed[0]:.2f}"]
        rows.append(row + [_ece(found, method) for found in scores.values()])
    ratios = []
    for method in SHOWN[1:]:
        printed = paper.improvement_ratio(method)
        row = [label(method), "" if printed is None else f"{printed:.2f}"]
        ratios.append(row + [_ratio(found, method) for found in scores.values()])
    accuracies = [
        [
            target,
            _number(paper.accuracy(target)),
            *(
                _number(column_mean(s.of("uncalibrated", target=target), "accuracy"))
                for s in scores.values()
            ),
        ]
        for target in next(iter(scores.values())).targets
    ]
    head = ["paper, fine-tuned ResNet18", *runs]
    seeds = [str(len(found.seeds)) for found in scores.values()]
    rows.append(["seeds", "", *seeds])
    return "\n\n".join(
        [
            _table(["ECE (%), mean of 12 splits", *head], rows),
            "TransCal, WTS and CPCS see unlabelled target images. In the rows of that "
            "name the weights are those of TransCal's released code; `our weights` are "
            "those of `coolhead.shift.density_ratio`. The oracles see target labels.",
            _table(["improvement ratio", *head], ratios),
            _table(["accuracy (%) on", *head], accuracies),
        ]
    )


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _ece(scores: RunScores, method: str) -> str:
    return _number(column_mean(scores.of(method), "ece_mean"), 2)


def _ratio(scores: RunScores, method: str) -> str:
    names = ("source-only", method, "target-only")
    start, own, end = (column_mean(scores.of(name), "ece_mean") for name in names)
    if start is None or own is None or end is None:
        return ""
    return f"{(start - own) / (start - end):.2f}"


def _findings(runs: dict[str, Path]) -> str:
    rows: dict[str, list[str]] = {}
    for number, run in enumerate(runs.values()):
        order = read_run_record(run)["protocol"]["order"]
        tables = (read_table(run, name) for name in ("sensitivity", "shift"))
        for finding in check_findings(_scores(run), *tables, order=order):
            row = rows.setdefault(finding.claim, [""] * len(runs))
            verdict = {True: "holds: ", False: "**no**: ", None: ""}[finding.holds]
            row[number] = verdict + finding.numbers
    return _table(["claim", *runs], [[claim, *cells] for claim, cells in rows.items()])


def _variances(runs: dict[str, Path]) -> str:
    """Var(w) of both, split by split, averaged over the seeds."""
    columns, splits = [], {}
    for title, run in runs.items():
        shift = read_table(run, "shift")
        means = shift.group_by("split", "diagnostic").agg(pl.col("value").mean())
        for role in ("source", "calibration"):
            columns.append(f"{title}: {role}")
            wanted = means.filter(pl.col("diagnostic") == f"weight_variance_{role}")
            for split, value in wanted.select("split", "value").iter_rows():
                splits.setdefault(split, {})[columns[-1]] = value
    order = _scores(next(iter(runs.values()))).splits
    rows = [[s, *(_number(splits[s].get(c), 2) for c in columns)] for s in order]
    means = [np.mean([splits[s][c] for s in order]) for c in columns]
    rows.append(["mean", *(_number(float(m), 2) for m in means)])
    words = (
        "Var(w) of the density ratio towards the target, from the source's rows and "
        "from as many rows of the calibration domains, by a discriminator on 50 "
        "principal components that never judges a row it learned from, weights cut "
        "at 50. The paper argues that calibration transfers better the smaller it is."
    )
    return f"{words}\n\n{_table(['Var(w)', *columns], rows)}"


def _pictures(title: str, run: Path) -> str:
    """Before and after by split, by target, and the map of one split."""
    results, points = read_table(run, "results"), read_table(run, "map")
    scores = _scores(run)
    split = scores.splits[0]
    names = {name: label(name) for name in scores.methods}

    def draw(figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.1, 1, 1.2))
        figures.before_after(results, left, method="ensemble")
        left.set_title("the ensemble, split by split")
        shown = [name for name in DRAWN if name in names]
        figures.by_target(results, middle, methods=shown, labels=names)
        middle.set_title("by target, from drawn to photographed")
        figures.feature_map(points, right, split=split)
        right.set_title(f"clusters and their temperatures\n{split}")

    words = f"Office-Home, {title}: calibration error before and after, and the map"
    name = f"paper-{run.name}.svg"
    (DOCS / "pictures").mkdir(exist_ok=True)
    with atomic_path(DOCS / "pictures" / name) as temporary:
        temporary.write_text(draw_svg((14, 4.2), draw, words), encoding="utf-8")
    return f"### {title}\n\n![{words}](pictures/{name})"


def _multi_source(runs: list[Path]) -> str:
    """Trained and calibrated on three domains, tested on the fourth."""
    paper = Published("office_home")
    columns = ("uncalibrated", "set-level", "ensemble", "auto", "target-only")
    head = ["target", "paper accuracy", "paper ECE"]
    head += [
        f"{_title(r)}: {c}" for r in runs for c in ("accuracy", *map(label, columns))
    ]
    rows = []
    for target in _scores(runs[0]).targets:
        printed = paper.multi_source(target)
        row = [target, *(_number(printed.get(c), 2) for c in ("accuracy", "ECE"))]
        for run in runs:
            scores = _scores(run)
            own = scores.of("uncalibrated", target=target)
            row.append(_number(column_mean(own, "accuracy"), 2))
            for method in columns:
                found = scores.of(method, target=target)
                row.append(_number(column_mean(found, "ece_mean"), 2))
        rows.append(row)
    return _table(head, rows)


def _formations(run: Path) -> str:
    """Plain training against MLDG on the simulated formations."""
    by_classifier = load_scores(run)
    methods = [m for m in SHOWN if m in next(iter(by_classifier.values())).methods]
    rows = [
        [label(m), *(_ece(scores, m) for scores in by_classifier.values())]
        for m in methods
    ]
    rows.append(
        [
            "accuracy",
            *(
                _number(column_mean(scores.of("uncalibrated"), "accuracy"), 2)
                for scores in by_classifier.values()
            ),
        ]
    )
    paper: dict[str, dict[str, float]] = {}
    for row, column, value in Published.formations():
        paper.setdefault(row, {})[column] = value
    printed = [
        [row, *map("{:.2f}".format, cells.values())] for row, cells in paper.items()
    ]
    return "\n\n".join(
        [
            "The paper's StarCraft2 maps were never published; simulated formations on "
            "ten maps stand in for them: compare the shape, not the numbers.",
            _mldg(*(by_classifier[name] for name in ("plain", "mldg"))),
            _table(["ECE (%)", *by_classifier], rows),
            _table(["ECE (%), paper", *next(iter(paper.values()))], printed),
        ]
    )


def _mldg(plain: RunScores, mldg: RunScores) -> str:
    """Whether MLDG helps: paired over the splits, two standard errors decide."""
    rows = []
    for name, method, column, sign in (
        ("accuracy (%)", "uncalibrated", "accuracy", 1),
        ("ECE (%), uncalibrated", "uncalibrated", "ece_mean", -1),
        ("ECE (%), ensemble", "ensemble", "ece_mean", -1),
    ):
        before, after = (_by_split(scores, method, column) for scores in (plain, mldg))
        gain = sign * (after - before)
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        verdict = "yes" if gain.mean() > 2 * error else "no"
        if verdict == "no" and abs(gain.mean()) <= 2 * error:
            verdict = "no difference beyond chance"
        better = f"{(gain > 0).sum()} of {len(gain)}"
        means = [_number(float(values.mean()), 2) for values in (before, after)]
        rows.append([name, *means, better, verdict])
    return _table(["", "plain", "MLDG", "better splits", "does it help?"], rows)


def _by_split(scores: RunScores, method: str, column: str) -> np.ndarray:
    means = scores.of(method).group_by("split").agg(pl.col(column).mean())
    return means.sort("split")[column].to_numpy()


def _costs(runs: dict[str, Path]) -> str:
    rows = []
    for title, run in runs.items():
        record = read_run_record(run)
        path = run / "steps.json"
        steps = json.loads(path.read_text()) if path.is_file() else {}
        for name, step in steps.items():
            minutes = [f"{step[key] / 60:.1f}" for key in ("seconds", "cpu_seconds")]
            rows.append([f"{title}: {name}", *minutes, record["machine"]])
    if not rows:
        return "The runs began from archives of features."
    return _table(["step", "minutes", "processor minutes", "machine"], rows)


if __name__ == "__main__":
    main()
