"""The Python and the commands on pages run, from top to bottom, as a reader would."""

import shlex
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pages import PAGES, blocks, name_of

import coolhead as ch
from command_line import run  # noqa: F401
from simulate import shifted_domains

WITH_CODE = [path for path in PAGES if blocks(path, "python")]


@pytest.fixture(scope="module")
def given():
    """What a page that speaks of "your" arrays takes for granted: ten domains."""
    temperatures = np.geomspace(1, 3, 10)
    logits, labels, features, domains = shifted_domains(150, temperatures=temperatures)
    names = np.array(["art", *(f"place {number}" for number in range(9))])
    home = domains == "domain-0"
    return {
        "ch": ch,
        "logits": logits,
        "labels": labels,
        "features": features,
        "domains": names[[int(name.removeprefix("domain-")) for name in domains]],
        "training_features": features[home],
        "new_logits": logits[~home],
        "new_features": features[~home],
        "new_labels": labels[~home][:20],
    }


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_code_fits_beside_the_columns(path):
    """A line that is longer has to be scrolled to be read."""
    lines = [line for block in blocks(path, "python") for line in block.splitlines()]
    assert max(map(len, lines)) <= 100


@pytest.mark.slow
# An honest example: one of its left-out domains is better off uncalibrated.
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
# mlflow's own type hints make it warn of itself.
@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred")
@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_page_runs(path, given, tmp_path, monkeypatch, run):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    scope = {"__name__": "page", **given}
    # Classes of a page are found again by their module.
    monkeypatch.setitem(sys.modules, "page", type(sys)("page"))
    for block in blocks(path, "python"):
        exec(compile(block, str(path), "exec"), scope)
    for block in blocks(path, "console"):
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "coolhead"
            code, _, complaint = run(*words)
            assert code == 0, (line, complaint)
    plt.close("all")
