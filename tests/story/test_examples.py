"""Every script of the gallery runs and leaves no warning."""

import runpy
from pathlib import Path

import matplotlib.pyplot
import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))

# What a script is there to show, by the names it leaves behind.
SHOWN = {
    "plot_torch_service": {
        "alarms": {"known": False, "new typeface": False, "negative": True}
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script):
    matplotlib.use("Agg")
    left = runpy.run_path(str(script))
    for name, wanted in SHOWN.get(script.stem, {}).items():
        assert left[name] == wanted
    matplotlib.pyplot.close("all")
