"""Write docs/paper-reproduced.md and its pictures from finished runs of Office-Home.

    python scripts/write_paper_page.py RUN [RUN ...] [--multi-source RUN ...]
        [--formations RUN] [--tried RUN ...] [--extraction JSON]

Runs go by the titles in their records. Of runs that were only `--tried`, on a part of
the images, the page tells the cost alone.

Every number of the page is read from the runs or from the paper's printed tables;
nothing of the images is in it.
"""

import argparse
import json
from pathlib import Path

import paper_page_tables as tables

from coolhead import figures
from coolhead.figures.style import draw_svg
from coolhead.io.files import atomic_path
from coolhead.lab.record import read_run_record
from coolhead.lab.results import read_table
from coolhead.report.tables import label

DOCS = Path(__file__).parent.parent / "docs"
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

The second was run in its parts, `coolhead train --finetune` for each source (its first
extraction, by torch, was stopped and done anew by ONNX Runtime) and `coolhead sweep`,
on two cores that other work shared. EfficientNet-Lite0 from ImageNet weights, images
of 160 pixels, the first half of its layers as they were, six epochs of SGD: chosen to
fit four sources into about two hours of two cores, not by any result. As one command,
from the images to the report, it ran on eight of the classes at 96 pixels with three
epochs; the last rows of the costs are its own. Killed on its way and begun again, it
gave archives of the same bytes.

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
    parser.add_argument("--tried", nargs="*", type=Path, default=[])
    parser.add_argument("--extraction", type=Path, help="of benchmarks/extraction.py")
    options = parser.parse_args()
    runs = {tables.title(run): run for run in options.runs}
    parts = [
        TOP.strip(),
        "## Calibration error",
        tables.errors(runs),
        "## The paper's findings",
        tables.findings(runs),
        "## How clear it is",
        tables.clear(runs),
        "## Split by split",
        *(f"### {title}\n\n{tables.by_split(run)}" for title, run in runs.items()),
        "## Is the target nearer to the calibration domains than to the source?",
        tables.variances(runs),
        "## Pictures",
        *(_pictures(title, run) for title, run in runs.items()),
    ]
    if options.multi_source:
        parts += ["## Several sources", tables.multi_source(options.multi_source)]
    if options.formations:
        parts += ["## Does MLDG help?", tables.formations(options.formations)]
    parts += ["## What it took", _costs(options.runs + options.tried)]
    if options.extraction:
        measured = json.loads(options.extraction.read_text())
        parts += ["## What an image costs", tables.extraction(measured)]
    with atomic_path(DOCS / "paper-reproduced.md") as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _pictures(title: str, run: Path) -> str:
    """Before and after by split, by target, and the map of one split."""
    results, points = read_table(run, "results"), read_table(run, "map")
    scores = tables.load_only(run)
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


def _costs(runs: list[Path]) -> str:
    rows = []
    for run in runs:
        record, title = read_run_record(run), tables.title(run)
        path = run / "steps.json"
        steps = json.loads(path.read_text()) if path.is_file() else {}
        for name, step in steps.items():
            minutes = [f"{step[key] / 60:.1f}" for key in ("seconds", "cpu_seconds")]
            rows.append([f"{title}: {name}", *minutes, record["machine"]])
    if not rows:
        return "The runs began from archives of features."
    return tables.table(["step", "minutes", "processor minutes", "machine"], rows)


if __name__ == "__main__":
    main()
