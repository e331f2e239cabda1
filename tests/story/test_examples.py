"""Every script of the gallery runs and leaves no warning."""

import runpy
from pathlib import Path

import matplotlib.pyplot
import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))

# What a script must show, in the names it leaves behind.
SHOWN = {
    "plot_torch_service": lambda left: (
        left["alarms"]
        == {
            "usual": [],
            "noisy": ["served"],
            "new typeface": ["served"],
            "negative": ["any domain", "served"],
        }
    ),
    # Over twelve draws of its rows the ratio is 0.25 to 0.69.
    "plot_segmentation": lambda left: (
        left["ece"]["calibrated"] < left["ece"]["uncalibrated"] * 2 / 3
    ),
    "plot_zero_shot": lambda left: all(
        after < before / 3 for before, after in left["ece"].values()
    ),
}


# Left-out domains of these are often better off uncalibrated; their pages say so.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script):
    matplotlib.use("Agg")
    left = runpy.run_path(str(script))
    assert SHOWN.get(script.stem, bool)(left)
    assert matplotlib.pyplot.get_fignums(), "a page of the gallery has a picture"
    matplotlib.pyplot.close("all")


def test_a_booster_over_airlines_takes_few_lines():
    """From the imports to the fit."""
    script = next(path for path in SCRIPTS if path.stem == "plot_flights")
    first = script.read_text().split("# %%")[1].splitlines()
    code = [line for line in first if line.strip() and not line.startswith("#")]
    assert code[-1].startswith("model.fit(")
    assert len(code) <= 15
