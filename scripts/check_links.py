"""Every link inside the built site leads to a file, and to a place in it.

    python scripts/check_links.py build/docs

Needs no network: links to other sites are not followed. Leaves with the number of
findings.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """Where a page leads to, and the places in it that have a name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)


def broken_links(site: Path) -> list[str]:
    """Each as a sentence, with the page that it stands on."""
    pages = {
        path: Links(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(site)}: {target}"
            if not goal.exists():
                found.append(f"{where}: there is no such file")
            elif goal in pages and unquote(parts.fragment) not in {
                "",
                *pages[goal].places,
            }:
                found.append(f"{where}: there is no such place")
    return found


def main(site: str) -> None:
    found = broken_links(Path(site).resolve())
    print("\n".join(found) or "every link inside leads somewhere")
    raise SystemExit(min(len(found), 99))


if __name__ == "__main__":
    main(*sys.argv[1:])
