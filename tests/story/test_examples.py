"""Every script of the gallery runs and leaves no warning."""

import runpy
from pathlib import Path

import matplotlib
import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_runs(script):
    matplotlib.use("Agg")
    runpy.run_path(str(script))
    matplotlib.pyplot.close("all")
