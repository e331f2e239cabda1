"""Write the README's picture: reliability in an unseen domain, before and after.

    python scripts/write_readme_picture.py

The start page of the site shows the same, drawn while it is built.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from site_parts.first_screen import picture  # noqa: E402

from coolhead.io.files import atomic_path  # noqa: E402


def main() -> None:
    path = ROOT / "docs" / "pictures" / "before-after.svg"
    with atomic_path(path) as temporary:
        temporary.write_text(picture(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
