"""Build sdist and wheel of the present commit twice, compare and check them.

    python scripts/build_release.py dist

Each build starts from its own copy of what git holds, in a folder of its own, so that
nothing of this working tree gets in and no path or date can hide. The files appear in
`dist` only if both builds have the same bytes and every check is passed.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parent.parent
LARGEST = 15_000_000
# What a wheel and a source distribution must hold, and what a wheel must not.
IN_WHEEL = (
    *("coolhead/py.typed", "coolhead/datasets/data/NOTICE.md"),
    *(f"coolhead/datasets/data/{n}.safetensors" for n in ("sentiment", "digits")),
    *("report/templates/page.html", "coolhead/figures/style.mplstyle"),
    *("coolhead/lab/protocols/office-home.toml", "entry_points.txt"),
    *("licenses/LICENSE", "licenses/src/coolhead/datasets/data/NOTICE.md"),
)
NOT_IN_WHEEL = ("tests/", "docs/", "__pycache__", ".pyc", ".so")
IN_SDIST = (
    *("pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff"),
    *("SECURITY.md", "CODE_OF_CONDUCT.md", "Makefile", "constraints.txt"),
    *("tests/conftest.py", "docs/conf.py", "docs/pictures/before-after.svg"),
)


def git(*words: str) -> bytes:
    """What git says."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True)
    return done.stdout


def build(folder: Path, date: str) -> dict[str, bytes]:
    """Name and bytes of both files, built from a fresh copy of the commit."""
    with tarfile.open(fileobj=BytesIO(git("archive", "HEAD"))) as files:
        files.extractall(folder, filter="data")
    settings = {
        "SOURCE_DATE_EPOCH": date,
        "PIP_CONSTRAINT": str(folder / "constraints.txt"),
    }
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder / "built", folder],
        env=os.environ | settings,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return {path.name: path.read_bytes() for path in (folder / "built").iterdir()}


def complaints(name: str, content: bytes) -> list[str]:
    """What is wrong with one file."""
    if name.endswith(".whl"):
        with zipfile.ZipFile(BytesIO(content)) as wheel:
            held, wanted, unwanted = wheel.namelist(), IN_WHEEL, NOT_IN_WHEEL
    else:
        with tarfile.open(fileobj=BytesIO(content)) as sdist:
            held, wanted, unwanted = sdist.getnames(), IN_SDIST, ("__pycache__",)
    found = [f"{w} is missing" for w in wanted if not any(h.endswith(w) for h in held)]
    found += [f"{h} does not belong there" for h in held for w in unwanted if w in h]
    if len(content) > LARGEST:
        found.append(f"{len(content):,} bytes are more than {LARGEST:,}")
    return [f"{name}: {words}" for words in found]


def main(out: str) -> None:
    date = git("log", "-1", "--format=%ct").decode().strip()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first, second = (build(Path(folder), date) for folder in (one, other))
    found = [
        f"{name}: the builds differ" for name in first if first[name] != second[name]
    ]
    found += [
        words for name, content in first.items() for words in complaints(name, content)
    ]
    if found:
        raise SystemExit("\n".join(found))
    shutil.rmtree(out, ignore_errors=True)
    Path(out).mkdir(parents=True)
    for name, content in sorted(first.items()):
        Path(out, name).write_bytes(content)
        print(f"{sha256(content).hexdigest()}  {name}  {len(content) / 1e6:.1f} MB")
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *Path(out).iterdir()],
        check=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
