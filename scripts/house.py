"""Measure the size of the code: lines, files, imports, calls, duplicates.

    python scripts/house.py [ROOT] [--json] [--install]

ROOT is a checkout, by default this one. A code line is a line that holds a token other
than a comment, a docstring or white space. The laboratory is `coolhead.lab`.

Calls are counted on the second run of a task, when everything is imported: distinct
functions of the package, without lambdas and comprehensions, and their files.
`--install` also installs ROOT without extras into a new environment.
"""

import argparse
import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tokenize
import venv
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

INSTALLERS = {"pip", "setuptools"}
SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
SKIPPED |= {tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
# What ran experiments before there was a laboratory, so that versions compare.
LAB_BEFORE = {"experiment", "report", "reproduce", "heads", "datasets", "lab"}
# Something that is there already stands for what a contributor would add: the files
# that name it are the files to touch.
EXAMPLES = {
    "a calibrator with torch export": (r"\bIsotonicCalibration\b", "."),
    "a metric seen in the sweep": (r"\bclasswise_calibration_error\b", "."),
    "evaluate --bins": (r"\bn_bins\b", "cli", "evaluate.py"),
}
CALLS = """
import contextlib, io, json, sys, tempfile, threading
from pathlib import Path
import coolhead as ch

PACKAGE = Path(ch.__file__).parent


def entered(task):
    task()
    found = set()

    def note(frame, event, argument):
        code = frame.f_code
        inside = code.co_filename.startswith(str(PACKAGE))
        if event == "call" and inside and not code.co_name.startswith("<"):
            found.add((code.co_filename, code.co_firstlineno))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [len(found), len({file for file, _ in found})]


def command(*words):
    from coolhead.cli import main

    sys.argv = ["coolhead", *words]
    silent = io.StringIO()
    try:
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(silent.getvalue()) from end


data = ch.datasets.simulate_domains([1.0, 2.0, 1.5])
with tempfile.TemporaryDirectory() as folder:
    given, out = folder + "/data.safetensors", folder + "/calibrator.skops"
    data.save(given)
    found = {
        "TemperatureScaling.fit": entered(
            lambda: ch.TemperatureScaling().fit(data.logits, data.labels)
        ),
        "coolhead fit": entered(lambda: command("fit", given, "--out", out)),
        "coolhead apply": entered(
            lambda: command("apply", out, given, "--out", folder + "/rows.parquet")
        ),
    }
print(json.dumps(found))
"""


def docstring_lines(tree: ast.Module) -> set[int]:
    """Line numbers that docstrings stand on."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            continue
        first = node.body[0] if node.body else None
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            lines.update(range(first.lineno, (first.end_lineno or 0) + 1))
    return lines


def code_lines(text: str) -> set[int]:
    """Line numbers that hold code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            found.update(range(token.start[0], token.end[0] + 1))
    return found - docstring_lines(ast.parse(text))


def import_lines(tree: ast.Module) -> set[int]:
    """Line numbers of import statements."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(tree: ast.Module, modules: set[str]) -> set[str]:
    """Modules of the package that a file imports anywhere."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & modules


def is_laboratory(path: Path, package: Path) -> bool:
    parts = path.relative_to(package).parts
    if (package / "lab").is_dir():
        return parts[0] == "lab"
    return parts[0] in LAB_BEFORE or parts[:2] == ("torch", "images")


def measure(root: Path) -> dict[str, object]:
    """Every figure that reading the source gives."""
    source, package = root / "src", root / "src" / "coolhead"
    files = sorted(package.rglob("*.py"))
    texts = {path: path.read_text() for path in files}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = {path: code_lines(text) for path, text in texts.items()}
    imports = sum(len(import_lines(trees[p]) & lines[p]) for p in files)
    total = sum(map(len, lines.values()))
    modules = {module_name(path, source) for path in files}
    times = Counter(
        name
        for path in files
        for name in imported_modules(trees[path], modules) - {module_name(path, source)}
    )
    plain = [path for path in files if path.name != "__init__.py"]
    laboratory = sum(len(lines[p]) for p in files if is_laboratory(p, package))
    records = sum(
        isinstance(node, ast.ClassDef) and _is_record(node)
        for tree in trees.values()
        for node in ast.walk(tree)
    )
    touched = {
        f"files that name {what}, as an example": sum(
            bool(re.search(pattern, texts[path]))
            for path in files
            if any(path.is_relative_to(package / place) for place in places)
        )
        for what, (pattern, *places) in EXAMPLES.items()
    }
    return {
        "code lines: library": total - laboratory,
        "code lines: laboratory": laboratory,
        "files": len(files),
        "files under 40 code lines, without __init__": sum(
            len(lines[path]) < 40 for path in plain
        ),
        "files imported by exactly one other": sum(
            times[module_name(path, source)] == 1 for path in plain
        ),
        "import lines, %": round(100 * imports / total, 1),
        "record types": records,
        "duplicates in src, pairs": duplicates(root),
        **touched,
    }


def _is_record(node: ast.ClassDef) -> bool:
    words = [ast.unparse(part) for part in (*node.bases, *node.decorator_list)]
    return any("NamedTuple" in word or "dataclass" in word for word in words)


def duplicates(root: Path) -> int | None:
    """Pairs of places that share six lines or more; None without the tool."""
    tool = shutil.which("duplicates")
    if tool is None:
        return None
    command = [tool, "--repo", "src", "--most", "200", "--seconds", "120"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True)
    found = re.search(r"(\d+) pair", run.stdout)
    return int(found[1]) if found else 0


def calls(root: Path) -> dict[str, object]:
    """Functions and files of the package that a task enters."""
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    words = [sys.executable, "-c", CALLS]
    run = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=True
    )
    return {
        f"functions / files entered by {task}": " / ".join(map(str, counts))
        for task, counts in json.loads(run.stdout).items()
    }


def installed(root: Path) -> dict[str, object]:
    """Packages and megabytes of an environment with the package and nothing else."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", root], check=True)
        listed = subprocess.run(
            [*pip, "list", "--format=json"], capture_output=True, text=True, check=True
        )
        names = {found["name"] for found in json.loads(listed.stdout)}
        places = next(Path(folder).glob("lib/python*/site-packages"))
        size = sum(
            path.stat().st_size
            for path in places.rglob("*")
            if path.is_file() and path.relative_to(places).parts[0] not in INSTALLERS
        )
    return {
        "pip install .: packages": len(names - INSTALLERS),
        "pip install .: MB": round(size / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--install", action="store_true")
    given = parser.parse_args()
    root = given.root or Path(__file__).parents[1]
    found = measure(root) | calls(root)
    if given.install:
        found |= installed(root)
    if given.json:
        print(json.dumps(found))
        return
    print("| | |\n|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
