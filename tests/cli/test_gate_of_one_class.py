"""A gate on the calibration error of one class."""

import numpy as np
import pytest

import coolhead as ch
from coolhead.evaluate import evaluate_domains


@pytest.fixture
def files(tmp_path):
    data = ch.datasets.simulate_domains([1.5, 2.0])
    rows = {"logits": data.logits, "domains": data.domains}
    np.savez(tmp_path / "p.npz", labels=data.labels, **rows)
    ch.TemperatureScaling().fit(data.logits, data.labels).save(tmp_path / "c.skops")
    return tmp_path / "c.skops", tmp_path / "p.npz"


def test_the_class_in_brackets_is_scored(run, files):
    cal, rows = ch.load_calibrator(files[0]), ch.load_archive(files[1])
    found = evaluate_domains(cal, rows, class_name="1", n_draws=10)
    worst = max(line.class_after for line in found)
    words = "evaluate", *files, "--draws", "10", "--fail-if"
    assert run(*words, f"classwise_ece[1] > {worst + 1e-6}")[0] == 0
    code, _, complaint = run(*words, f"classwise_ece[1] > {worst - 1e-6}")
    assert code == 1 and "failed in" in complaint and "classwise_ece[1]" in complaint


@pytest.mark.parametrize(
    "conditions, wanted",
    [
        (["ece[1] > 3%"], "'ece' is not of one class; wanted classwise_ece[1]"),
        (["classwise_ece[9] > 3%"], "'9' is no class"),
        (
            ["classwise_ece[1] > 3%", "classwise_ece[2] > 3%"],
            "classes 1, 2; wanted one",
        ),
    ],
)
def test_bad_conditions_of_a_class(run, files, conditions, wanted):
    options = [word for text in conditions for word in ("--fail-if", text)]
    code, _, complaint = run("evaluate", *files, "--draws", "10", *options)
    assert code in (1, 2) and wanted in complaint
