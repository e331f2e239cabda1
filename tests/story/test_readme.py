"""The README's Python runs, from top to bottom, as a reader would paste it."""

import re
from pathlib import Path

import matplotlib
import pytest

README = Path(__file__).parents[2] / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.slow
# An honest example: one of its left-out domains is better off uncalibrated.
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_python_blocks_run(capsys):
    matplotlib.use("Agg")
    scope = {}
    for block in blocks("python"):
        exec(compile(block, str(README), "exec"), scope)
    assert "stacked" in capsys.readouterr().out
    assert scope["probabilities"].shape == (4200, 3)


def test_commands_exist():
    from coolhead.cli.commands import COMMANDS

    shown = re.findall(r"^coolhead ([\w-]+)", README.read_text(), re.MULTILINE)
    assert len(shown) > 5
    assert set(shown) <= set(COMMANDS)


def test_methods_exist():
    import coolhead as ch

    table = README.read_text().split("## Methods")[1].split("## Where")[0]
    for name in re.findall(r"`([A-Z]\w+)`", table):
        rooms = (ch, ch.baselines, ch.calibrators)
        assert any(hasattr(room, name) for room in rooms), name


def test_it_is_short_and_its_picture_is_told_in_words():
    assert len(README.read_text().splitlines()) <= 130
    ((words, picture),) = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", README.read_text())
    assert len(words) > 80
    drawn = (README.parent / picture).read_text()
    # The errors that the words tell are those that were drawn.
    errors = [float(error) for error in re.findall(r">[^<]*: ECE ([\d.]+) %", drawn)]
    assert [f"{error:.0f}" for error in errors] == re.findall(r"(\d+) per cent", words)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
