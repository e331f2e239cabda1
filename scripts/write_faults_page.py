"""Write docs/faults.md from what `make test-long` noted.

    python scripts/write_faults_page.py build/faults.jsonl
        [--random-fits build/random_fits.txt] [--soak build/soak.txt]

The first file has a line for every fault that was tried and survived; a fault that was
not survived fails its test. The others are what the two benchmarks printed, whose last
line is JSON.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from coolhead.io.files import atomic_path

PAGE = Path(__file__).parent.parent / "docs" / "faults.md"
TOP = """# Fault tests

Written by `scripts/write_faults_page.py` from the notes of `tests/faults`, in the
ordinary tests or in `make test-long`. A number says how often a fault was tried. Each
time the result was the same, no file was half-written, no traceback was shown, and the
exit code was right. A dash: not tried in that run.

"""
NOTES = """
Killed commands get `kill -9` between a quarter and the end of their usual time,
several times in a row, and are then started again. The full disk is a file system in
memory of 64 kB, of which 4 kB are free; the read-only one is mounted, because
permissions do not restrict an administrator. Where mounting is not allowed, limits on
file size and permissions stand in for both (`tests/faults/test_hostile_files.py`).
The clock jumps inside the process alone. Two processes in one folder either share the
work or the second stops with a message. A worker of Dask that dies in the middle of a
fit is tried in `tests/dask_cluster`.
"""


def fault_table(lines: list[dict[str, Any]]) -> str:
    """Faults down, commands across."""
    tried: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for line in lines:
        tried[line["fault"]][line["where"]] += line["times"]
    places = list(dict.fromkeys(line["where"] for line in lines))
    rows = [f"| fault | {' | '.join(places)} |", "|---" * (len(places) + 1) + "|"]
    for fault, found in tried.items():
        cells = [str(found.get(place, "–")) for place in places]
        rows.append(f"| {fault} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def last_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text().strip().splitlines()[-1])


def tables_of(path: Path) -> str:
    """The Markdown tables that a benchmark printed."""
    lines = path.read_text().splitlines()
    return "\n".join(line for line in lines if line.startswith("|")) + "\n"


def random_fits(path: Path) -> str:
    found = last_json(path)
    return (
        "\n## Random fits\n\n`benchmarks/random_fits.py`: ordinary and hostile "
        "problems "
        "against SciPy's root\nfinder on the plain derivative of the loss in "
        "float64. "
        f"{found['fits']} fits, {found['disagreeing']} of another status than the "
        f"oracle's.\n\n{tables_of(path)}\n*lopsided*: float32, 1000 classes, of which "
        "most are alike or far below one of them.\n"
    )


def soak(path: Path) -> str:
    found = last_json(path).items()
    same = [name.removesuffix(", same bits") for name, value in found if value is True]
    return (
        "\n## Long service\n\n`benchmarks/soak.py`: memory of the process while a "
        "million rows are predicted, half of the calls one row and half 2 to 64,\nand "
        f"while a monitor is updated a million times.\n\n{tables_of(path)}\n"
        f"The same bits: {'; '.join(same)}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", type=Path)
    parser.add_argument("--random-fits", type=Path)
    parser.add_argument("--soak", type=Path)
    given = parser.parse_args()
    lines = [json.loads(line) for line in given.faults.read_text().splitlines()]
    text = TOP + fault_table(lines) + NOTES
    if given.random_fits is not None:
        text += random_fits(given.random_fits)
    if given.soak is not None:
        text += soak(given.soak)
    with atomic_path(PAGE) as temporary:
        temporary.write_text(text)
    print(PAGE)


if __name__ == "__main__":
    main()
