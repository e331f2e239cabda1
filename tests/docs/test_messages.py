"""The tables of error messages on the page of statuses are what the package says."""

import re
import subprocess
import sys

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from messages_seen import CASES
from pages import DOCS

import coolhead as ch
from coolhead.extras import EXTRAS

BOOSTERS = {
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1),
    "xgboost": xgboost.XGBClassifier(n_estimators=2, n_jobs=1),
    "catboost": catboost.CatBoostClassifier(
        iterations=2, verbose=0, allow_writing_files=False
    ),
}
HIDE = """
import sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hidden)
"""


def table(first):
    """Rows of the table whose header begins so, cells as they are written."""
    text = (DOCS / "statuses.md").read_text()
    body = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()[2:]
    return {cells[0]: cells[1:] for cells in (line[2:-2].split(" | ") for line in body)}


SEEN, MISSING = table("what"), table("missing")


def test_every_row_has_a_case():
    assert set(SEEN) <= set(CASES)
    assert set(MISSING) <= set(EXTRAS)


@pytest.mark.parametrize("what", CASES)
def test_messages_are_as_written(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = CASES[what]()
    # What works has no message, and no row.
    assert SEEN.get(what, [""]) == ([f"`{found}`"] if found else [""])


@pytest.fixture(scope="module")
def saved_boosters(tmp_path_factory):
    """Save a model of each booster; return the folder and the types to trust."""
    folder, types = tmp_path_factory.mktemp("boosters"), []
    X = np.random.default_rng(0).normal(size=(60, 3))
    for name, booster in BOOSTERS.items():
        model = ch.CalibratedClassifier(booster, ch.TemperatureScaling(), cv=2)
        model.fit(X, (X[:, 0] + X[:, 1] ** 3 > 0).astype(int))
        model.save(folder / f"{name}.skops")
        types.append(type(booster).__module__.partition(".")[0])
    return folder, types


# Without torch the import of onnxruntime is never reached.
@pytest.mark.parametrize(
    "hidden", [["onnxruntime"], [name for name in MISSING if name != "onnxruntime"]]
)
def test_a_missing_package_is_named_with_its_extra(hidden, saved_boosters):
    folder, types = saved_boosters
    script = [
        HIDE.format(hidden=hidden),
        f"import coolhead as ch; types = {types!r}",
    ]
    for package in hidden:
        script += ["try:", f"    {MISSING[package][0].strip('`')}"]
        script += ["except ImportError as error:", "    print(error)"]
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(script)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    messages = [MISSING[package][1].strip("`") for package in hidden]
    assert found.stdout.splitlines() == messages, found.stderr


def test_every_extra_exists():
    text = (DOCS.parent / "pyproject.toml").read_text()
    for extra in set(EXTRAS.values()):
        assert re.search(rf"^{extra} = \[", text, re.MULTILINE)
