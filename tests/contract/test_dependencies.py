"""What runs with six dependencies, without the laboratory, and what each extra adds."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from command_line import simulate_predictions
from coolhead.extras import EXTRAS

HIDE = """
import sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in {hidden!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden)
"""
CORE = """
import numpy as np
from sklearn.linear_model import LogisticRegression
import coolhead as ch

rng = np.random.default_rng(0)
domains = np.repeat(["a", "b", "c", "new"], 90)
features = rng.normal(size=(360, 4)) + np.repeat(np.arange(4), 90)[:, None] / 4
labels = (features[:, :3] + rng.gumbel(size=(360, 3))).argmax(axis=1)
logits = 2 * features[:, :3]
new = domains == "new"
known = {"features": features[~new], "sample_domain": domains[~new]}

cal = ch.AutoCalibrator().fit(logits[~new], labels[~new], **known)
probabilities = cal.predict_proba(logits[new], features[new])
ch.save_calibrator(cal, "cal.skops")
again = ch.load_calibrator("cal.skops").predict_proba(logits[new], features[new])
np.testing.assert_array_equal(again, probabilities)

there = ch.NewDomain(cal, logits[new], features[new])
rows = there.rows_to_label(10)
print(there.with_labels(rows, labels[new][rows]))

monitor = ch.DriftMonitor.for_calibrator(
    cal, features[~new], domains[~new], logits=logits[~new], labels=labels[~new]
)
print(monitor.update(cal.details(logits[new], features[new])))
for name in ch.metrics.__all__:
    getattr(ch.metrics, name)
print(ch.expected_calibration_error(labels[new], probabilities))
print(ch.baselines.VectorScaling().fit(logits[~new], labels[~new]).status_)
print(ch.reliability_curve(labels[new], probabilities).accuracy)
model = ch.CalibratedClassifier(LogisticRegression())
model.fit(features[~new], labels[~new], sample_domain=domains[~new])
print(model.predict_proba(features[new]).shape)
"""
COMMANDS = """
import sys
from coolhead.cli import main
for words in {commands!r}:
    sys.argv = ["coolhead", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def run(folder, hidden, code):
    """Run code in a process in which some modules cannot be found."""
    script = HIDE.format(hidden=tuple(hidden)) + code
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_six_dependencies_are_enough_to_serve_a_model(tmp_path):
    extras = {*EXTRAS, "pandas", "coolhead.lab", "coolhead.cli"}
    done = run(tmp_path, extras, CORE)
    assert done.returncode == 0, done.stderr


NEEDED = {
    "ch.DomainArchive": "files",
    "ch.load_archive": "files",
    "ch.load_dataset": "files",
    "ch.figures.reliability_diagram": "report",
    "ch.train_head": "files",
    "ch.torch.CalibratedModule": "torch",
    "ch.torch.export_onnx": "onnx",
    "ch.dask.fit": "dask",
}


def test_every_missing_extra_is_named_with_its_command(tmp_path):
    code = "import coolhead as ch\n" + "".join(
        f"try: {name}\nexcept ImportError as error: print(error)\n" for name in NEEDED
    )
    found = run(tmp_path, EXTRAS, code)
    lines = found.stdout.splitlines()
    assert len(lines) == len(NEEDED), found.stderr
    for line, (name, extra) in zip(lines, NEEDED.items(), strict=True):
        assert line.startswith(name.replace("ch.", "coolhead.", 1).rpartition(".")[0])
        assert line.endswith(f"pip install 'coolhead[{extra}]'")


@pytest.mark.parametrize(
    ("hidden", "words", "extra"),
    [
        (EXTRAS, ("--help",), "cli"),
        (EXTRAS, ("fit", "p.npz", "--out", "c.skops"), "cli"),
        (["rich"], ("evaluate", "cal.skops", "p.npz", "--draws", "10"), "cli"),
        (["polars"], ("apply", "cal.skops", "p.npz", "--out", "p.csv"), "files"),
        (["safetensors"], ("fit", "p.npz", "--out", "c.skops"), "files"),
        (
            ["jinja2"],
            ("evaluate", "cal.skops", "p.npz", "--draws", "10", "--report", "r.html"),
            "report",
        ),
        (["pydantic"], ("sweep", "digits"), "lab"),
        (["PIL"], ("extract", ".", "--out", "x.safetensors"), "lab"),
        (["onnx"], ("export", "cal.skops", "--onnx", "c.onnx"), "onnx"),
        (["torch"], ("export", "cal.skops", "--onnx", "c.onnx"), "onnx"),
    ],
)
def test_a_command_names_the_extra_that_it_misses(hidden, words, extra, folder):
    done = run(folder, hidden, COMMANDS.format(commands=[words]))
    assert done.returncode == 1
    assert done.stderr.startswith("coolhead: ") and done.stderr.count("\n") == 1
    assert f"pip install 'coolhead[{extra}]'" in done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled predictions and a calibrator of them."""
    folder = tmp_path_factory.mktemp("files")
    np.savez(folder / "p.npz", **simulate_predictions())
    words = ("fit", "p.npz", "--method", "set-level", "--out", "cal.skops")
    done = run(folder, (), COMMANDS.format(commands=[words]))
    assert done.returncode == 0, done.stderr
    return folder


def test_commands_of_the_library_run_without_the_laboratory(folder):
    first = [
        ("fit", "p.npz", "--out", "auto.skops"),
        ("apply", "auto.skops", "p.npz", "--out", "probs.parquet"),
        ("evaluate", "auto.skops", "p.npz", "--draws", "20", "--report", "r.html"),
        ("compare", "p.npz", "--methods", "set-level,ensemble", "--draws", "20"),
        ("expect", "auto.skops", "p.npz"),
        ("label", "auto.skops", "p.npz", "--rows", "10", "--out", "rows.csv"),
    ]
    done = run(folder, ["coolhead.lab"], COMMANDS.format(commands=first))
    assert done.returncode == 0, done.stderr
    fill_in(folder / "rows.csv", simulate_predictions()["labels"])
    then = [
        ("update", "auto.skops", "rows.csv", "--on", "p.npz", "--out", "there.skops"),
        ("export", "auto.skops", "--onnx", "auto.onnx"),
        ("inspect", "there.skops"),
    ]
    done = run(folder, ["coolhead.lab"], COMMANDS.format(commands=then))
    assert done.returncode == 0, done.stderr


def fill_in(path, labels):
    """Write the labels into the column that is empty."""
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    for row in rows:
        row[head.index("label")] = labels[int(row[head.index("row")])]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
