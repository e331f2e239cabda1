"""Where the numbers of a file come from: a sentence above what a benchmark prints."""

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import coolhead


def print_origin() -> None:
    """The command, the day, the machine, the versions and the commit."""
    script, *words = sys.argv
    # Folders are those of one machine; the names of files say enough.
    said = [re.sub(r"[^\s=]*/", "", word) for word in words]
    command = " ".join(["python", f"benchmarks/{Path(script).name}", *said])
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(
        asked, cwd=Path(__file__).parent, capture_output=True, text=True
    ).stdout.strip()
    print(
        f"Written by `{command}` on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} "
        f"cores, {platform.machine()}, Python {platform.python_version()}, NumPy "
        f"{np.__version__} ({vectors()}), coolhead {coolhead.__version__}, commit "
        f"{commit or 'unknown'}.\n",
        flush=True,
    )


def vectors() -> str:
    """The widest vector instructions NumPy uses here; speeds hang on them."""
    known: dict = np.show_config(mode="dicts")  # type: ignore[assignment]
    found = known["SIMD Extensions"].get("found", [])
    return found[-1] if found else "no vector instructions"
