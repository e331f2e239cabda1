"""The numbers of the report against plain arithmetic, and the public figures."""

import numpy as np
import polars as pl
import pytest
from synthetic_run import write_run

from coolhead import figures
from coolhead.lab.results import load_scores, read_table
from coolhead.report.answer import choose_method, describe_answer
from coolhead.report.diagnostics import abstention
from coolhead.report.plot import feature_map, reliability_panel
from coolhead.report.summarise import heat_rows

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def results(made):
    return read_table(made, "results")


@pytest.fixture(scope="module")
def means(results):
    """ECE in per cent by method, (n_splits,) each, in the order of the splits."""
    frame = results.filter(pl.col("metric") == "ece_mean")
    return {
        name: 100 * part["value"].to_numpy()
        for (name,), part in frame.group_by("method", maintain_order=True)
    }


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def test_the_answer_is_arithmetic(made, means):
    scores = load_scores(made)["mlp"]
    found = describe_answer(scores, "split")
    change = means["set-level"] - means["uncalibrated"]
    assert found["method"] == "set-level"
    assert found["before"] == pytest.approx(means["uncalibrated"].mean())
    assert found["after"] == pytest.approx(means["set-level"].mean())
    assert found["change"] == pytest.approx(change.mean())
    assert found["low"] < change.mean() < found["high"] < 0
    assert found["n"] == 6 and found["n_worse"] == 0
    assert found["oracle"] == pytest.approx(means["target-only"].mean())


def test_the_interval_covers_what_resampled_splits_give(made, means):
    found = describe_answer(load_scores(made)["mlp"], "split")
    change = means["set-level"] - means["uncalibrated"]
    rng = np.random.default_rng(9)
    draws = [rng.choice(change, len(change)).mean() for _ in range(4000)]
    expected = np.quantile(draws, [0.025, 0.975])
    assert [found["low"], found["high"]] == pytest.approx(expected, abs=0.15)


def test_an_oracle_is_never_recommended(made, means):
    best = min(means, key=lambda name: means[name].mean())
    chosen = choose_method(load_scores(made)["mlp"])
    assert chosen not in ("target-only", "uncalibrated")
    assert best in ("target-only", chosen)


def test_where_every_method_harms_the_answer_is_to_leave_it(tmp_path):
    run = write_run(tmp_path / "run", ("a", "b"), truth=1.0)
    found = describe_answer(load_scores(run)["mlp"], "split")
    assert found["sentence"].startswith("Leave the classifier uncalibrated")
    assert found["n_worse"] == found["n"] == 2
    assert found["n_clearly_worse"] == 2


def test_abstention_counts_errors(made):
    histogram = read_table(made, "histogram")
    rows = abstention(histogram, "set-level")
    own = histogram.filter(pl.col("method") == "uncalibrated")
    kept = own.filter(pl.col("low") >= 0.79999)
    wrong = (own["n"] - own["n_correct"]).sum()
    wrong_kept = (kept["n"] - kept["n_correct"]).sum()
    cell = next(row for row in rows if row["threshold"] == "80 %")["cells"][0]
    assert cell["answered"] == f"{100 * kept['n'].sum() / own['n'].sum():.0f} %"
    assert (
        cell["accuracy"] == f"{100 * kept['n_correct'].sum() / kept['n'].sum():.0f} %"
    )
    assert cell["avoided"] == f"{100 * (1 - wrong_kept / wrong):.0f} %"


def test_a_panel_has_the_heights_of_its_bins():
    bins = pl.DataFrame(
        {
            "bin": [0, 1, 2, 3],
            "n": [0, 10, 40, 20],
            "sum_confidence": [0.0, 4.0, 24.0, 18.0],
            "sum_correct": [0, 6, 10, 18],
        }
    )
    panel = reliability_panel(bins)
    assert panel["n"] == 70
    assert [y for _, y in panel["bars"]] == ["40", "75", "10"]
    assert panel["over"] == [(panel["bars"][1][0], "75", "40")]
    assert [(top, mean) for _, top, mean in panel["under"]] == [
        ("40", "60"),
        ("10", "10"),
    ]
    assert [h for _, h in panel["strip"]] == ["3.5", "14", "7"]


def test_labels_of_the_map_do_not_cover_each_other(made):
    points = read_table(made, "map")
    one = points.filter(pl.col("split") == points["split"][0])
    centres = feature_map(one)["centres"]
    assert len(centres) == 8
    for i, (x, y, _) in enumerate(centres):
        for other_x, other_y, _ in centres[:i]:
            assert abs(x - other_x) >= 26 or abs(y - other_y) >= 13


def test_public_figures_take_a_run(made, means):
    ax = figures.before_after(made, method="set-level")
    shown = ax.collections[-1].get_offsets()[:, 0]
    assert sorted(shown) == pytest.approx(sorted(means["set-level"]))
    assert figures.heat_map(made).get_xticklabels()[0].get_text() == "uncalibrated"
    assert figures.by_target(made, methods=["uncalibrated", "ensemble"]).lines
    assert figures.confidence_histogram(made, method="ensemble").patches
    assert figures.temperatures(str(made)).collections
    assert figures.selective_prediction(made, methods=["ensemble"]).lines
    assert figures.feature_map(made, split="amazon > 写真 $x_{").collections
    title = figures.reliability(made, method="uncalibrated").get_title()
    assert "n = 2,400" in title


def test_the_page_draws_what_the_public_figures_lay_out(made):
    """The same cells, bars and labels, only on another canvas."""
    table = heat_rows(load_scores(made)["mlp"], read_table(made, "failures"), None)
    ax = figures.heat_map(made)
    shown = sorted(text.get_text() for text in ax.texts)
    assert shown == sorted(c["text"] for row in table["rows"] for c in row["cells"])
    points = read_table(made, "map")
    one = points.filter(pl.col("split") == points["split"][0])
    page = sorted(text for _, _, text in feature_map(one)["centres"])
    assert page == sorted(text.get_text() for text in figures.feature_map(one).texts)


def test_not_the_folder_of_a_run(tmp_path):
    with pytest.raises(ValueError, match=r"holds no results\.parquet; is it the"):
        figures.heat_map(tmp_path)
