"""The numbers of the report against plain arithmetic, and the public figures."""

import numpy as np
import polars as pl
import pytest
from synthetic_run import write_run

import coolhead.figures as plot
from coolhead.experiment.results import read_table
from coolhead.experiment.tables.answer import choose_method, describe_answer
from coolhead.experiment.tables.run_scores import load_scores
from coolhead.metrics import reliability_curve
from coolhead.report.colours import WARMTH, heat_step, temperature_colours
from coolhead.report.diagnostics import abstention
from coolhead.report.panels import feature_map, reliability_panel

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
            assert abs(x - other_x) >= 26 or abs(y - other_y) >= 13 or y >= 212


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (-10, "b5"),
        (-9, "b5"),
        (-0.1, "b1"),
        (0, "z"),
        (0.01, "z"),
        (5, "w3"),
        (99, "w5"),
    ],
)
def test_heat_steps(change, step):
    assert heat_step(change, 10) == step


def test_temperatures_are_coloured_by_factor():
    assert temperature_colours([1, 10, 100], 1, 100) == [
        WARMTH[0],
        WARMTH[3],
        WARMTH[5],
    ]
    assert temperature_colours([2, 2], 2, 2) == [WARMTH[3]] * 2


def test_before_after_draws_every_split(results, means):
    ax = plot.before_after(results, method="set-level")
    shown = ax.collections[-1].get_offsets()[:, 0]
    assert sorted(shown) == pytest.approx(sorted(means["set-level"]))
    assert len(ax.get_yticklabels()) == 6


def test_figures_take_a_run_and_axes(made):
    _, ax = plt.subplots()
    assert plot.temperatures(made, ax) is ax
    assert plot.heat_map(made).get_xticklabels()[0].get_text() == "Uncalibrated"
    assert plot.by_target(made, methods=["uncalibrated", "ensemble"]).lines
    assert plot.confidence_histogram(made, method="ensemble").patches
    curves = plot.selective_prediction(made, methods=["uncalibrated", "ensemble"])
    assert len(curves.lines) == 2
    one = read_table(made, "map").filter(pl.col("split") == "amazon > 写真 $x_{")
    assert plot.feature_map(one).collections


def test_a_reliability_figure_of_a_curve_and_of_a_table(made):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, 300)
    curve = reliability_curve(rng.random(300) < confidence - 0.2, confidence)
    title = plot.reliability(curve).get_title("center")
    assert f"{100 * curve.expected_calibration_error:.1f} %" in title
    bins = read_table(made, "reliability").filter(pl.col("method") == "uncalibrated")
    assert "n = 2,400" in plot.reliability(bins).get_title("center")


def test_figures_leave_the_settings_of_matplotlib_alone(made):
    import matplotlib

    before = dict(matplotlib.rcParams)
    with plot.figure_style():
        plot.temperatures(made)
    assert dict(matplotlib.rcParams) == before
