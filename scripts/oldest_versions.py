"""Print the lowest version that pyproject.toml allows of dependencies.

Those of the library and of the extras that need neither torch nor a peer library:

    python scripts/oldest_versions.py > constraints-oldest.txt
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
EXTRAS = ("files", "cli", "report", "lab")


def oldest_versions(requirements: list[str]) -> list[str]:
    """Return every `name>=version` as `name==version`; all need a lower bound."""
    found = []
    for requirement in requirements:
        if requirement.startswith("coolhead["):
            continue
        match = re.fullmatch(r"([\w-]+)>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no bound; wanted NAME>=VERSION")
        found.append(f"{match[1]}=={match[2]}")
    return found


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    print("\n".join(oldest_versions(wanted)))
