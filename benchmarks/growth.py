"""How time and memory grow with rows, classes, features, domains and clusters.

    python benchmarks/growth.py --json growth.json
    python benchmarks/growth.py --draw growth.json docs/pictures/growth.svg
    python benchmarks/growth.py --table growth.json        # what a row takes

Every point is a process of its own: median CPU time of three runs or more (of one
that takes long), and peak memory above what the process held with its data made. One
axis grows, the others stay at 20,000 rows, 20 classes, 16 features, 4 domains and 8
clusters.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from origin import print_origin

import coolhead as ch

USUAL = {"rows": 20_000, "classes": 20, "features": 16, "domains": 4, "clusters": 8}
AXES = {
    "rows": [10**3, 10**4, 10**5, 10**6, 10**7],
    "classes": [2, 10, 100, 1_000, 10_000, 100_000],
    "features": [4, 16, 64, 256, 1_024],
    "domains": [2, 4, 8, 16, 32],
    "clusters": [2, 4, 8, 16, 32],
}
WORK = ("temperature", "confidence", "ece", "clusters", "auto")
# Not asked: what has no such axis, and what would take minutes a point.
SKIPPED = {
    "classes": ("ece", "clusters"),
    "features": ("temperature", "confidence", "ece"),
    "domains": ("temperature", "confidence", "ece", "clusters"),
    "clusters": ("temperature", "confidence", "ece", "auto"),
}
FEWER_ROWS = {10_000: 2_000, 100_000: 1_000}  # of so many classes
LARGEST = {"clusters": 10**6, "auto": 10**6}  # rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--draw", nargs=2, type=Path, metavar=("JSON", "SVG"))
    parser.add_argument("--table", type=Path, metavar="JSON")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(**json.loads(options.point))))
        return
    if options.draw:
        found = json.loads(options.draw[0].read_text())
        options.draw[1].write_text(draw(found))
        return
    if options.table:
        print_table(json.loads(options.table.read_text()))
        return
    found = []
    for axis, sizes in AXES.items():
        for work in WORK:
            for size in sizes:
                if work in SKIPPED.get(axis, ()):
                    continue
                if axis == "rows" and size > LARGEST.get(work, size):
                    continue
                found.append(point(axis, size, work))
                print(json.dumps(found[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


def point(axis: str, size: int, work: str) -> dict:
    """One measurement in a process of its own."""
    sizes = {**USUAL, axis: size}
    if axis == "classes":
        sizes["rows"] = FEWER_ROWS.get(size, sizes["rows"])
    asked = json.dumps({"work": work, "sizes": sizes})
    command = [sys.executable, __file__, "--point", asked]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {"axis": axis, "size": size, "work": work, **sizes, **json.loads(said)}


def measure(work: str, sizes: dict[str, int]) -> dict[str, float]:
    """CPU seconds and megabytes beyond the data of one piece of work."""
    call = prepare(work, **sizes)
    call(200)  # a warm-up on few rows: imports, threads
    before = memory()
    times = []
    while not times or (sum(times) < 5 and len(times) < 3) or sum(times) < 0.5:
        start = time.process_time()
        call(None)
        times.append(time.process_time() - start)
    return {"cpu_s": float(np.median(times)), "memory_mb": memory() - before}


def prepare(work, rows, classes, features, domains, clusters):
    """The data, and a function of how many rows to use."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((rows, classes), np.float32)
    labels = rng.integers(0, classes, rows)
    logits *= 2
    logits[np.arange(rows), labels] += 3
    domain = np.arange(rows) % domains
    points = None
    if work in ("clusters", "auto"):
        points = rng.standard_normal((rows, features), np.float32)
        points += domain[:, None]
    sure = rng.random(rows) if work == "ece" else None
    calibrator = {
        "clusters": ch.NearestClusterTemperature(clusters),
        "auto": ch.AutoCalibrator(),
    }.get(work)

    def call(count):
        some = slice(count)
        if work == "temperature":
            return ch.fit_temperature(logits[some], labels[some])
        if work == "confidence":
            return (
                ch.TemperatureScaling()
                .fit(logits[:500], labels[:500])
                .confidence(logits[some])
            )
        if work == "ece":
            return ch.expected_calibration_error(labels[some] == 0, sure[some])
        return calibrator.fit(
            logits[some],
            labels[some],
            features=points[some],
            sample_domain=domain[some],
        )

    return call


def print_table(found: list[dict]) -> None:
    """What a row takes where there are most of them."""
    print_origin()
    print("| work | rows | CPU µs a row | bytes a row beyond the data |")
    print("|---|---|---|---|")
    for work in WORK:
        last = [p for p in found if (p["axis"], p["work"]) == ("rows", work)][-1]
        rows = last["rows"]
        time_of_row = 1e6 * last["cpu_s"] / rows
        space = 2**20 * last["memory_mb"] / rows
        print(f"| {work} | {rows:,} | {time_of_row:.2g} | {space:.0f} |")


def memory() -> float:
    """Peak of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def draw(found: list[dict]) -> str:
    """Time above, memory below, an axis in each column, both scales logarithmic."""
    from coolhead.figures.style import LINES, draw_svg

    def panels(figure):
        axes = figure.subplots(2, len(AXES), sharex="col", sharey="row")
        for column, axis in zip(axes.T, AXES, strict=True):
            for work, (colour, dashes, marker, _) in zip(WORK, LINES, strict=False):
                points = [p for p in found if (p["axis"], p["work"]) == (axis, work)]
                if not points:
                    continue
                sizes = [p["size"] for p in points]
                spent = [max(p["memory_mb"], 0.1) for p in points]
                style = {"label": work, "color": colour, "markersize": 4}
                style |= {"linestyle": dashes, "marker": marker}
                column[0].loglog(sizes, [seconds(p) for p in points], **style)
                column[1].loglog(sizes, spent, **style)
            column[1].set_xlabel(axis)
            for each in column:
                for scale in (each.xaxis, each.yaxis):
                    scale.set_major_formatter(lambda value, _: short(value))
                    scale.set_minor_formatter(lambda value, _: "")
            column[1].set_xticks([AXES[axis][0], AXES[axis][-1]])
        axes[0, 0].set_ylabel("CPU seconds")
        axes[1, 0].set_ylabel("megabytes beyond the data")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right")

    def seconds(p):
        # Fewer rows of many classes were measured: as if of 20,000 rows.
        return p["cpu_s"] * (USUAL["rows"] / p["rows"] if p["axis"] == "classes" else 1)

    def short(value):
        for size, letter in ((10**6, "M"), (10**3, "k")):
            if value >= size:
                return f"{value / size:.3g}{letter}"
        return f"{value:g}"

    title = "Time and memory against rows, classes, features, domains and clusters"
    return draw_svg((13, 5.2), panels, title)


if __name__ == "__main__":
    main()
