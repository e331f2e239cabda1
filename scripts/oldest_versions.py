"""Print the lowest version that pyproject.toml allows of every run-time dependency.

python scripts/oldest_versions.py > constraints-oldest.txt
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def oldest_versions(requirements: list[str]) -> list[str]:
    """Every `name>=version` as `name==version`; a lower bound is wanted of each."""
    found = []
    for requirement in requirements:
        match = re.fullmatch(r"([\w-]+)>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no bound; wanted NAME>=VERSION")
        found.append(f"{match[1]}=={match[2]}")
    return found


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(oldest_versions(project["dependencies"])))
