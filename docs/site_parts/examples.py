"""The scripts of the gallery, apart from the packages that live beside them."""

import shutil
import warnings
from pathlib import Path
from typing import Any

HEADER = """Gallery
=======

Scripts that run while this site is built, on data that comes with the package. Each one
can be downloaded as a script or as a notebook, at its end.
"""


def stage_examples(examples: Path, stage: Path) -> Path:
    """Copy the scripts that draw; what did not change keeps its time."""
    stage.mkdir(exist_ok=True)
    scripts = {path.name: path for path in examples.glob("plot_*.py")}
    for old in stage.glob("plot_*.py"):
        if old.name not in scripts:
            old.unlink()
    for name, path in scripts.items():
        place = stage / name
        if not place.exists() or place.read_bytes() != path.read_bytes():
            shutil.copy2(path, place)
    (stage / "GALLERY_HEADER.rst").write_text(HEADER, encoding="utf-8")
    return stage


def settle(gallery_conf: Any, script: str) -> None:
    """Before each script: the look of the report, and no warning on the page."""
    import matplotlib
    from cycler import cycler

    from coolhead.figures.style import AFTER, LINES, figure_style

    with figure_style():
        look = matplotlib.rcParams.copy()
    matplotlib.rcParams.update(look)
    # The report's own colours, which all eyes tell apart, its blue before the others.
    colours = dict.fromkeys([AFTER, *(colour for colour, *_ in LINES)])
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=list(colours))
    # One of the left-out domains is often better off uncalibrated; pages say so.
    warnings.filterwarnings("ignore", message=".*better off uncalibrated")
