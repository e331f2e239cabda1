"""Prepare the text of pages and docstrings for Sphinx."""

import re
from pathlib import Path
from typing import Any

# Files of the repository, and the page of the site that shows each of them.
SHOWN = {
    "../experiments/RESULTS.md": "measured.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "security.md",
}
# Pages that scripts write from runs, listed if they exist.
OPTIONAL = ("paper-reproduced", "protocol")


def prepare_page(app: Any, page: str, source: list[str]) -> None:
    """Point links that leave docs/ to pages; leave out pages that do not exist."""
    text = source[0]
    for target, shown in SHOWN.items():
        text = re.sub(rf"\]\({re.escape(target)}\)", f"](/{shown})", text)
    for name in OPTIONAL:
        if not Path(app.srcdir, f"{name}.md").exists():
            text = re.sub(rf"^{name}\n", "", text, flags=re.M)
    source[0] = text


def escape_docstring(
    app: Any, kind: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """Escape names like `temperature_` and |bars|.

    reStructuredText would read a link and a substitution.
    """
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"(`+[^`]*`+)", line)
            parts[::2] = map(_escape, parts[::2])
            lines[number] = "".join(parts)


def _escape(words: str) -> str:
    words = re.sub(r"(?<=\w)_(?=[\s,.;:)|]|$)", r"\\_", words)
    return re.sub(r"(?<!\\)\|", r"\\|", words)


def skip_generated(
    app: Any, kind: str, name: str, found: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out the methods that scikit-learn generates, such as set_fit_request."""
    return True if re.fullmatch(r"set_\w+_request", name) else None
