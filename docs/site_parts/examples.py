"""The scripts of the gallery, in sections, apart from packages that lie beside them."""

import shutil
import warnings
from pathlib import Path
from typing import Any

HEADER = """Gallery
=======

Scripts that run while this site is built, on bundled data. Each can be downloaded as a
script or a notebook, at its end.
"""
# Folder of each section, its title, and its scripts in order.
SECTIONS = {
    "first": (
        "First steps",
        ("unseen_domain", "scikit_learn", "flights", "compare_methods"),
    ),
    "ideas": (
        "Temperature, shift and error",
        (
            *("loss_of_temperature", "one_temperature_per_domain"),
            *("noise_of_the_ece", "shift"),
        ),
    ),
    "new": (
        "In a new domain",
        ("new_domain", "few_labels", "selective", "prediction_sets", "monitor"),
    ),
    "other": (
        "PyTorch, pixels, prompts and your own method",
        ("torch_service", "segmentation", "zero_shot", "write_a_method"),
    ),
}


def stage_examples(examples: Path, stage: Path) -> Path:
    """Copy the scripts into folders of sections; unchanged ones keep their time."""
    stage.mkdir(exist_ok=True)
    (stage / "GALLERY_HEADER.rst").write_text(HEADER, encoding="utf-8")
    staged = {f"plot_{name}.py" for _, names in SECTIONS.values() for name in names}
    if staged != {path.name for path in examples.glob("plot_*.py")}:
        raise ValueError("SECTIONS and examples/plot_*.py differ")
    for section, (title, names) in SECTIONS.items():
        folder = stage / section
        folder.mkdir(exist_ok=True)
        head = f"{title}\n{'-' * len(title)}\n"
        (folder / "GALLERY_HEADER.rst").write_text(head, encoding="utf-8")
        scripts = {path.name for path in folder.glob("plot_*.py")}
        for gone in scripts - {f"plot_{name}.py" for name in names}:
            (folder / gone).unlink()
        for name in names:
            source, copy = examples / f"plot_{name}.py", folder / f"plot_{name}.py"
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                shutil.copy2(source, copy)
    return stage


class ByPosition:
    """Sort key of a script: its position in its section."""

    def __init__(self, folder: str) -> None:
        self.names = SECTIONS.get(Path(folder).name, ("", ()))[1]

    def __call__(self, file: str) -> int:
        return self.names.index(file.removeprefix("plot_").removesuffix(".py"))


def settle(gallery_conf: Any, script: str) -> None:
    """Set the style of the report before each script; show no warnings."""
    import matplotlib
    from cycler import cycler

    from coolhead.figures.style import AFTER, LINES, figure_style

    with figure_style():
        look = matplotlib.rcParams.copy()
    matplotlib.rcParams.update(look)
    # The colours of the report, safe for the colour-blind, its blue first.
    colours = dict.fromkeys([AFTER, *(colour for colour, *_ in LINES)])
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=list(colours))
    # A left-out domain is often better off uncalibrated; the pages say so.
    warnings.filterwarnings("ignore", message=".*better off uncalibrated")
