"""The pages of the site as text: blocks, links and tables of contents."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Written while the site is built.
BUILT = ("reference/", "gallery/", "_static/made/")
# Taken where a script has written them.
OPTIONAL = ("paper-reproduced", "protocol")
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if not str(path.relative_to(DOCS)).startswith((*BUILT, "_examples"))
)


def name_of(path):
    return str(path.relative_to(DOCS).with_suffix(""))


def blocks(path, language):
    """Code of one language, from top to bottom."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.M)


def listed(path):
    """Entries of the tables of contents of a page, as names below docs/."""
    for block in re.findall(r"^```{toctree}\n(.*?)^```", path.read_text(), re.S | re.M):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                place = (path.parent / line).resolve()
                yield str(place.relative_to(DOCS))


def without_code(path):
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.M)
