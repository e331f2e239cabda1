"""Who may import whom, what an import may cost, and what the surface holds."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import coolhead as ch

ROOT = Path(ch.__file__).parent
MAY_IMPORT = {
    "numerics": set(),
    "metrics": {"numerics"},
    "shift": {"numerics"},
    "files": set(),
    "paper": set(),
    "archive": {"numerics", "files"},
    "calibrators": {"numerics", "metrics", "shift"},
    "new_domain": {"numerics", "metrics", "shift", "calibrators", "lazy"},
    # The simulated formations pass through a backbone, where torch is installed.
    "datasets": {"archive", "files", "numerics", "torch"},
    "heads": {"archive", "datasets", "files", "numerics"},
}
HEAVY = {"torch", "onnx", "onnxruntime", "dask", "distributed", "timm", "torchvision"}
LIGHT_ROOMS = {"torch", "dask"}


def room_of(path):
    part = path.relative_to(ROOT).parts[0]
    return part.removesuffix(".py")


def imported(tree, *, top_level_only=False):
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            if node.module == "coolhead":
                yield from (f"coolhead.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


SOURCES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_only_what_lies_below(path):
    room = room_of(path)
    if room not in MAY_IMPORT:
        return
    used = {
        name.split(".")[1]
        for name in imported(ast.parse(path.read_text()))
        if name.startswith("coolhead.")
    }
    assert used - {room} <= MAY_IMPORT[room]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_heavy_library_at_import(path):
    if room_of(path) in LIGHT_ROOMS:
        return
    names = imported(ast.parse(path.read_text()), top_level_only=True)
    found = {name.split(".")[0] for name in names} & HEAVY
    if room_of(path) == "heads" and found == {"torch"}:
        # The torch heads are files of their own that the others import on demand.
        return
    assert not found


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_using_every_public_name_leaves_torch_out():
    code = (
        "import sys, coolhead as ch\n"
        "[getattr(ch, n) for n in ch.__all__ if n not in ('torch', 'dask')]\n"
        f"print(sorted(set(sys.modules) & {HEAVY!r}))"
    )
    assert run(code) == "[]"


def test_import_is_quick():
    code = (
        "import time; t = time.process_time(); import coolhead\n"
        "print(time.process_time() - t)"
    )
    assert float(run(code)) < 1.5


def test_importing_does_not_touch_global_settings():
    code = (
        "import sklearn, numpy as np; a = sklearn.get_config(), np.geterr()\n"
        "import coolhead as ch\n"
        "[getattr(ch, n) for n in ch.__all__ if n not in ('torch', 'dask')]\n"
        "print(a == (sklearn.get_config(), np.geterr()))"
    )
    assert run(code) == "True"


def test_the_surface_is_complete_and_typed():
    tree = ast.parse((ROOT / "__init__.py").read_text())
    typed = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("coolhead.")
        for alias in node.names
    }
    assert typed == set(ch._HOME)
    for name in ch.__all__:
        assert name in dir(ch)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ch.nonsense
