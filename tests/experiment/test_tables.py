"""Tables: the paper's own aggregates from its splits, and every table of a run."""

import re
import shutil
from math import floor

import polars as pl
import pytest
from small_world import protocol_content

from coolhead.lab import summary
from coolhead.lab.commands.experiments import write_pages
from coolhead.lab.protocol import Protocol
from coolhead.lab.protocol_files import load_protocol, protocol_names
from coolhead.lab.report import answers
from coolhead.lab.results import read_table
from coolhead.lab.sweep import run_sweep
from coolhead.lab.tables.all_tables import all_tables, write_tables
from coolhead.lab.tables.averages import by_target, improvement_ratios
from coolhead.lab.tables.by_split import (
    asterisks,
    ece_by_split,
    harm,
    reductions_in_sigma,
)
from coolhead.lab.tables.others import does_it_help
from coolhead.lab.tables.paper import Published, paper_table
from coolhead.methods import METHODS
from coolhead.metrics import holm
from coolhead.report.results import KEY_COLUMNS, TABLES
from coolhead.report.tables import RunScores, label, render_table

NAMES_BY_LABEL = {method.label: name for name, method in METHODS.items()}
NAMES = {method.paper: name for name, method in METHODS.items() if method.paper}
# TableBuilder of the paper that its own splits do not give: (method, target, mean, sd).
SLIPS = {
    "office_home": {
        ("uncalibrated", "ALL"),
        ("source-only", "Real"),
        ("transcal", "Clipart"),
        ("transcal", "Product"),
        ("transcal", "Real"),
        ("transcal", "ALL"),
    },
    "domainnet": {("source-only", "Sketch")},
}


def printed_splits(dataset: str) -> RunScores:
    """The paper's by-split table as if it were a run of ours."""
    table = paper_table(f"{dataset}_by_split_long")
    if dataset == "domainnet":
        both = pl.concat_str("source_1", "source_2", separator="+")
        table = table.with_columns(source=both)
    return RunScores(
        table.select(
            classifier=pl.lit("theirs"),
            split=pl.concat_str("source", "target", separator=" > "),
            source="source",
            calibration="calibration_domains",
            target="target",
            seed=pl.lit(0),
            method=pl.col("method").replace_strict(NAMES),
            ece_mean="ece_percent_mean",
            ece_sd=pl.col("ece_percent_std").fill_null(0.0),
        )
    )


def cells(table) -> dict:
    rows = table.cells.iter_rows(named=True)
    return {(row["row"], row["column"]): row for row in rows}


def rounded(value: float) -> float:
    return floor(value * 100 + 0.5 + 1e-9) / 100


@pytest.mark.parametrize("dataset", ["office_home", "domainnet"])
def test_averages_and_pooled_sigmas_of_the_paper(dataset):
    ours = cells(by_target(printed_splits(dataset)))
    wrong = set()
    for row in paper_table(f"{dataset}_by_target").iter_rows(named=True):
        name, target = NAMES[row["method"]], row["target_domain"]
        column = "all" if target == "ALL" else target
        cell = ours.get((label(name), column))
        if cell is None:  # DomainNet prints no splits of the ensemble.
            assert (dataset, name) == ("domainnet", "ensemble")
            continue
        mean_agrees = abs(cell["value"] - row["ece_percent_mean"]) < 0.0101
        sigma = row["ece_percent_std"]
        sigma_agrees = sigma is None or abs(cell["sd"] - sigma) < 0.0151
        if not (mean_agrees and sigma_agrees):
            wrong.add((name, target))
    assert wrong == SLIPS[dataset]


@pytest.mark.parametrize("dataset", ["office_home", "domainnet"])
def test_improvement_ratios_of_the_paper(dataset):
    published = Published(dataset)
    ours = cells(improvement_ratios(printed_splits(dataset), published))
    for name in ("set-level", "nearest-cluster", "regression", "ensemble"):
        found = ours.get((label(name), "improvement ratio"))
        if found is not None:
            assert rounded(found["value"]) == published.improvement_ratio(name)


def test_sigma_counts_of_the_paper():
    scores = printed_splits("office_home")
    counts = cells(reductions_in_sigma(scores, Published("office_home")))

    def row(name):
        return [int(c["value"]) for (r, _), c in counts.items() if r == name]

    assert row("post-hoc best against WTS") == [1, 1, 0, 1, 1, 8]
    # Printed (1, 0, 0, 1, 0, 10): one split stands on the wrong side of zero there.
    assert row("post-hoc best against TransCal") == [1, 0, 1, 0, 0, 10]
    assert row("Ensemble against WTS") == [1, 1, 0, 2, 1, 7]
    assert row("paper's post-hoc best against TransCal") == [1, 0, 0, 1, 0, 10]


def test_difference_to_the_paper_is_zero_for_its_own_numbers():
    scores = printed_splits("office_home")
    ours = cells(by_target(scores, Published("office_home")))
    cell = ours[(label("set-level"), "Clipart, difference")]
    assert abs(cell["value"]) < 0.01
    renamed = RunScores(scores.frame.with_columns(target=pl.lit("Real World")))
    found = cells(by_target(renamed, Published("office_home")))
    assert (label("set-level"), "Real World, paper") in found


def test_harm_is_counted_on_the_papers_splits():
    scores = printed_splits("office_home")
    nothing = pl.lit(0.0)
    frame = scores.frame.with_columns(ece_vs_uncalibrated_low=nothing)
    worse = cells(harm(RunScores(frame)))
    better = frame.pivot(on="method", index="split", values="ece_mean")
    for name in ("set-level", "ensemble"):
        count = int((better[name] > better["uncalibrated"]).sum())
        assert worse[(label(name), "worse")]["value"] == count
        assert 0 < count < 12


def test_asterisks_follow_both_rules():
    base = {
        "split": "a > b",
        "source": "a",
        "calibration": "c",
        "target": "b",
        "seed": 0,
    }
    rows = [
        base | {"method": "source-only", "ece_low": 9.0, "better_than_source": None},
        base | {"method": "set-level", "ece_high": 8.0, "better_than_source": 1.0},
        base | {"method": "ensemble", "ece_high": 9.5, "better_than_source": 1.0},
        base | {"method": "regression", "ece_high": 9.5, "better_than_source": 0.0},
    ]
    keys = ("ece_mean", "ece_sd", "ece_low", "ece_high")
    full = [dict.fromkeys(keys, 1.0) | row for row in rows]
    marks = cells(ece_by_split(RunScores(pl.DataFrame(full))))
    assert marks[("a > b", label("set-level"))]["mark"] == "*†"
    assert marks[("a > b", label("ensemble"))]["mark"] == "†"
    assert marks[("a > b", label("regression"))]["mark"] == ""


@pytest.mark.parametrize("name", protocol_names())
def test_bundled_protocols_draw_enough_for_a_dagger(name):
    protocol = load_protocol(name)
    n_others = len(protocol.methods.names) - 1
    n_draws = protocol.evaluation.bootstrap
    assert holm(dict.fromkeys(range(n_others), 2 / (n_draws + 1)))[0]


def test_too_few_draws_for_a_dagger_are_reported():
    scores = printed_splits("office_home")
    frame = scores.frame.with_columns(
        ece_low="ece_mean", ece_high="ece_mean", better_than_source=pl.lit(0.0)
    )
    wanted = (
        "† is given to none: 319 bootstrap resamples are too few for 8 methods, 320"
    )
    for n_bootstrap, expected in ((319, True), (320, False), (None, False)):
        table = ece_by_split(RunScores(frame), n_bootstrap=n_bootstrap)
        assert table.notes[1].startswith(wanted) == expected


def test_asterisks_of_the_printed_table():
    table = paper_table("office_home_ece_ci")
    frame = table.select(
        split=pl.concat_str("source", "target", separator=" > "),
        source="source",
        calibration=pl.lit("rest"),
        target="target",
        seed=pl.lit(0),
        method=pl.col("method").replace_strict(NAMES),
        ece_mean="ece_percent_mean",
        ece_sd=pl.lit(0.5),
        ece_low=pl.col("ece_percent_p2.5").fill_null(pl.col("ece_percent_mean")),
        ece_high=pl.col("ece_percent_p97.5").fill_null(pl.col("ece_percent_mean")),
        better_than_source=pl.lit(0.0),
    )
    marks = cells(ece_by_split(RunScores(frame), Published("office_home")))
    printed = zip(frame.iter_rows(named=True), table["significant"], strict=True)
    differing = {
        (row["split"], row["method"])
        for row, starred in printed
        if starred is not None
        and bool(starred) != (marks[row["split"], label(row["method"])]["mark"] == "*")
    }
    # These satisfy the rule and are printed without a star.
    assert differing == {
        ("Product > Clipart", "ensemble"),
        ("Clipart > Art", "ensemble"),
        ("Product > Art", "ensemble"),
    }
    assert {
        (row["split"], row["method"])
        for row, starred in zip(
            frame.iter_rows(named=True), table["significant"], strict=True
        )
        if starred
    } == {
        (split, NAMES_BY_LABEL[column.removesuffix(", paper")])
        for (split, column), cell in marks.items()
        if column.endswith(", paper") and cell["mark"] == "*"
    }
    counted = cells(asterisks(RunScores(frame), Published("office_home")))
    for method, ours, printed_stars in (
        ("set-level", 5, 5),
        ("nearest-cluster", 4, 4),
        ("regression", 4, 4),
        ("ensemble", 4, 1),
    ):
        row = label(method)
        assert counted[row, "splits"]["value"] == ours
        assert counted[row, "paper"]["value"] == printed_stars
        assert counted[row, "of"]["value"] == 12


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([2.0, 3.0, 4.0, 3.0], "yes"),
        ([-2.0, -3.0, -4.0, -3.0], "no"),
        ([2.0, -3.0, 4.0, -3.0], "no difference beyond chance"),
        ([2.0], "no difference beyond chance"),
    ],
)
def test_whether_mldg_helps(gains, verdict):
    def scores(change):
        rows = [
            {
                "split": f"s{i}",
                "seed": seed,
                "method": "uncalibrated",
                "ece_mean": 20.0 - change * gain,
                "accuracy": 50.0 + change * gain,
            }
            for i, gain in enumerate(gains)
            for seed in (0, 1)
        ]
        return RunScores(pl.DataFrame(rows))

    found = cells(does_it_help(scores(0), scores(1)))
    for row in ("accuracy (%)", "ECE (%), uncalibrated"):
        assert found[row, "does it help?"]["mark"] == verdict
        assert found[row, "better splits"]["value"] == sum(g > 0 for g in gains)
        assert found[row, "of"]["value"] == len(gains)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from small_world import DOMAINS, make_archive

    folder = tmp_path_factory.mktemp("tables")
    for number, name in enumerate(DOMAINS):
        path = folder / f"source={name}.safetensors"
        make_archive(n_rows=80, random_state=number).save(path)
    protocol = Protocol.model_validate(protocol_content(folder, seeds=[0, 1]))
    return run_sweep(protocol, folder, jobs=1).run


@pytest.mark.parametrize("method", ["ensemble", "set-level", "source-only"])
def test_a_method_that_failed_on_a_target_leaves_a_gap(run, tmp_path, method):
    copy = shutil.copytree(run, tmp_path / "run")
    results = read_table(copy, "results")
    target = results["target"][0]
    gone = (pl.col("target") == target) & (pl.col("method") == method)
    results.filter(~gone).write_parquet(copy / "results.parquet")
    tables = {table.name: table for table in all_tables(copy)}
    assert cells(tables["by-target"])[label(method), target]["value"] is None
    write_pages(copy, list(tables.values()))
    assert answers(copy)
    page = summary._section(copy)
    assert "nan" not in page
    if method != "source-only":
        beats = f"{label(method)} lowers the ECE against Source-only"
        assert re.search(rf"{beats} \(.* of 9 splits\)", page)


def test_every_table_in_every_format(run, tmp_path):
    names = {table.name for table in all_tables(run)}
    assert names == {
        "summary",
        "by-target",
        "by-split",
        "gain",
        "improvement-ratio",
        "sigma-counts",
        "harm",
        "harm-by-split",
        "accuracy",
        "sensitivity",
        "shift",
        "runtimes",
        "estimators",
    }
    for form, ending in {"markdown": "md", "latex": "tex", "csv": "csv"}.items():
        paths = write_tables(all_tables(run), tmp_path, form)
        assert {path.suffix for path in paths} == {f".{ending}"}
        assert all(path.read_text().strip() for path in paths)


def test_csv_holds_the_numbers_of_the_page(run):
    table = next(table for table in all_tables(run) if table.name == "by-target")
    csv = pl.read_csv(render_table(table, "csv").encode())
    page = render_table(table, "markdown")
    first = csv.row(0, named=True)
    assert f"{first['value']:.2f} ± {first['sd']:.2f}" in page
    with pytest.raises(ValueError, match="wanted one of markdown, latex, csv"):
        render_table(table, "word")


def test_latex_escapes_what_latex_would_read(run):
    table = next(table for table in all_tables(run) if table.name == "by-split")
    text = render_table(table, "latex")
    assert r"\%" in text
    assert r"$\rightarrow$" in text
    assert " % " not in text


def test_latex_has_label_rules_and_the_best_in_bold(run):
    for table in all_tables(run):
        text = render_table(table, "latex")
        assert text.count(f"\\label{{tab:{table.name}}}") == 1
        for rule in ("\\toprule", "\\midrule", "\\bottomrule"):
            assert text.count(rule) == 1
        assert "\\hline" not in text
    summary, by_split = (named(run, name) for name in ("summary", "by-split"))
    found = cells(summary)
    ece = {row: cell["value"] for (row, c), cell in found.items() if c == "ECE"}
    usable = {name: value for name, value in ece.items() if "oracle" not in name}
    best = min(usable, key=lambda name: ece[name])
    bold = {row for row, column in summary.bold if column == "ECE"}
    # Methods that fall back to the same temperature share the place.
    assert bold == {name for name, value in usable.items() if value == ece[best]}
    assert "Uncalibrated" not in bold
    assert rf"\textbf{{{ece[best]:.2f} $\pm$" in render_table(summary, "latex")
    assert {row for row, _ in by_split.bold} == set(by_split.cells["row"])
    assert not any("oracle" in column for _, column in by_split.bold)


def named(run, name):
    return next(table for table in all_tables(run) if table.name == name)


def test_summary_tells_the_spread_over_seeds(run):
    from coolhead.lab.results import read_table

    frame = read_table(run, "results").filter(
        pl.col("method") == "set-level", pl.col("metric") == "ece_mean"
    )
    first, second = (
        100 * frame.filter(pl.col("seed") == seed)["value"].mean() for seed in (0, 1)
    )
    cell = cells(named(run, "summary"))["Set-level", "ECE"]
    assert cell["value"] == pytest.approx((first + second) / 2)
    assert cell["sd"] == pytest.approx(abs(first - second) / 2**0.5)


def test_comparisons_are_no_arrows_in_latex(run):
    text = render_table(named(run, "harm"), "latex")
    assert r"worse by $>$ 1 point" in text and r"worse by $\rightarrow$" not in text


def test_schema_is_what_the_files_hold(run):
    from coolhead.lab.results import read_table

    for name, columns in TABLES.items():
        assert read_table(run, name).columns == [*KEY_COLUMNS, *columns]


def test_figures_are_written(run):
    from coolhead.lab.figures import write_figures

    paths = write_figures(run)
    assert len(paths) == 2
    assert all(path.read_text().lstrip().startswith("<?xml") for path in paths)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is it the folder of a run"):
        all_tables(tmp_path)
