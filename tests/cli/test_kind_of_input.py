"""Logits or probabilities: the names of the columns say it, and --input."""

import polars as pl
import pytest

import coolhead as ch
from coolhead.numerics.softmax import softmax

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


@pytest.fixture
def tables(tmp_path):
    """The same rows as logits and as probabilities, without features."""
    data = ch.datasets.simulate_domains([1.0, 2.0, 3.0])
    beside = {"label": data.labels, "domain": data.domains}
    shown = {"logit": data.logits, "prob": softmax(data.logits, 1.0)}
    for prefix, scores in shown.items():
        columns = {f"{prefix}_{k}": column for k, column in enumerate(scores.T)}
        pl.DataFrame(columns | beside).write_csv(tmp_path / f"{prefix}.csv")
    return tmp_path


def test_the_prefix_says_what_the_scores_are(run, tables):
    temperatures = {}
    for prefix, kind in {"logit": "logits", "prob": "probabilities"}.items():
        table, saved = tables / f"{prefix}.csv", tables / f"{prefix}.skops"
        code, printed, complaint = run("fit", table, "--out", saved)
        assert code == 0, complaint
        assert "no features: one temperature for all rows" in printed
        fitted = ch.load_calibrator(saved)
        temperatures[prefix] = fitted.temperature_
        assert run("expect", saved, table)[0] == 0
        code, printed, complaint = run("compare", table)
        assert code == 0 and "auto" in printed, complaint
        assert run("fit", table, "--out", saved, "--input", kind)[0] == 0
    assert temperatures["prob"] == pytest.approx(temperatures["logit"], rel=1e-5)


def test_what_is_said_is_not_overruled_by_the_prefix(run, tables):
    out = tables / "cal.skops"
    code, _, complaint = run("fit", tables / "prob.csv", "--out", out, "--input=logits")
    assert code == 1 and "probabilities" in complaint and not out.exists()
