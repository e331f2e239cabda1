"""Time a new user's ten minutes, from `pip install` to calibrated probabilities.

    python scripts/ten_minutes.py dist/coolhead-0.2.0-py3-none-any.whl

A virtual environment with nothing in it, a table of predictions as CSV, and the
commands of docs/ten-minutes.md, in that order. Writes experiments/ten-minutes.md, which
the page shows.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUT = ROOT / "experiments" / "ten-minutes.md"
# The user's own model, here one of scikit-learn, and a table of its predictions.
OWN_FILE = """
import numpy as np, polars as pl, coolhead as ch
from sklearn.linear_model import LogisticRegression
data = ch.load_dataset("sentiment")
source = data.select("amazon")
model = LogisticRegression(max_iter=500).fit(source.features, source.labels)
def table(part):
    p, size = model.predict_proba(part.features), part.features.shape[1]
    named = {f"prob_{name}": p[:, k] for k, name in enumerate(part.class_names)}
    named |= {f"feature_{d}": part.features[:, d] for d in range(size)}
    return pl.DataFrame(named).with_columns(
        label=np.array(part.class_names)[part.labels], domain=part.domains
    )
table(data.select("movies", "nyt")).write_csv("mine.csv")
table(data.select("tweets")).drop("label", "domain").write_csv("new.csv")
"""
STEPS = (
    ("an empty virtual environment", "python -m venv venv"),
    ("install", "pip install {wheel}[lab]"),
    ("list the commands", "coolhead --help"),
    (
        "compare methods",
        "coolhead compare mine.csv --input probabilities",
    ),
    ("calibrate", "coolhead fit mine.csv --input probabilities --out cal.skops"),
    ("inspect", "coolhead inspect cal.skops"),
    ("estimate the accuracy without labels", "coolhead expect cal.skops new.csv"),
    (
        "calibrated probabilities",
        "coolhead apply cal.skops new.csv --out calibrated.csv",
    ),
)


def run(words: list[str], folder: Path) -> float:
    """Return the seconds that a command takes; exit with its output if it fails."""
    programs = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    settings = os.environ | {"PATH": programs}
    settings.pop("PYTHONPATH", None)
    started = time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, env=settings, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - started


def commit() -> str:
    """The commit that is checked out, in short."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main(wheel: str) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, command in STEPS:
            words = shlex.split(command.format(wheel=Path(wheel).resolve()))
            seconds = run(words, folder)
            rows.append((what, command.format(wheel="coolhead"), seconds))
            print(f"{seconds:6.1f} s  {command}", flush=True)
            if words[0] == "pip":
                # The file is the user's; making it is not among the steps.
                run([str(folder / "venv" / "bin" / "python"), "-c", OWN_FILE], folder)
        if not (folder / "calibrated.csv").stat().st_size:
            raise SystemExit("calibrated.csv is empty")
    total = sum(seconds for *_, seconds in rows)
    load, cores = os.getloadavg()[2], os.cpu_count()
    lines = [
        "# A new user's ten minutes",
        f"Written by `python scripts/ten_minutes.py {Path(wheel).name}` on "
        f"{datetime.now(UTC):%Y-%m-%d} with Python {sys.version.split()[0]}, from a "
        f"package index on the same machine, commit {commit()}.",
        "",
        "| step | command | seconds |",
        "|---|---|---|",
        *(
            f"| {what} | `{command}` | {seconds:.0f} |"
            for what, command, seconds in rows
        ),
        f"| together, at a load of {load:.1f} on {cores} cores | | {total:.0f} |",
    ]
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{total:6.1f} s together; {OUT}")


if __name__ == "__main__":
    main(*sys.argv[1:])
