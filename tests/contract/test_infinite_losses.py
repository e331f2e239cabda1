"""Rows whose class has probability zero are left out of the log loss and counted."""

import json
import os

import numpy as np
import polars as pl
import pytest

import coolhead as ch
from coolhead.evaluate import evaluate_domains
from experiment.small_world import DOMAINS, make_archive, protocol_content, write_toml

ARCHIVE = make_archive()
LABELS, NAMES = np.asarray(ARCHIVE.labels), np.asarray(ARCHIVE.domains)
LOGITS = np.where(np.arange(4) == 3, -np.inf, ARCHIVE.logits).astype(np.float32)
KNOWN = LABELS < 3
# The class is never seen before the last domain.
ROWS = KNOWN | (NAMES == "west")
CAL = ch.TemperatureScaling().fit(LOGITS[KNOWN], LABELS[KNOWN])
N_MASKED, N_ROWS = int((ROWS & ~KNOWN).sum()), int(ROWS.sum())
LOSS = ch.metrics.negative_log_likelihood(
    LABELS[KNOWN], logits=LOGITS[KNOWN], temperature=CAL.temperature_
)
COUNTED = f"the true class of {N_MASKED} of {N_ROWS} rows has probability zero"


def archive():
    return ARCHIVE.replace(logits=LOGITS).rows(ROWS)


@pytest.fixture
def files(tmp_path):
    ch.save_calibrator(CAL, tmp_path / "cal.skops")
    archive().save(tmp_path / "rows.safetensors")
    return tmp_path / "cal.skops", tmp_path / "rows.safetensors"


def test_metrics():
    given = {"logits": LOGITS[ROWS], "temperature": CAL.temperature_}
    with pytest.warns(UserWarning, match=COUNTED):
        found = ch.metrics.negative_log_likelihood(LABELS[ROWS], **given)
    with pytest.warns(UserWarning, match=COUNTED):
        same = ch.metrics.negative_log_likelihood(
            LABELS[ROWS], CAL.predict_proba(LOGITS[ROWS])
        )
    assert found == pytest.approx(LOSS) == pytest.approx(same, abs=1e-6)


def test_evaluations_in_memory_and_in_blocks():
    line = evaluate_domains(CAL, archive(), n_draws=10)[-1]
    da = pytest.importorskip("dask.array")
    blocks = (da.from_array(part).rechunk({0: 90}) for part in (LOGITS, LABELS))
    spread = ch.dask.evaluate(CAL, *(block[np.flatnonzero(ROWS)] for block in blocks))
    assert line.nll_after == pytest.approx(LOSS)
    assert spread.negative_log_likelihood == pytest.approx(LOSS)
    assert (line.n_masked, line.n_rows) == (N_MASKED, N_ROWS)
    assert (spread.n_masked, spread.n_samples) == (N_MASKED, N_ROWS)


def test_the_command_line_and_its_report(files, run, tmp_path):
    words = ("evaluate", *files, "--draws", "10")
    code, text, said = run(*words, "--report", tmp_path / "page.html")
    assert code == 0, said
    assert COUNTED in " ".join(text.split()) and "inf " not in text
    page = (tmp_path / "page.html").read_text()
    n_west = int((NAMES == "west").sum())
    assert f"{N_MASKED} of {n_west} rows has probability zero" in page
    lines = json.loads(run(*words, "--json")[1])["domains"]
    assert lines[-1]["nll_after"] == pytest.approx(LOSS)
    assert [line["n_masked"] for line in lines] == [0, 0, 0, N_MASKED, N_MASKED]


def test_a_sweep(run, tmp_path):
    for name in DOMAINS:
        archive().save(tmp_path / f"source={name}.safetensors")
    methods = {"names": ["uncalibrated", "set-level"], "clusters": 3, "sensitivity": []}
    content = protocol_content(tmp_path, methods=methods)
    path = write_toml(tmp_path / "small.toml", content)
    code, _, said = run("sweep", path, "--folder", tmp_path / "runs")
    assert code == 0, said
    table = pl.read_parquet(tmp_path / "runs" / "small" / "results.parquet")
    found = table.filter(target="west").pivot("metric", values="value")
    assert len(found) == 6 and found["n_masked"].min() > 30
    assert np.isfinite(found["nll"].to_numpy()).all()
    others = table.filter(pl.col("target") != "west", metric="n_masked")
    assert len(others) == 18 and others["value"].max() == 0
    code, _, said = run("report", tmp_path / "runs" / "small")
    assert code == 0, said
    page = (tmp_path / "runs" / "small" / "report.html").read_text()
    assert "rows has probability zero: their log loss is infinite" in page


def test_mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read while it is imported
    mlflow = pytest.importorskip("mlflow")
    import coolhead.mlflow

    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as active:
        coolhead.mlflow.log_evaluation(CAL, archive(), n_draws=10)
    logged = mlflow.MlflowClient().get_run(active.info.run_id).data.metrics
    mlflow.set_tracking_uri(None)
    assert logged["n_masked/all"] == N_MASKED
    assert logged["nll_after/all"] == pytest.approx(LOSS)
