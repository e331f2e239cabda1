"""What the first page shows: one picture and one answer, measured while building."""

import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import coolhead as ch
from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.calibrators.evidence import gather_evidence
from coolhead.figures import reliability
from coolhead.figures.style import (
    AFTER,
    BEFORE,
    BEFORE_WORDS,
    GREY,
    INK,
    PALE,
    PAPER,
    draw_svg,
)
from coolhead.lab.images import split_large_small

SOURCE, CALIBRATION, TARGET = "amazon", ("movies", "nyt"), "tweets"
LABELS = 20
WORDS = (
    f"Reliability of a sentiment classifier trained on {SOURCE} reviews, on {TARGET} "
    "it has never seen, before and after calibration"
)
# The same on the ground of the dark theme.
DARK = {
    PAPER: "#14181e",
    INK: "#d3dbe3",
    GREY: "#aeb6bf",
    PALE: "#5b6670",
    BEFORE: "#f0924a",
    BEFORE_WORDS: "#f0924a",
    AFTER: "#5b9bd9",
}


def write(folder: Path) -> None:
    """All three files, unless the package has written them as it is now."""
    stamp, now = folder / "written-by", digest(Path(ch.__file__).parent)
    if stamp.exists() and stamp.read_text() == now:
        return
    folder.mkdir(parents=True, exist_ok=True)
    answer = "\n".join(new_domain_answer()).strip()
    (folder / "arrival.txt").write_text(answer + "\n", encoding="utf-8")
    drawn = picture()
    (folder / "before-after.svg").write_text(drawn, encoding="utf-8")
    (folder / "before-after-dark.svg").write_text(in_the_dark(drawn), encoding="utf-8")
    stamp.write_text(now)


def new_domain_answer() -> list[str]:
    """Accuracy expected on tweets of a classifier trained on another kind of text.

    The calibrator and its evidence come from the calibration domains' Small rows; the
    batch and the labels from the target's Small rows; the truth from its Large rows.
    """
    data = ch.load_dataset("sentiment")
    small = split_large_small(data)
    scored: Any = ch.train_head(data, SOURCE, small=small).apply(data)
    known = small & np.isin(scored.domains, (SOURCE, *CALIBRATION))
    rows = CalibrationData.of(
        scored.logits[known],
        scored.labels[known],
        features=scored.features[known],
        sample_domain=scored.domains[known],
        source_domain=SOURCE,
        reference_features=scored.features[~small & (scored.domains == SOURCE)],
    )
    calibrator = fit_with(ch.AutoCalibrator(), rows)
    away = scored.domains == TARGET
    batch, truth = small & away, ~small & away
    there = ch.NewDomain(
        calibrator,
        scored.logits[batch],
        scored.features[batch],
        evidence=gather_evidence(calibrator, rows),
    )
    chosen = there.rows_to_label(LABELS)
    after = there.with_labels(chosen, scored.labels[batch][chosen])
    right = (scored.logits[truth].argmax(axis=1) == scored.labels[truth]).mean()
    return [
        f"\nA classifier that learned from {SOURCE} is used on {TARGET}:",
        f"  {there}",
        f"  {after}",
        f"  the truth, on {int(truth.sum())} other rows: {100 * right:.0f} %",
    ]


def digest(package: Path) -> str:
    """Of all source files and this one: another line of code may be another number."""
    found = sha256()
    for path in [Path(__file__), *sorted(package.rglob("*.py"))]:
        found.update(path.read_bytes())
    return found.hexdigest()


def in_the_dark(drawn: str) -> str:
    """The picture with every colour of the light theme replaced, all at once."""
    pattern = re.compile("|".join(DARK))
    return pattern.sub(lambda found: DARK[found[0]], drawn)


def picture() -> str:
    """Reliability in an unseen domain, before and after, as SVG."""
    data = ch.load_dataset("sentiment")
    scored = ch.train_head(data, SOURCE).apply(data)
    seen, unseen = scored.select(*CALIBRATION), scored.select(TARGET)
    methods = {
        "as it is": ch.calibrators.Identity(),
        "calibrated, no tweet seen": ch.AutoCalibrator(),
    }
    for method in methods.values():
        method.fit(
            seen.logits, seen.labels, features=seen.features, sample_domain=seen.domains
        )

    def draw(figure) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (name, method) in zip(axes, methods.items(), strict=True):
            probabilities = method.predict_proba(unseen.logits, unseen.features)
            reliability(ch.reliability_curve(unseen.labels, probabilities), ax)
            ax.set_title(f"{name}: {ax.get_title().partition(',')[0]}")
            ax.label_outer()
        axes[0].text(0.04, 0.88, "hatched:\nmore sure than right", color=BEFORE_WORDS)
        axes[1].text(0.04, 0.88, "hatched:\nless sure than right", color=AFTER)

    return draw_svg((7.6, 4.2), draw, WORDS)
