"""The page of the paper: what it says first, and what stands by its tables."""

import re
from pathlib import Path

import pytest

from coolhead.lab.tables.paper import Published

PAGE = Path(__file__).parents[2] / "docs" / "paper-reproduced.md"
TEXT = PAGE.read_text("utf-8")
MEASURED = TEXT.partition("## The runs")[0]
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def test_the_first_paragraph_says_what_is_not_reproduced():
    first = TEXT.split("\n\n")[1]
    assert "Not\nreproduced: DomainNet" in first
    assert "simulated formations stand in" in first


def test_no_table_is_wider_than_twelve_columns():
    widths = [len(cells(line)) for line in MEASURED.splitlines() if line[:1] == "|"]
    assert max(widths) <= 12


def test_the_data_of_every_table_are_named():
    pieces = TABLE.split(MEASURED)
    # What follows a table, up to the next table of the same runs.
    origins = [piece for piece in pieces[1:] if "data `" in piece]
    assert len(pieces) > 20
    assert len(origins) > 15
    for run in re.findall(r"^\| ([A-E]): ", TEXT.partition("## The runs")[2], re.M):
        assert f"{run} (data `" in MEASURED


@pytest.mark.parametrize("method", ["TransCal", "WTS"])
def test_figures_of_adapted_networks_are_marked(method):
    value, _ = Published("office_home").by_target(method.lower(), "all")
    lines = [line for line in MEASURED.splitlines() if line.startswith(f"| {method} |")]
    shown = [line for line in lines if f" {value:.2f} " in line]
    assert shown
    assert all("(CDAN)" in line for line in shown)


def test_every_claim_has_a_verdict_in_every_column():
    section = MEASURED.partition("## The paper's claims")[2]
    table = next(t for t in TABLE.findall(section) if t.startswith("| claim |"))
    verdicts = ("holds", "fails", "unclear", "not tested here")
    for line in table.splitlines()[2:]:
        claim, _, *found = cells(line)
        if claim.startswith(("splits in which", "with three sources")):
            continue
        assert all(any(f"**{v}**" in cell for v in verdicts) for cell in found), claim


def test_no_path_of_a_machine_is_on_the_page():
    assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root|Users)/", TEXT)
