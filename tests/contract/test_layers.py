"""Who may import whom, what an import may cost, and what the surface holds."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import coolhead as ch

ROOT = Path(ch.__file__).parent
# Every subpackage, and those that it may use: nothing points back.
MAY_IMPORT = {
    "display": set(),
    "extras": set(),
    "plugins": set(),
    "progress": set(),
    "numerics": set(),
    "figures": {"extras", "numerics"},
    "metrics": {"display", "figures", "numerics"},
    "shift": {"numerics"},
    "models": {"numerics"},
    "calibrators": {"display", "extras", "metrics", "numerics", "shift"},
    "classifier": {"calibrators", "display", "models", "numerics"},
    "baselines": {"calibrators", "extras", "metrics", "numerics", "shift"},
    "methods": {"baselines", "calibrators", "plugins"},
    "new_domain": {
        "calibrators",
        "classifier",
        "display",
        "extras",
        "metrics",
        "models",
        "numerics",
        "shift",
    },
    "io": {
        "baselines",
        "calibrators",
        "classifier",
        "extras",
        "new_domain",
        "numerics",
        "plugins",
        "shift",
    },
    "datasets": {"extras", "io", "plugins"},
    "monitor": {
        "calibrators",
        "classifier",
        "display",
        "metrics",
        "numerics",
        "shift",
    },
    "apply": {"calibrators", "io", "monitor", "numerics"},
    "compare": {
        "calibrators",
        "display",
        "evaluate",
        "io",
        "metrics",
        "numerics",
    },
    "evaluate": {"display", "io", "metrics", "models", "numerics", "plugins"},
    "report": {"extras", "figures", "io", "methods", "metrics", "numerics"},
    "mlflow": {
        "classifier",
        "evaluate",
        "extras",
        "io",
        "metrics",
        "models",
        "numerics",
        "report",
    },
    "dask": {
        "calibrators",
        "extras",
        "metrics",
        "models",
        "new_domain",
        "numerics",
        "shift",
    },
    "torch": {
        "baselines",
        "calibrators",
        "classifier",
        "extras",
        "io",
        "models",
        "numerics",
        "progress",
        "shift",
    },
    "cli": {
        "apply",
        "calibrators",
        "compare",
        "datasets",
        "evaluate",
        "extras",
        "io",
        "methods",
        "metrics",
        "monitor",
        "new_domain",
        "numerics",
        "plugins",
        "progress",
        "report",
        "torch",
    },
    # The laboratory stands on everything; nothing of the library stands on it.
    "lab": {
        "calibrators",
        "cli",
        "datasets",
        "evaluate",
        "extras",
        "figures",
        "io",
        "methods",
        "metrics",
        "models",
        "new_domain",
        "numerics",
        "plugins",
        "progress",
        "report",
        "shift",
        "torch",
    },
    "__main__": {"cli"},
}
FINDS_MODULES_BY_NAME = {"extras", "plugins"}
HEAVY = {"torch", "onnx", "onnxruntime", "dask", "distributed", "timm", "torchvision"}
HEAVY |= {"lightgbm", "xgboost", "catboost", "transformers", "keras", "mlflow"}
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
    if room == "__init__":
        return  # it names everything, for type checkers alone
    used = {
        name.split(".")[1]
        for name in imported(ast.parse(path.read_text()))
        if name.startswith("coolhead.") and name != "coolhead.__version__"
    }
    assert used - {room} <= MAY_IMPORT[room]


def test_no_room_reaches_itself_through_others():
    graphlib.TopologicalSorter(MAY_IMPORT).prepare()


def test_every_room_is_in_the_table():
    assert {room_of(path) for path in SOURCES} - {"__init__"} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_by_string(path):
    if room_of(path) in FINDS_MODULES_BY_NAME:
        return
    names = {
        getattr(node, "attr", None) or getattr(node, "id", None)
        for node in ast.walk(ast.parse(path.read_text()))
    }
    assert not names & {"import_module", "__import__", "find_spec", "walk_packages"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_heavy_library_at_import(path):
    if room_of(path) in LIGHT_ROOMS:
        return
    names = imported(ast.parse(path.read_text()), top_level_only=True)
    found = {name.split(".")[0] for name in names} & HEAVY
    if room_of(path) == "lab" and found == {"torch"}:
        # What trains or runs networks is in files that others import on demand.
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


def test_the_surface_is_small_complete_and_typed():
    tree = ast.parse((ROOT / "__init__.py").read_text())
    typed = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module != "coolhead.extras"
        and (node.module or "").startswith("coolhead")
        for alias in node.names
    }
    assert typed == set(ch.__all__)
    assert len(ch.__all__) <= 35
    assert dir(ch) == sorted(ch.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ch.nonsense


@pytest.mark.parametrize(
    "room", ["baselines", "calibrators", "dask", "figures", "metrics", "shift", "torch"]
)
def test_namespaces_complete_on_tab(room):
    space = getattr(ch, room)
    assert set(space.__all__) <= set(dir(space))
    assert all(getattr(space, name) is not None for name in space.__all__)


def test_no_two_classes_have_one_name():
    """One word per idea; who searches for a name finds one thing."""
    names = [
        node.name
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(set(names)) == sorted(names)
