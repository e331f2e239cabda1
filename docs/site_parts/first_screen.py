"""What the first page shows: one picture and one answer, measured while building."""

from pathlib import Path

import coolhead as ch
from coolhead.cli.demo import SOURCE, TARGET, arrive
from coolhead.figures import reliability
from coolhead.figures.svg import draw_svg

WORDS = (
    f"Reliability of a sentiment classifier trained on {SOURCE} reviews, on {TARGET} "
    "it has never seen, before and after calibration"
)


def write(folder: Path) -> None:
    """Both files, unless this version of the package has written them before."""
    stamp = folder / "version"
    if stamp.exists() and stamp.read_text() == ch.__version__:
        return
    folder.mkdir(parents=True, exist_ok=True)
    answer = "\n".join(arrive()).strip()
    (folder / "arrival.txt").write_text(answer + "\n", encoding="utf-8")
    (folder / "before-after.svg").write_text(_picture(), encoding="utf-8")
    stamp.write_text(ch.__version__)


def _picture() -> str:
    data = ch.load_dataset("sentiment")
    scored = ch.train_head(data, SOURCE).apply(data)
    seen, unseen = scored.select("movies", "nyt"), scored.select(TARGET)
    methods = {
        "before": ch.calibrators.Identity(),
        "after": ch.AutoCalibrator(),
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
            ax.set_title(f"{name}: {ax.get_title()}")

    return draw_svg((7.6, 4.2), draw, WORDS)
