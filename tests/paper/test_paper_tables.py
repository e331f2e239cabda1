"""The paper's own arithmetic comes out of our aggregation code.

Every place where it does not is named: those are slips in the printed tables.
"""

import numpy as np
import polars as pl
import pytest

from coolhead.lab.tables.paper import paper_table, paper_table_names
from coolhead.metrics import (
    Interval,
    improvement_ratio,
    is_significant,
    pooled_sigma,
    sigma_counts,
)

OURS = ["set", "cluster_nn", "cluster_regression", "ensemble"]
NAMES = {"TransCal": "transcal", "WTS": "wts"}


def test_every_table_loads():
    names = paper_table_names()
    assert len(names) == 13 and names == sorted(names)
    for name in names:
        assert paper_table(name).height > 0


def test_an_unknown_name_is_refused_with_the_names():
    with pytest.raises(
        ValueError, match=r"'office' *; wanted one of domainnet_by_split"
    ):
        paper_table("office")


def test_shapes_and_known_cells():
    splits = paper_table("domainnet_by_split")
    assert splits.height == 60
    assert splits.unique(["source_1", "source_2", "target"]).height == 60
    assert paper_table("office_home_by_split")["set_mean"][0] == 10.98


def by_target_cells(dataset):
    """(method, target) -> recomputed (mean, pooled sigma), and the printed ones."""
    long = paper_table(f"{dataset}_by_split_long")
    printed = paper_table(f"{dataset}_by_target")
    recomputed = {}
    for method in long["method"].unique():
        mine = long.filter(pl.col("method") == method)
        for target in [*mine["target"].unique(), "ALL"]:
            cells = mine if target == "ALL" else mine.filter(pl.col("target") == target)
            means = cells["ece_percent_mean"].to_numpy()
            deviations = cells["ece_percent_std"]
            sigma = None
            if deviations.null_count() == 0:
                sigma = pooled_sigma(means, deviations.to_numpy())
            recomputed[method, target] = float(means.mean()), sigma
    rows = printed.iter_rows()
    return recomputed, {(row[0], row[1]): (row[2], row[3]) for row in rows}


def mismatches(dataset):
    recomputed, printed = by_target_cells(dataset)
    wrong, checked = set(), 0
    for key, (mean, sigma) in recomputed.items():
        checked += 1
        # Inputs are rounded to 0.01: half of that, and half of the result's own.
        if abs(mean - printed[key][0]) > 0.0101:
            wrong.add((*key, "mean"))
        if sigma is not None and printed[key][1] is not None:
            checked += 1
            if abs(sigma - printed[key][1]) > 0.0151:
                wrong.add((*key, "sigma"))
    return wrong, checked


def test_office_home_averages_and_pooled_sigmas():
    wrong, checked = mismatches("office_home")
    assert checked == 80
    assert wrong == {
        ("uncalibrated", "ALL", "sigma"),
        ("source_only", "Real", "sigma"),
        ("transcal", "Clipart", "mean"),
        ("transcal", "Product", "mean"),
        ("transcal", "Real", "mean"),
        ("transcal", "ALL", "mean"),
    }


def test_domainnet_averages_and_pooled_sigmas():
    wrong, checked = mismatches("domainnet")
    assert checked == 84
    assert wrong == {("source_only", "Sketch", "mean")}


def test_the_recomputed_values_of_the_exceptions():
    office, _ = by_target_cells("office_home")
    assert office["uncalibrated", "ALL"][1] == pytest.approx(4.28, abs=0.005)
    assert office["source_only", "Real"][1] == pytest.approx(1.07, abs=0.005)
    for target, mean in {
        "Clipart": 22.60,
        "Product": 12.97,
        "Real": 8.47,
        "ALL": 16.16,
    }.items():
        assert office["transcal", target][0] == pytest.approx(mean, abs=0.005)
    domainnet, _ = by_target_cells("domainnet")
    assert domainnet["source_only", "Sketch"][0] == pytest.approx(17.05, abs=0.005)


def test_domainnet_ensemble_overall_follows_from_its_targets():
    table = paper_table("domainnet_by_target").filter(pl.col("method") == "ensemble")
    parts = table.filter(pl.col("target_domain") != "ALL")
    means = parts["ece_percent_mean"].to_numpy()
    sigma = pooled_sigma(means, parts["ece_percent_std"].to_numpy())
    assert means.mean() == pytest.approx(6.66, abs=0.005)
    assert sigma == pytest.approx(3.67, abs=0.005)


def overall(dataset):
    table = paper_table(f"{dataset}_by_target").filter(pl.col("target_domain") == "ALL")
    return dict(zip(table["method"], table["ece_percent_mean"], strict=True))


@pytest.mark.parametrize("dataset", ["office_home", "domainnet"])
def test_improvement_ratios(dataset):
    ece = overall(dataset)
    printed = paper_table("improvement_ratio")
    for method, ratio in zip(printed["method"], printed[f"{dataset}_ir"], strict=True):
        if method in OURS:
            ours = improvement_ratio(
                ece[method], ece["source_only"], ece["target_only"]
            )
            assert round(ours, 2) == ratio


def test_ratios_of_transcal_and_wts_are_from_their_own_papers():
    ece = overall("office_home")
    printed = dict(
        paper_table("improvement_ratio").select("method", "office_home_ir").rows()
    )
    own = {
        method: improvement_ratio(ece[method], ece["source_only"], ece["target_only"])
        for method in ("transcal", "wts")
    }
    assert printed["transcal"] == 0.25 and printed["wts"] == -0.03
    assert own == pytest.approx({"transcal": -0.76, "wts": 0.10}, abs=0.005)


def test_the_average_of_ratios_is_another_number():
    table = paper_table("office_home_by_split")
    span = table["source_only_mean"] - table["target_only_mean"]
    each = (table["source_only_mean"] - table["set_mean"]) / span
    assert each.mean() == pytest.approx(-0.022, abs=0.001)
    ratio = improvement_ratio(
        *(table[f"{m}_mean"] for m in ("set", "source_only", "target_only"))
    )
    assert round(ratio, 2) == 0.56


def test_headline_reductions():
    office, domainnet = overall("office_home"), overall("domainnet")
    for baseline, reduction in {
        "transcal": 8.86,
        "wts": 3.25,
        "source_only": 3.92,
    }.items():
        assert office[baseline] - office["ensemble"] == pytest.approx(reduction)
    assert domainnet["source_only"] - domainnet["ensemble"] == pytest.approx(10.27)


def counted(baseline, methods):
    table = paper_table("office_home_by_split")
    means, deviations = (
        table.select([f"{m}_{kind}" for m in methods]).to_numpy()
        for kind in ("mean", "std")
    )
    if len(methods) == 1:
        means, deviations = means[:, 0], deviations[:, 0]
    return sigma_counts(table[f"{baseline}_mean"], means, deviations)


def printed_counts(baseline):
    table = paper_table("sigma_counts").filter(pl.col("baseline") == baseline)
    return table.row(0)[1:]


@pytest.mark.parametrize("candidates", [OURS[:3], OURS])
def test_sigma_counts_against_wts_are_those_of_the_best_method(candidates):
    best = counted("wts", candidates)
    assert best.selection == "post-hoc best"
    assert best.counts == printed_counts("wts") == (1, 1, 0, 1, 1, 8)


def test_sigma_counts_of_fixed_methods_are_others():
    expected = {
        "set": (2, 0, 2, 0, 1, 7),
        "cluster_nn": (1, 1, 1, 1, 3, 5),
        "cluster_regression": (1, 1, 1, 1, 1, 7),
        "ensemble": (1, 1, 0, 2, 1, 7),
    }
    for method, counts in expected.items():
        result = counted("wts", [method])
        assert result.selection == "fixed method"
        assert result.counts == counts


def test_sigma_counts_against_transcal_differ_in_one_split():
    """A->R, -1.4 sigma, is printed under 0 to 2; no choice of method gives that."""
    assert printed_counts("transcal") == (1, 0, 0, 1, 0, 10)
    assert counted("transcal", OURS).counts == (1, 0, 1, 0, 0, 10)
    for method in OURS:
        assert counted("transcal", [method]).counts != printed_counts("transcal")
    table = paper_table("office_home_by_split")
    split = (table["source"] == "Art") & (table["target"] == "Real")
    reduction = counted("transcal", OURS).reductions[split.to_numpy()]
    assert reduction == pytest.approx([-1.38], abs=0.005)


def stars(table, value, baselines, better):
    """(method, source, target) where our rule and the printed asterisk differ."""
    wrong, checked = set(), 0
    for (source, target), cells in table.group_by(["source", "target"]):
        scores, printed = {}, {}
        for row in cells.iter_rows(named=True):
            name = NAMES.get(row["method"], row["method"])
            mean = row[f"{value}_mean"]
            low, high = row[f"{value}_p2.5"], row[f"{value}_p97.5"]
            # TransCal and WTS are printed without limits: single numbers.
            limits = (mean, mean) if low is None else (low, high)
            scores[name] = Interval(mean, *limits)
            printed[name] = row["significant"]
        result = is_significant(
            scores, rule="non_overlap", baseline=baselines, better=better
        )
        for method in OURS:
            checked += 1
            if result[method] != bool(printed[method]):
                wrong.add((method, source, target))
    return wrong, checked


def test_office_home_asterisks():
    baselines = ["source_only", "transcal", "wts"]
    table = paper_table("office_home_ece_ci")
    wrong, checked = stars(table, "ece_percent", baselines, "lower")
    assert checked == 48
    # The rule holds for these three but they carry no asterisk.
    assert wrong == {
        ("ensemble", "Product", "Clipart"),
        ("ensemble", "Clipart", "Art"),
        ("ensemble", "Product", "Art"),
    }


def test_gain_asterisks():
    table = paper_table("office_home_calibration_gain_ci")
    wrong, checked = stars(table, "gain_percent", "source_only", "higher")
    assert checked == 48 and wrong == set()


def test_domainnet_asterisks():
    starred = dict.fromkeys(OURS[:3], 0)
    for row in paper_table("domainnet_by_split").iter_rows(named=True):
        scores = {}
        for name in ["source_only", *OURS[:3]]:
            mean, reach = row[f"{name}_mean"], 1.96 * row[f"{name}_std"]
            scores[name] = Interval(mean, mean - reach, mean + reach)
        result = is_significant(scores, rule="non_overlap", baseline="source_only")
        for name in starred:
            assert result[name] == bool(row[f"{name}_significant"])
            starred[name] += result[name]
    assert starred == {"set": 49, "cluster_nn": 54, "cluster_regression": 44}


def test_resampling_was_without_replacement():
    """Printed deviations follow the finite-population factor sqrt(1 - 1500 / N)."""
    large = {"Clipart": 3492, "Art": 1942, "Product": 3551, "Real": 3486}
    table = paper_table("office_home_by_split_long").drop_nulls("ece_percent_std")
    adjusted = []
    for target, n_rows in large.items():
        mine = table.filter(pl.col("target") == target)["ece_percent_std"].mean()
        adjusted.append(mine / np.sqrt(1 - 1500 / n_rows))
    assert max(adjusted) / min(adjusted) < 1.2
