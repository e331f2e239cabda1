"""The README is short, and its commands, names, figures and links exist.

Its Python runs in tests/docs/test_page_code.py.
"""

import re
from pathlib import Path

import coolhead as ch

README = Path(__file__).parents[2] / "README.md"


def test_commands_exist():
    from coolhead.cli.commands import COMMANDS

    shown = re.findall(r"^coolhead ([\w-]+)", README.read_text(), re.MULTILINE)
    assert len(shown) > 5
    assert set(shown) <= set(COMMANDS)


def test_names_exist():
    for name in re.findall(r"`(?:ch\.)?([\w.]*[A-Z]\w+)[`(]", README.read_text()):
        found = ch
        for part in name.split("."):
            found = getattr(found, part)


def test_it_is_short_and_describes_its_picture():
    assert len(README.read_text().splitlines()) <= 120
    ((words, picture),) = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", README.read_text())
    assert len(words) > 80
    drawn = (README.parent / picture).read_text()
    # The errors in the words are those that were drawn.
    errors = [float(error) for error in re.findall(r">[^<]*: ECE ([\d.]+) %", drawn)]
    assert [f"{error:.0f}" for error in errors] == re.findall(r"(\d+) per cent", words)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
