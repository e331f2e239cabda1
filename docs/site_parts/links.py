"""Links that lead out of docs/ on GitHub and stay on the site here."""

import re
from typing import Any

# Files of the repository, and the page of the site that shows each of them.
PAGES = {
    "../experiments/RESULTS.md": "measured.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "security.md",
}


def lead_inside(app: Any, page: str, source: list[str]) -> None:
    """Point links at pages; Sphinx calls this for every page it reads."""
    for target, shown in PAGES.items():
        source[0] = re.sub(rf"\]\({re.escape(target)}\)", f"](/{shown})", source[0])
