"""A cell: its scores are what the public functions give, one by one."""

import numpy as np
import pytest
from small_world import DOMAINS, make_archive

import coolhead as ch
from coolhead.lab.cell import evaluate_cell
from coolhead.lab.images import split_large_small
from coolhead.lab.plan import Split
from coolhead.lab.protocol import EvaluationSettings, Methods
from coolhead.lab.rows import SplitRows, fit_method
from coolhead.lab.scoring import predict
from coolhead.methods import METHODS

SPLIT = Split((DOMAINS[0],), (DOMAINS[1], DOMAINS[2]), (DOMAINS[3],))
EVALUATION = EvaluationSettings(size=80, draws=30, bootstrap=60)
NAMES = ("uncalibrated", "source-only", "target-only", "set-level", "ensemble", "ets")


@pytest.fixture(scope="module")
def archive():
    return make_archive(n_rows=150)


@pytest.fixture(scope="module")
def small(archive):
    return split_large_small(archive, small=0.2)


@pytest.fixture(scope="module")
def result(archive, small):
    methods = Methods(names=NAMES, clusters=3, sensitivity=(2, 3))
    return evaluate_cell(archive, small, SPLIT, methods, EVALUATION)


def score(result, method, metric):
    (value,) = [
        row["value"]
        for row in result.tables["results"]
        if (row["method"], row["metric"]) == (method, metric)
    ]
    return value


def target_large(archive, small):
    return archive.rows((archive.domains == DOMAINS[3]) & ~small)


def test_set_level_by_hand(archive, small, result):
    seen = archive.rows(np.isin(archive.domains, SPLIT.calibration) & small)
    unseen = target_large(archive, small)
    calibrator = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    probabilities = calibrator.predict_proba(unseen.logits)
    draws = ch.metrics.draw_subsamples(len(unseen), 80, 30)
    by_hand = {
        "ece": ch.expected_calibration_error(unseen.labels, probabilities),
        "nll": ch.metrics.negative_log_likelihood(unseen.labels, probabilities),
        "brier": ch.metrics.brier_score(unseen.labels, probabilities),
        "accuracy": np.mean(probabilities.argmax(axis=1) == unseen.labels),
        "ece_mean": ch.metrics.subsample_ece(unseen.labels, probabilities, draws).mean,
        "ece_other_mean": ch.metrics.subsample_ece(
            unseen.labels, probabilities, draws, n_bins=10
        ).mean,
        "temperature_median": calibrator.temperature_,
        "subsample_size": 80,
    }
    for metric, value in by_hand.items():
        assert score(result, "set-level", metric) == pytest.approx(value, rel=1e-6)


def test_gain_is_the_fall_of_the_brier_score(result):
    before, after = (score(result, m, "brier") for m in ("uncalibrated", "ensemble"))
    assert score(result, "ensemble", "gain") == pytest.approx(before - after)
    assert score(result, "uncalibrated", "gain") == 0


def test_accuracy_is_the_same_for_all_temperatures(result):
    names = [name for name in NAMES if name != "ets"]
    assert len({score(result, name, "accuracy") for name in names}) == 1


def test_differences_are_paired_with_the_references(result):
    gap = score(result, "set-level", "ece") - score(result, "source-only", "ece")
    assert score(result, "set-level", "ece_vs_source") == pytest.approx(gap)
    low = score(result, "set-level", "ece_vs_source_low")
    assert low < gap < score(result, "set-level", "ece_vs_source_high")


def test_bins_add_up_to_the_rows_and_to_the_ece(archive, small, result):
    n_rows = len(target_large(archive, small))
    for name in NAMES:
        bins = [row for row in result.tables["reliability"] if row["method"] == name]
        assert len(bins) == 15
        assert sum(row["n"] for row in bins) == n_rows
        gaps = [abs(row["sum_correct"] - row["sum_confidence"]) for row in bins]
        assert sum(gaps) / n_rows == pytest.approx(score(result, name, "ece"))
        histogram = [r for r in result.tables["histogram"] if r["method"] == name]
        assert sum(row["n"] for row in histogram) == n_rows


def test_selective_curve_ends_at_the_accuracy(result):
    curve = [row for row in result.tables["selective"] if row["method"] == "ensemble"]
    assert curve[-1]["coverage"] == 1
    assert curve[-1]["accuracy"] == pytest.approx(score(result, "ensemble", "accuracy"))


def test_temperatures_are_positive_and_sorted(result):
    rows = [
        r["value"] for r in result.tables["temperature"] if r["method"] == "ensemble"
    ]
    assert rows == sorted(rows)
    assert rows[0] > 0


def test_shift_and_map_are_described(result):
    diagnostics = {row["diagnostic"]: row["value"] for row in result.tables["shift"]}
    assert 0.5 < diagnostics["discriminator_auroc"] <= 1
    assert diagnostics["renyi_divergence"] == pytest.approx(
        1 + diagnostics["weight_variance"]
    )
    for role in ("calibration", "source"):
        assert diagnostics[f"weight_variance_{role}"] > 0
    assert 0 <= diagnostics["share_outside"] <= 1
    assert {row["role"] for row in result.tables["map"]} == {
        "calibration",
        "target",
        "centre",
    }


def test_sensitivity_agrees_with_the_main_result(result):
    (same,) = [
        row["ece"]
        for row in result.tables["sensitivity"]
        if (row["method"], row["n_clusters"]) == ("ensemble", 3)
    ]
    assert same == score(result, "ensemble", "ece")


def test_shared_clusters_give_what_a_method_finds_alone(archive, small):
    data = SplitRows(archive, small, SPLIT)
    unseen = data.evaluated
    shared = fit_method(METHODS["ensemble"], data, n_clusters=3)
    rows = data.labelled(("calibration",))
    alone = ch.TemperatureEnsemble(n_clusters=3).fit(
        rows.logits, rows.labels, features=rows.features
    )
    ours = predict(shared, unseen).temperature
    assert np.array_equal(ours, alone.temperature(unseen.logits, unseen.features))


@pytest.mark.filterwarnings("ignore:.*effective samples:UserWarning")
def test_a_shared_density_ratio_gives_what_a_method_finds_alone(archive, small):
    """Also when methods with other rows and other target data were fitted before."""
    names = ("wts-calibration", "transcal-transductive", "transcal", "wts", "cpcs")
    data = SplitRows(archive, small, SPLIT)
    for name in names:
        method = METHODS[name]
        shared = fit_method(method, data, n_clusters=3)
        rows = data.labelled(method.rows)
        target = data.unlabelled_target(method.unlabelled_target)
        training = data.reference_features if method.sees_training_data else None
        alone = method.build(n_clusters=3, random_state=0).fit(
            rows.logits,
            rows.labels,
            features=rows.features,
            target_features=target.features,
            target_logits=target.logits,
            reference_features=training,
            sample_domain=rows.sample_domain,
        )
        assert shared.temperature_ == alone.temperature_
    memos = [record.memo for record in data._seen.values()]
    assert sum(key[0] == "ratio" for memo in memos for key in memo) == 3


def test_few_target_rows_are_drawn_in_part_and_said_so(archive, small):
    keep = np.ones(len(archive), bool)
    keep[np.flatnonzero(archive.domains == DOMAINS[3])[40:]] = False
    methods = Methods(names=("uncalibrated", "set-level"), clusters=3)
    few = evaluate_cell(
        archive.rows(keep), small[keep], SPLIT, methods, EVALUATION, random_state=1
    )
    n_rows = score(few, "set-level", "n_evaluated")
    assert n_rows < 80
    assert score(few, "set-level", "subsample_size") == 3 * n_rows // 4


def test_fewer_points_than_clusters_are_survived_and_said(archive, small):
    features = np.zeros_like(archive.features)
    methods = Methods(names=("uncalibrated", "nearest-cluster"), clusters=3)
    same = archive.replace(features=features)
    result = evaluate_cell(same, small, SPLIT, methods, EVALUATION)
    assert not result.failed
    said = {row["method"]: row["warnings"] for row in result.tables["status"]}
    assert "give only 1 distinct clusters" in said["nearest-cluster"]


def test_an_empty_target_is_an_error_with_its_name(archive, small):
    empty = Split(SPLIT.source, SPLIT.calibration, ("nowhere",))
    methods = Methods(names=("uncalibrated",))
    result = evaluate_cell(archive, small, empty, methods, EVALUATION)
    assert "no rows are left of nowhere" in result.tables["failures"][0]["error"]


@pytest.mark.filterwarnings("ignore:.*effective samples:UserWarning")
def test_the_rows_beside_the_paper_have_the_published_weights(archive, small):
    """As in the released code: refilled sets, plain logistic regression, no cut."""
    from sklearn.linear_model import LogisticRegression

    data = SplitRows(archive, small, SPLIT)
    rows = data.labelled(("source",))
    source, target = data.reference_features, data.unlabelled_target("small")[0]
    assert len(source) > len(target)
    drawn = np.random.default_rng(0).integers(0, len(target), len(source) - len(target))
    filled = np.concatenate([target, target[drawn]])
    model = LogisticRegression().fit(
        np.concatenate([source, filled]), np.repeat([0, 1], len(source))
    )
    wanted = np.exp(model.decision_function(rows.features))
    for name in ("transcal", "wts", "cpcs"):
        found = fit_method(METHODS[name], data, n_clusters=3)
        assert np.allclose(found.density_ratio_.weights, wanted, rtol=1e-6)
        ours = fit_method(METHODS[f"{name}-ours"], data, n_clusters=3)
        assert not np.allclose(ours.density_ratio_.weights, wanted, rtol=0.01)
        assert METHODS[f"{name}-ours"].label == f"{METHODS[name].label}, our weights"
        assert METHODS[f"{name}-ours"].paper is None
    assert (METHODS["transcal"].paper, METHODS["wts"].paper) == ("transcal", "wts")


def test_dac_is_whole_and_its_first_stage_has_its_own_name(archive, small):
    data = SplitRows(archive, small, SPLIT)
    whole = fit_method(METHODS["dac"], data, n_clusters=3)
    first = fit_method(METHODS["dac-temperature"], data, n_clusters=3)
    unseen = data.evaluated
    alone = first.temperature(unseen.logits, unseen.features)
    stage = whole.first_.temperature(unseen.logits, unseen.features)
    assert np.array_equal(stage, alone)
    scaled = unseen.logits.astype(float) / alone[:, None]
    assert np.allclose(
        whole.predict_proba(unseen.logits, unseen.features),
        whole.base_.predict_proba(scaled),
        atol=1e-6,
    )
