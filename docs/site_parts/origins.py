"""Which command wrote each measured file, when, and which pages show it."""

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

SHOWN = re.compile(r"^```{(?:include|measured)} (\S*experiments/\S+)$", re.M)
TITLE = re.compile(r"^# (.+)$", re.M)
# Kept as written; their own first lines name the source.
HISTORY = "development-history.md"


class Origin(NamedTuple):
    """The parts of the sentence above the output of a benchmark."""

    command: str
    day: str
    commit: str


def origin(text: str) -> Origin | None:
    """Return where the figures of a file come from, None if it is not written."""
    parts = (
        re.search(r"^Written by `([^`]+)`", text, re.M),
        re.search(r" on (\d{4}-\d\d-\d\d)", text),
        re.search(r"\b[Cc]ommit:? ([0-9a-f]{7,})\b", text),
    )
    if parts[0] is None or parts[1] is None:
        return None
    return Origin(*("" if found is None else found[1] for found in parts))


def pages_by_file(docs: Path) -> dict[Path, list[Path]]:
    """Every measured file that pages show, and the pages."""
    found = defaultdict(list)
    for page in [*sorted(docs.glob("*.md")), *sorted(docs.glob("how-to/*.md"))]:
        for file in dict.fromkeys(SHOWN.findall(page.read_text(encoding="utf-8"))):
            found[(page.parent / file).resolve()].append(page)
    return dict(found)


def as_table(docs: Path) -> str:
    """A line for every measured file, as Markdown."""
    lines = ["| file | written by | day | commit | shown on |", "|---|---|---|---|---|"]
    for file, pages in sorted(pages_by_file(docs).items()):
        known = origin(file.read_text(encoding="utf-8"))
        if known is None:
            known = Origin("", "", "")
        command = f"`{known.command}`" if known.command else "by hand"
        shown = ", ".join(_link(page, docs) for page in pages)
        day = known.day.replace("-", "\N{NON-BREAKING HYPHEN}")
        cells = (f"`{file.name}`", command, day, known.commit, shown)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _link(page: Path, docs: Path) -> str:
    """A link with the title of the page, or of the file that it includes whole."""
    text = page.read_text(encoding="utf-8")
    title = TITLE.search(text)
    if title is None:
        whole = SHOWN.search(text)
        assert whole is not None, page
        included = (page.parent / whole[1]).read_text(encoding="utf-8")
        title = TITLE.search(included)
    assert title is not None, page
    return f"[{title[1]}]({page.relative_to(docs).as_posix()})"


def write(docs: Path, folder: Path) -> None:
    """The table, where the page of results includes it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "origins.txt").write_text(as_table(docs), encoding="utf-8")
