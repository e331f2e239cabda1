"""Numbers on pages come from files that benchmarks write, never from typing."""

import re
import sys

import pytest
from pages import DOCS, PAGES, ROOT, name_of

sys.path.insert(0, str(DOCS))
from site_parts import origins

# Written by scripts from runs or from the package; their own tests or stamps say so.
WRITTEN = {"calibrators", "protocol", "paper-reproduced", "faults"}
TYPED = [path for path in PAGES if name_of(path) not in WRITTEN] + [ROOT / "README.md"]
UNIT = r"%|per cent|(?:CPU |core )?(?:s|seconds?|minutes?|hours?)|[mµn]s|times|points?"
UNIT += r"|bytes|[kMGTP]B"
# Decimals, powers of ten, and whole numbers with a unit.
WITH_UNIT = rf"\s?(?:{UNIT})(?!\w)"
NUMBER = re.compile(
    rf"(?<![\w./])[−-]?[\d,]*(?:\.\d+(?:e-?\d+)?|(?<=\d)e-?\d+|(?<=\d)(?={WITH_UNIT}))"
    rf"(?:{WITH_UNIT})?(?!\w)"
)
EXAMPLE = {"90 %", "60 %", "80 %"}  # of a sentence, not measured
# Settings of a method or a benchmark, levels and versions are not measurements.
SETTINGS = {
    "README": EXAMPLE | {"15 per cent", "3 per cent", "3.11"},  # of the picture, below
    "beyond": {"0.5", "80 %", "20 %", "95 %"},
    "class-offsets": {"0.6", "0.2", "5 %"},
    "classes-and-weights": {"1e-8"},
    "how-to/cluster": {"400 MB"},
    "glossary": {"20 %"},
    "how-to/monitoring": {"1 %"},
    "how-to/new-domain": {"90 %"},
    "ideas": {"70 %"},
    "new-domain": {
        "0.2",
        "0.3",
        "0.35",
        "0.4",
        "0.45",
        "0.5",
        "0.6",
        "0.8",
    }
    | {"85 %", "90 %", "128 MB"},
    "neighbours": {"0.13", "1.3", "1.4", "1.6", "1.9"},
    "speed": {"0.1", "1e-12"},
    "scale": {"1e-7", "1e-10", "1.5 GB", "2.5", "400 bytes", "100 MB", "8 bytes"},
    "statuses": {"300 times"},
    "ten-minutes": {"3.11"},
}


def typed_numbers(text):
    """Decimals and numbers with units outside code, directives and links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.M)
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", " ", text, flags=re.DOTALL)
    return {" ".join(found[0].split()) for found in NUMBER.finditer(text)}


def page_name(path):
    return name_of(path) if path.is_relative_to(DOCS) else path.stem


@pytest.mark.parametrize("path", TYPED, ids=page_name)
def test_no_measurement_is_typed(path):
    known = SETTINGS.get(page_name(path), set())
    found = typed_numbers(path.read_text())
    assert found <= known, "include a file of experiments/, or say why it is a setting"
    assert known <= found, "no longer on the page"


@pytest.mark.parametrize(
    "text", ["an ECE of 0.063", "| auto | .87 |", "took 12 s", "38 MB", "7 % worse"]
)
def test_a_typed_measurement_is_found(text):
    assert typed_numbers(text)


@pytest.mark.parametrize(
    "text", ["12 splits", "`T = 0.5`", "[a](b-0.2.md)", "```{measured} 0.5\n```\n"]
)
def test_what_is_no_measurement_is_not(text):
    assert not typed_numbers(text)


def test_words_of_the_picture_are_its_numbers():
    picture = (DOCS / "pictures" / "before-after.svg").read_text()
    shown = [round(float(found)) for found in re.findall(r"ECE ([\d.]+) %", picture)]
    for path in (ROOT / "README.md", DOCS / "index.md"):
        lines = [
            re.findall(r"(\d+) per cent", line)
            for line in path.read_text().splitlines()
        ]
        written = [list(map(int, line)) for line in lines if line]
        # Once, or once for each theme.
        assert written in ([shown], [shown, shown])


def included():
    """Every file of experiments that a page shows, and how much of it."""
    for page in PAGES:
        pattern = r"^```{(?:include|measured)} (\S*experiments/\S+)\n(.*?)^```"
        for file, options in re.findall(pattern, page.read_text(), re.DOTALL | re.M):
            yield page, (page.parent / file).resolve(), options


def test_every_included_part_is_there():
    for page, file, options in included():
        text = file.read_text()
        for mark in re.findall(r'^:(?:start-after|end-before): "(.*)"$', options, re.M):
            assert text.count(mark) == 1, (page.name, mark)


def test_every_file_of_results_is_shown():
    shown = {file for _, file, _ in included()}
    assert shown == set((ROOT / "experiments").glob("*.md"))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "experiments").glob("*.md")), ids=lambda path: path.stem
)
def test_every_file_of_results_says_where_it_comes_from(path):
    if path.name == origins.HISTORY:
        return
    said = origins.origin(path.read_text())
    assert said is not None and said.commit
    script = re.match(r"python (\S+\.py)|coolhead results", said.command)
    assert script is not None
    assert script[1] is None or (ROOT / script[1]).exists()


def test_the_list_of_results_has_every_file_and_page():
    table = origins.as_table(DOCS)
    shown = {(file.name, page) for page, file, _ in included()}
    for file, page in shown:
        (line,) = (row for row in table.splitlines() if row.startswith(f"| `{file}`"))
        assert f"]({page.relative_to(DOCS).as_posix()})" in line


def test_a_file_without_its_origin_is_found():
    assert origins.origin("| work | s |\n|---|---|\n") is None
