"""Check that every internal link of the built site leads to a file and an anchor.

    python scripts/check_links.py build/docs

Links to other sites are not followed. Exits with the number of broken links.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return a sentence for each broken link, with its page."""
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
                *pages[goal].anchors,
            }:
                found.append(f"{where}: there is no such anchor")
    return found


def main(site: str) -> None:
    found = broken_links(Path(site).resolve())
    print("\n".join(found) or "no broken links")
    raise SystemExit(min(len(found), 99))


if __name__ == "__main__":
    main(*sys.argv[1:])
