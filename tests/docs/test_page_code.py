"""The Python and the commands on pages run, from top to bottom, as a reader would."""

import re
import shlex
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from pages import PAGES, ROOT, blocks, name_of

import coolhead as ch
from command_line import run  # noqa: F401
from simulate import shifted_domains

WITH_CODE = [path for path in PAGES if blocks(path, "python")]


@pytest.fixture(scope="module")
def given():
    """Arrays of ten domains, for pages that use the reader's own."""
    temperatures = np.geomspace(1, 3, 10)
    logits, labels, features, domains = shifted_domains(150, temperatures=temperatures)
    names = np.array(["art", *(f"domain {number}" for number in range(9))])
    source = domains == "domain-0"
    return {
        "ch": ch,
        "logits": logits,
        "labels": labels,
        "features": features,
        "domains": names[[int(name.removeprefix("domain-")) for name in domains]],
        "training_features": features[source],
        "new_logits": logits[~source],
        "new_features": features[~source],
        "new_labels": labels[~source][:20],
    }


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_code_fits_beside_the_columns(path):
    """Longer lines would need a scroll bar."""
    lines = [line for block in blocks(path, "python") for line in block.splitlines()]
    assert max(map(len, lines)) <= 100


@pytest.mark.slow
# One left-out domain of the examples is better off uncalibrated.
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
# mlflow warns of its own type hints.
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


def in_words_and_numbers(text):
    """The text without its numbers, and the numbers."""
    found = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    return re.sub(r"\d+(?:\.\d+)?", "N", text), found


@pytest.mark.slow
def test_the_readme_prints_what_it_shows(capsys):
    readme = ROOT / "README.md"
    for block in blocks(readme, "python"):
        exec(compile(block, "README", "exec"), {})
    (shown,) = blocks(readme, "text")
    printed, numbers = in_words_and_numbers(capsys.readouterr().out)
    expected, wanted = in_words_and_numbers(shown)
    assert printed == expected
    assert numbers == pytest.approx(wanted, abs=1.5)
