"""Commands on saved predictions: what they write and print equals the library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from coolhead.baselines.classwise import VectorScaling
from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.cli.commands import COMMANDS, application
from coolhead.io.archive import DomainArchive
from coolhead.io.calibrators import load_calibrator, read_header, save_calibrator
from coolhead.metrics import expected_calibration_error
from coolhead.numerics.checks import logits_from_probabilities
from coolhead.numerics.softmax import softmax

OURS = ("fit", "apply", "evaluate", "inspect", "export", "compare")


@pytest.fixture
def fitted(run, npz, tmp_path):
    out = tmp_path / "cal.skops"
    words = ("--method", "ensemble", "--calibrate-on", "clipart,product", "--out", out)
    assert run("fit", npz, *words)[0] == 0
    return out


def expected_ensemble(predictions, domains=("clipart", "product")):
    rows = np.isin(predictions["domains"], domains)
    return TemperatureEnsemble().fit(
        predictions["logits"][rows],
        predictions["labels"][rows],
        features=predictions["features"][rows],
    )


def test_fit_uses_the_named_domains(fitted, predictions):
    saved = load_calibrator(fitted)
    wanted = expected_ensemble(predictions)
    query = predictions["logits"], predictions["features"]
    assert np.array_equal(saved.temperature(*query), wanted.temperature(*query))
    metadata = read_header(fitted)["metadata"]
    assert metadata["domains"] == {"clipart": 100, "product": 100}
    assert metadata["method"] == "ensemble"


def test_fit_takes_all_labelled_domains_by_default(run, tmp_path, predictions):
    path, out = tmp_path / "partly.npz", tmp_path / "c.skops"
    labels = np.where(predictions["domains"] == "real", -1, predictions["labels"])
    np.savez(path, **predictions | {"labels": labels})
    code, shown, _ = run("fit", path, "--out", out, "--json")
    assert code == 0
    assert json.loads(shown)["domains"] == {"clipart": 100, "product": 100}


def test_fit_on_probabilities_equals_fit_on_their_logarithms(
    run, tmp_path, predictions
):
    p = softmax(predictions["logits"], 1.0)
    np.savez(tmp_path / "p.npz", probabilities=p, labels=predictions["labels"])
    log_p = logits_from_probabilities(p)
    np.savez(tmp_path / "z.npz", logits=log_p, labels=predictions["labels"])
    found = []
    for name, extra in (("p", ["--input", "probabilities"]), ("z", [])):
        words = ("--method", "set-level", "--out", tmp_path / "c.skops", "--json")
        code, shown, _ = run("fit", tmp_path / f"{name}.npz", *words, *extra)
        assert code == 0
        found.append(json.loads(shown)["temperature"])
    assert found[0] == found[1]


def test_probabilities_are_not_taken_for_logits(run, tmp_path, predictions):
    p = softmax(predictions["logits"], 1.0)
    np.savez(tmp_path / "p.npz", logits=p, labels=predictions["labels"])
    words = ("--method", "set-level", "--out", tmp_path / "c.skops")
    code, _, err = run("fit", tmp_path / "p.npz", *words)
    assert code == 1
    assert "logits_from_probabilities" in err
    assert not (tmp_path / "c.skops").exists()


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow", "npy"])
def test_apply_writes_what_the_calibrator_predicts(
    run, fitted, npz, predictions, tmp_path, ending
):
    out = tmp_path / f"probs.{ending}"
    code, shown, err = run("apply", fitted, npz, "--out", out, "--json")
    assert (code, err) == (0, "")
    wanted = expected_ensemble(predictions).details(
        predictions["logits"], predictions["features"]
    )
    if ending == "npy":
        assert np.array_equal(np.load(out), wanted.probabilities)
    else:
        reader = {"parquet": pl.read_parquet, "csv": pl.read_csv, "arrow": pl.read_ipc}
        table = reader[ending](out)
        found = table.select(f"prob_{i}" for i in range(4)).to_numpy()
        assert np.allclose(found, wanted.probabilities, rtol=1e-6)
        assert np.allclose(table["temperature"], wanted.temperature)
        assert table["covered"].to_list() == wanted.covered.tolist()
        assert table["predicted"].to_list() == wanted.probabilities.argmax(1).tolist()
        assert table["label"].to_list() == predictions["labels"].tolist()
        assert table["domain"].to_list() == predictions["domains"].tolist()
    ece = expected_calibration_error(predictions["labels"], wanted.probabilities)
    assert json.loads(shown)["ece"] == pytest.approx(ece, rel=1e-6)


def test_apply_reads_its_own_output_of_many_classes(run, tmp_path):
    """Beyond 100 classes the probabilities are one column of arrays."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 104)).astype(np.float32) * 4
    labels = rng.integers(0, 104, 50)
    np.savez(tmp_path / "wide.npz", logits=logits, labels=labels)
    cal, out = tmp_path / "c.skops", tmp_path / "p.parquet"
    run("fit", tmp_path / "wide.npz", "--method", "set-level", "--out", cal)
    assert run("apply", cal, tmp_path / "wide.npz", "--out", out)[0] == 0
    found = pl.read_parquet(out)["probabilities"].to_numpy()
    wanted = load_calibrator(cal).predict_proba(logits)
    assert np.array_equal(found, wanted)
    code, _, err = run("apply", cal, out, "--out", tmp_path / "q.parquet")
    assert code == 0, err


def test_evaluate_prints_what_the_metrics_say(run, fitted, npz, predictions):
    words = ("evaluate", fitted, npz, "--json", "--draws", 50)
    code, shown, err = run(*words)
    assert (code, err) == (0, "")
    lines = {line["domain"]: line for line in json.loads(shown)["domains"]}
    assert list(lines) == ["clipart", "product", "real", "all"]
    assert [line["seen"] for line in lines.values()] == [True, True, False, None]
    rows = predictions["domains"] == "real"
    calibrator = expected_ensemble(predictions)
    p = calibrator.predict_proba(
        predictions["logits"][rows], predictions["features"][rows]
    )
    labels = predictions["labels"][rows]
    found = lines["real"]
    assert found["ece_after"]["estimate"] == pytest.approx(
        expected_calibration_error(labels, p), abs=1e-7
    )
    assert found["accuracy"] == np.mean(p.argmax(axis=1) == labels)
    loss = -np.log(p[np.arange(len(labels)), labels].astype(float)).mean()
    assert found["nll_after"] == pytest.approx(loss, rel=1e-5)
    assert run("evaluate", fitted, npz, "--draws", 50)[1].count("\n") > 5


def test_evaluate_writes_a_report(run, fitted, npz, tmp_path):
    page = tmp_path / "r.html"
    words = ("evaluate", fitted, npz, "--draws", 50, "--report", page)
    code, shown, err = run(*words)
    assert code == 0, err
    assert str(page) in shown
    assert "clipart" in page.read_text()


def test_the_source_domain_reaches_the_methods_that_know_it(run, npz, tmp_path):
    out = tmp_path / "auto.skops"
    words = ("fit", npz, "--method", "auto", "--source", "clipart", "--out", out)
    code, _, err = run(*words)
    assert code == 0, err
    weights = json.loads(run("inspect", out, "--json")[1])["calibrator"]["weights"]
    assert sum(weights.values()) == pytest.approx(1)
    words = ("fit", npz, "--method", "set-level", "--source", "clipart", "--out", out)
    assert run(*words)[0] == 2


def test_inspect_shows_temperatures_clusters_and_origin(run, fitted):
    code, shown, _ = run("inspect", fitted, "--json")
    content = json.loads(shown)
    saved = load_calibrator(fitted)
    assert code == 0
    assert content["metadata"]["domains"] == {"clipart": 100, "product": 100}
    members = {part["class"]: part for part in content["calibrator"]["members"]}
    found = members["NearestClusterTemperature"]["clusters"]["temperature"]
    assert found == saved.members_[1].cluster_temperatures_.tolist()
    readable = run("inspect", fitted)[1]
    assert "NearestClusterTemperature" in readable
    assert "clipart 100" in readable


def test_compare_leaves_out_each_domain(run, npz, predictions):
    words = ("compare", npz, "--methods", "set-level,ensemble", "--draws", 50)
    code, shown, err = run(*words, "--json")
    assert (code, err) == (0, "")
    content = json.loads(shown)
    assert set(content["best"]) == {"clipart", "product", "real"}
    found = {
        (score["domain"], score["method"]): score["ece"]["estimate"]
        for score in content["scores"]
    }
    rows = predictions["domains"] == "real"
    calibrator = expected_ensemble(predictions)
    p = calibrator.predict_proba(
        predictions["logits"][rows], predictions["features"][rows]
    )
    wanted = expected_calibration_error(predictions["labels"][rows], p)
    assert found["real", "ensemble"] == pytest.approx(wanted, abs=1e-7)
    assert {name for _, name in found} == {"uncalibrated", "set-level", "ensemble"}
    assert "left out" in run(*words)[1]


def test_compare_tells_the_source_to_those_who_take_it(run, npz, predictions, tmp_path):
    training = tmp_path / "training.npz"
    np.savez(training, features=predictions["features"][::2] - 1)
    words = ["compare", npz, "--methods", "set-level,auto", "--draws", 50]
    words += ["--source", "clipart", "--reference", training]
    for more in ([], ["--domains", "product,real"]):
        code, shown, err = run(*words, *more, "--json")
        assert (code, err) == (0, "")
        content = json.loads(shown)
        # The source is never the unseen domain.
        assert set(content["best"]) == {"product", "real"}
        found = {
            (score["domain"], score["method"]): score["ece"]["estimate"]
            for score in content["scores"]
        }
        there, source = (predictions["domains"] == name for name in ("real", "clipart"))
        given = {name: column[~there] for name, column in predictions.items()}
        auto = AutoCalibrator().fit(
            given["logits"],
            given["labels"],
            features=given["features"],
            sample_domain=given["domains"],
            source_domain="clipart",
            reference_features=predictions["features"][::2] - 1,
        )
        away = ~there & ~source
        plain = TemperatureScaling()
        plain.fit(predictions["logits"][away], predictions["labels"][away])
        rows = predictions["logits"][there], predictions["features"][there]
        for name, calibrator in {"auto": auto, "set-level": plain}.items():
            p = calibrator.predict_proba(*rows)
            wanted = expected_calibration_error(predictions["labels"][there], p)
            assert found["real", name] == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize(
    ("words", "reason", "expected"),
    [
        (["--source", "clipart"], "TemperatureScaling treats all domains alike", 2),
        (["--reference", "t.npz"], "TemperatureScaling does not look at training", 2),
        (["--methods", "auto", "--source", "lab"], "source_domain names lab", 1),
        (
            ["--methods", "auto", "--source", "clipart,real"],
            "there is one domain (product) beside the source; wanted at least two",
            1,
        ),
        (
            ["--methods", "auto", "--source", "clipart,real,product"],
            "there is no domain beside the source; wanted at least two",
            1,
        ),
        (
            ["--methods", "set-level,platt", "--source", "clipart"],
            "each of TemperatureScaling, PlattScaling treats all domains alike",
            2,
        ),
    ],
)
def test_compare_refuses_sources_as_fit_does(
    run, npz, tmp_path, monkeypatch, words, reason, expected
):
    monkeypatch.chdir(tmp_path)
    np.savez("t.npz", features=np.zeros((5, 6)))
    words = words if "--methods" in words else ["--methods", "set-level", *words]
    code, _, complaint = run("compare", npz, *words)
    assert code == expected
    assert reason in " ".join(complaint.replace("│", " ").split())


def test_every_kind_of_file_gives_the_same_calibrator(run, tmp_path, predictions):
    z, f = predictions["logits"], predictions["features"]
    table = pl.DataFrame(
        {f"logit_{i}": z[:, i] for i in range(4)}
        | {f"feature_{i}": f[:, i] for i in range(6)}
        | {"label": predictions["labels"], "domain": predictions["domains"]}
    )
    table.write_parquet(tmp_path / "a.parquet")
    table.write_ipc(tmp_path / "b.arrow")
    table.write_csv(tmp_path / "c.csv")
    DomainArchive(z, f, predictions["labels"], predictions["domains"]).save(
        tmp_path / "d.safetensors"
    )
    np.savez_compressed(tmp_path / "e.npz", **predictions)
    (tmp_path / "folder").mkdir()
    for name, array in predictions.items():
        np.save(tmp_path / "folder" / f"{name}.npy", array)
    kinds = ["a.parquet", "b.arrow", "c.csv", "d.safetensors", "e.npz", "folder"]
    found = []
    for name in kinds:
        words = ("--method", "set-level", "--out", tmp_path / "c.skops", "--json")
        code, shown, err = run("fit", tmp_path / name, *words)
        assert code == 0, err
        found.append(json.loads(shown)["temperature"])
    assert np.allclose(found, found[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["fit", "x.npz", "--out", "c.skops", "--method", "ensembel"], "ensemble"),
        (["fit", "x.npz", "--out", "c.skops", "--input", "scores"], "logits"),
        (["fit", "x.npz"], "--out"),
        (["apply", "c.skops"], "predictions"),
        (["nothing"], "nothing"),
        (["compare", "x.npz", "--draws", "1"], "10"),
    ],
)
def test_a_mistake_of_usage_is_one_line_and_code_2(
    run, words, reason, npz, monkeypatch
):
    monkeypatch.chdir(npz.parent)
    npz.rename("x.npz")
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert reason in err


def test_an_unknown_domain_names_the_known_ones(run, npz, tmp_path):
    words = ("--calibrate-on", "clipatr", "--out", tmp_path / "c.skops")
    code, _, err = run("fit", npz, *words)
    assert code == 1
    assert "clipart" in err


def test_a_warning_is_one_line(run, tmp_path, predictions):
    path = tmp_path / "few.npz"
    few = np.zeros_like(predictions["features"])
    few[::2] = 1
    np.savez(path, **predictions | {"features": few})
    words = ("--method", "nearest-cluster", "--out", tmp_path / "c.skops")
    code, _, err = run("fit", path, *words)
    assert code == 0
    assert "2 distinct clusters" in err
    assert all(line.startswith("coolhead: warning:") for line in err.splitlines())


@pytest.mark.parametrize("name", OURS)
def test_every_command_has_json_and_help(run, name):
    code, shown, _ = run(name, "--help")
    assert code == 0
    assert "--json" in shown


def test_completion_offers_commands_and_methods():
    command = Path(sys.executable).with_name("coolhead")
    for words, wanted in (("coolhead ev", "evaluate"), ("coolhead fit -", "--method")):
        environment = os.environ | {
            "_COOLHEAD_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        shown = subprocess.run(
            [command], env=environment, capture_output=True, text=True, check=False
        )
        assert wanted in shown.stdout


def test_help_needs_no_heavy_library_and_half_a_second():
    script = (
        "import sys, time; sys.argv = ['coolhead', '--help']\n"
        "from coolhead.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'sklearn', 'polars', 'torch', 'matplotlib', 'scipy'}\n"
        "print(sorted(heavy & set(sys.modules)), time.process_time())"
    )
    best = 9.0
    for _ in range(3):
        shown = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        *_, last = shown.stdout.splitlines()
        assert last.startswith("[]"), last
        best = min(best, float(last.split()[-1]))
    assert best < 0.5


def test_the_table_of_commands_is_what_the_application_offers():
    assert application().info.name == "coolhead"
    assert set(OURS) <= set(COMMANDS)


@pytest.mark.parametrize("ids", [[f"p/{i}.jpg" for i in range(300)], range(300)])
def test_apply_keeps_the_names_of_the_rows(run, npz, predictions, tmp_path, ids):
    cal, out = tmp_path / "c.skops", tmp_path / "p.parquet"
    assert run("fit", npz, "--method", "set-level", "--out", cal)[0] == 0
    np.savez(tmp_path / "a.npz", **predictions, ids=np.array(ids))
    DomainArchive(**predictions, ids=np.array(ids)).save(tmp_path / "b.safetensors")
    logits = {f"logit_{i}": predictions["logits"][:, i] for i in range(4)}
    pl.DataFrame({"id": list(ids), **logits}).write_parquet(tmp_path / "c.parquet")
    for name in ("a.npz", "b.safetensors", "c.parquet"):
        code, _, err = run("apply", cal, tmp_path / name, "--out", out)
        assert code == 0, err
        assert pl.read_parquet(out)["id"].to_list() == list(ids)


@pytest.mark.parametrize(
    ("calibrator", "inputs", "outputs"),
    [
        (VectorScaling(), ["logits"], ["probabilities"]),
        (
            TemperatureEnsemble(),
            ["logits", "features"],
            ["probabilities", "temperature", "covered"],
        ),
    ],
)
def test_export_gives_the_details_a_method_has(
    run, predictions, tmp_path, calibrator, inputs, outputs
):
    cal, out = tmp_path / "c.skops", tmp_path / "c.onnx"
    arrays = (predictions[name] for name in ("logits", "labels"))
    save_calibrator(calibrator.fit(*arrays, features=predictions["features"]), cal)
    code, shown, _ = run("export", cal, "--onnx", out, "--details", "--json")
    assert code == 0
    found = json.loads(shown)
    assert (found["inputs"], found["outputs"]) == (inputs, outputs)
