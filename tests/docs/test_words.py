"""Withdrawn words stay out of code, pages and examples."""

import re

import pytest
from pages import BUILT, ROOT

WITHDRAWN = re.compile(
    r"\b(?:witness(?:es)?|arriv(?:e|es|ed|als?)|told|surer|surest|whoever|nobody"
    r"|dealt|desk|of\s+(?:another|any)\s+make)\b",
    re.IGNORECASE,
)
# Names of version 0.2 that old files and calls still use.
OLD_NAMES = {
    "src/coolhead/calibrators/evidence.py": {"surer"},
    "src/coolhead/figures/style.py": {"arrival"},
    "src/coolhead/lab/results.py": {"arrival"},
    "src/coolhead/new_domain/domain.py": {"witnesses"},
}
# Texts; data files and pictures hold words of others.
READ = {".py", ".md", ".rst", ".toml", ".html", ".css", ".js", ".txt"}
MADE = tuple(f"docs/{folder}" for folder in (*BUILT, "_examples/"))


def texts(top):
    """Files below a path that people wrote."""
    path = ROOT / top
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        name = str(file.relative_to(ROOT))
        if file.suffix in READ and not name.startswith(MADE):
            yield name, file.read_text(encoding="utf-8")


@pytest.mark.parametrize("top", ["src", "docs", "README.md", "examples"])
def test_no_withdrawn_word(top):
    found = [
        f"{name}:{text.count(chr(10), 0, one.start()) + 1}: {one[0]}"
        for name, text in texts(top)
        for one in WITHDRAWN.finditer(text)
        if one[0] not in OLD_NAMES.get(name, ())
    ]
    assert found == []


def test_withdrawn_words_are_found():
    text = "Nobody told us; witness_of arrived, of another\nmake. Desktops, arriving."
    found = [" ".join(one[0].split()) for one in WITHDRAWN.finditer(text)]
    assert found == ["Nobody", "told", "arrived", "of another make"]
