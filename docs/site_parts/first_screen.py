"""The picture of the first page: reliability before and after, in both themes."""

import re
from hashlib import sha256
from pathlib import Path

from scipy.special import softmax

import coolhead as ch
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

WORDS = (
    "Reliability diagrams of a sentiment classifier trained on Amazon reviews, on "
    "tweets, before and after calibration on other domains"
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
    """Write both pictures, unless this version of the package already has."""
    stamp, now = folder / "written-by", digest(Path(ch.__file__).parent)
    if stamp.exists() and stamp.read_text() == now:
        return
    folder.mkdir(parents=True, exist_ok=True)
    drawn = picture()
    (folder / "before-after.svg").write_text(drawn, encoding="utf-8")
    (folder / "before-after-dark.svg").write_text(in_the_dark(drawn), encoding="utf-8")
    stamp.write_text(now)


def digest(package: Path) -> str:
    """Hash all source files and this one: changed code may change the numbers."""
    found = sha256()
    for path in [Path(__file__), *sorted(package.rglob("*.py"))]:
        found.update(path.read_bytes())
    return found.hexdigest()


def in_the_dark(drawn: str) -> str:
    """Replace every colour of the light theme at once."""
    pattern = re.compile("|".join(DARK))
    return pattern.sub(lambda found: DARK[found[0]], drawn)


def picture() -> str:
    """Draw the probabilities of the README's example as SVG."""
    data = ch.load_dataset("sentiment")
    train = data.rows(range(0, len(data), 2)).select("amazon")
    model = ch.train_head(train, "amazon")
    scored = model.apply(data.rows(range(1, len(data), 2)))
    seen, new = scored.select("amazon", "movies", "nyt"), scored.select("tweets")
    cal = ch.AutoCalibrator()
    cal.fit(
        seen.logits,
        seen.labels,
        features=seen.features,
        sample_domain=seen.domains,
        source_domain="amazon",
        reference_features=model.apply(train).features,
    )
    panels = {
        "uncalibrated": softmax(new.logits, axis=1),
        "calibrated on other domains": cal.predict_proba(new.logits, new.features),
    }

    def draw(figure) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (name, probabilities) in zip(axes, panels.items(), strict=True):
            reliability(ch.reliability_curve(new.labels, probabilities), ax)
            ax.set_title(f"{name}: {ax.get_title().partition(',')[0]}")
            ax.label_outer()
        axes[0].text(0.04, 0.88, "hatched:\noverconfident", color=BEFORE_WORDS)
        axes[1].text(0.04, 0.88, "hatched:\nunderconfident", color=AFTER)

    return draw_svg((7.6, 4.2), draw, WORDS)
