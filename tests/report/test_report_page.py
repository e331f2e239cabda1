"""The page as text: what it says, and what it says when something is missing."""

import json
import re
from base64 import b64decode
from html.parser import HTMLParser

import polars as pl
import pytest
from synthetic_run import FEW_METHODS, write_run

import coolhead as ch
from coolhead.evaluate import evaluate_domains
from coolhead.lab.figures import write_figures
from coolhead.lab.report import write_report
from coolhead.lab.results import read_table, table_path
from coolhead.lab.tables.all_tables import all_tables
from coolhead.report.answer import VERDICTS, domain_verdicts
from coolhead.report.tables import RunScores, render_table


class Text(HTMLParser):
    """Collects the tags and the visible text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.parts, self.skip = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.skip += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.skip -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.skip:
            self.parts.append(data)


def visible(page):
    parser = Text()
    parser.feed(page)
    return " ".join(" ".join(parser.parts).split())  # also the no-break spaces


def tags(page, name):
    parser = Text()
    parser.feed(page)
    return [attributes for tag, attributes in parser.tags if tag == name]


def report(run):
    return visible(write_report(run).read_text(encoding="utf-8"))


def test_it_lies_in_the_run_or_where_it_is_wanted(made, tmp_path):
    assert write_report(made) == made / "report.html"
    assert write_report(made, tmp_path / "r.html").read_text().endswith("</html>")


def test_the_same_run_gives_the_same_page(made, page, tmp_path):
    assert write_report(made, tmp_path / "again.html").read_text() == page


def test_the_answer_comes_first(page):
    text = visible(page)
    assert "Use Set-level: over 6 splits" in text
    assert text.index("Use Set-level") < text.index("Where it helps")
    assert "makes it worse in none of them" in text
    assert "TemperatureScaling, fitted on labelled rows of: calibration" in text


def test_nothing_is_fetched(page):
    for name in ("link", "script", "img", "iframe", "a", "use", "image"):
        for attributes in tags(page, name):
            for key in ("src", "href", "xlink:href"):
                value = attributes.get(key, "") or ""
                assert value.startswith(("data:", "#")) or not value
    assert "@import" not in page
    assert set(re.findall(r"url\((.)", page)) == {"#"}


def test_names_of_users_are_text(page):
    assert len(tags(page, "script")) == 1
    assert not tags(page, "b") or "<b>three" not in page
    assert "<script>alert" not in page
    assert "amazon > <script>alert(1)</script>" in visible(page)
    assert "amazon > 写真 $x_{" in visible(page)


def test_reliability_diagrams_are_small_and_complete(page):
    panels = re.findall(r'<svg class="panel".*?</svg>', page, flags=re.DOTALL)
    assert len(panels) == 6 * len(FEW_METHODS)
    assert max(len(panel.encode()) for panel in panels) <= 2048
    for panel in panels:
        for part in ("bar", "over", "under", "diagonal", "count"):
            assert f'class="{part}"' in panel
        assert re.search(r"ECE [\d.]+ %, noise [\d.]+ %, 400 rows", panel)


def test_every_picture_says_what_it_shows(page):
    """A drawing is hidden from screen readers, or is an image with words for them."""
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) > 40
    for drawing in drawings:
        words = re.search(r"<title>(.+?)</title>", drawing)
        head = drawing[: drawing.index(">")]
        assert 'aria-hidden="true"' in head or ('role="img"' in head and words)
    titles = re.findall(r"<title>(.+?)</title>", " ".join(drawings))
    assert any("% before" in title for title in titles)
    assert any("medians: Source-only 1.60" in title for title in titles)
    assert all(picture.get("alt") for picture in tags(page, "img"))


def test_numbers_of_a_panel_stand_above_its_bars(page):
    for panel in re.findall(r'<svg class="panel".*?</svg>', page, flags=re.DOTALL):
        places = re.findall(r'<text x="[\d-]+" y="(-?\d+)" class="(?:big|end)">', panel)
        top = re.search(r'viewBox="\S+ (-?\d+) ', panel)
        assert top and all(int(top[1]) < int(y) < 0 for y in places[:2])
        assert "noise" in panel


def test_csv_links_hold_the_tables(made, page):
    links = [a for a in tags(page, "a") if a.get("class") == "csv"]
    names = [a["download"] for a in links]
    for table in all_tables(made):
        link = links[names.index(f"{table.name}.csv")]
        text = b64decode(link["href"].split(",", 1)[1]).decode()
        assert text == render_table(table, "csv") + "\n"


def test_every_table_is_there_without_script(made, page):
    text = visible(page)
    for table in all_tables(made):
        assert table.title in text
    ece = read_table(made, "results").filter(
        pl.col("method") == "ensemble", pl.col("metric") == "ece_mean"
    )
    for value in ece["value"]:
        assert f"{100 * value:.2f}" in text


def test_sections_for_shift_examples_and_record(page):
    text = visible(page)
    assert "weights unreliable" in text
    assert "much of the target lies outside" in text
    assert "25 % outside" in text
    assert "8 clusters asked, 7 found" in text
    assert "coolhead sweep made.toml" in text and "1234567" in text
    pictures = [a["src"] for a in tags(page, "img")]
    assert len(pictures) == 6
    assert b64decode(pictures[0].split(",")[1]).startswith(b"\x89PNG")


def test_the_new_domain_is_described_and_drawn(made, page):
    section = page[page.index("<h2>In a new domain</h2>") :]
    section = section[: section.index("</section>")]
    held = "the 90\N{NO-BREAK SPACE}% interval held the truth in"
    assert f"Auto: {held} 5 of 6 (83\N{NO-BREAK SPACE}%)" in section
    assert f"Auto + batch + 20 labels: {held} 6 of 6" in section
    assert "was off by 2.0 points" in section
    for name in ("expected_accuracy", "error_by_labels"):
        assert f'class="figure {name}"' in section
    (table,) = [t for t in all_tables(made) if t.name == "new-domain"]
    cells = {(c["row"], c["column"]): c for c in table.cells.iter_rows(named=True)}
    assert cells["Auto", "90 % interval covers"]["value"] == pytest.approx(500 / 6)
    assert cells["Plain scaling, 20 labels", "of target"]["mark"] == "20 labels"


def test_a_run_of_version_0_2_has_its_section_on_new_domains(tmp_path):
    run = write_run(tmp_path / "run")
    path = table_path(run, "adaptation")
    path.rename(path.with_name("arrival.parquet"))
    assert "In a new domain" in report(run)


def test_failed_cells_stand_in_place_of_figures(tmp_path):
    failures = [
        ("nyt", "amazon", "*", "ValueError: no rows are left of amazon"),
        ("amazon", "movies", "ensemble", "RuntimeError: did not converge"),
    ]
    run = write_run(tmp_path / "run", splits=[("amazon", "movies")], failures=failures)
    results = table_path(run, "results")
    frame = pl.read_parquet(results).filter(pl.col("method") != "ensemble")
    frame.write_parquet(results)
    text = report(run)
    assert "2 failures" in text
    assert "Never ran, and therefore in no figure: Ensemble" in text
    assert "Failed, whole cell: ValueError: no rows are left of amazon" in text
    assert "nyt > amazon" in text


def test_some_methods_failed_in_some_splits(tmp_path):
    run = write_run(tmp_path / "run")
    path = table_path(run, "results")
    lost = (pl.col("split") == "movies > amazon") & (pl.col("method") == "set-level")
    pl.read_parquet(path).filter(~lost).write_parquet(path)
    text = report(run)
    assert "Use Ensemble" in text  # Set-level has a gap: it does not compete.


def test_dollars_in_names_are_no_mathematics(tmp_path):
    """Two of them would enclose a formula, which this one is not."""
    run = write_run(tmp_path / "run", ("amazon", "$0_to_$10"))
    assert "amazon > $0_to_$10" in report(run)
    for path in write_figures(run):
        text = path.read_text(encoding="utf-8")
        assert "<title>" in text and ("$0_to_$10" in text) == ("ece" in path.name)


def test_figures_of_a_run_with_methods_of_its_own_only(tmp_path):
    run = write_run(tmp_path / "run", methods=("md-ts", "ensemble+source"))
    assert "MD-TS" in write_figures(run)[0].read_text(encoding="utf-8")


def test_one_split(tmp_path):
    run = write_run(tmp_path / "run", splits=[("amazon", "nyt")])
    text = report(run)
    assert "over 1 split it takes" in text
    assert "The interval is the paired bootstrap over rows." in text
    assert "Mean ECE of each target" not in text  # one target has no shape


def test_a_method_that_never_ran(tmp_path):
    run = write_run(tmp_path / "run", planned=(*FEW_METHODS, "transcal"))
    assert "Never ran, and therefore in no figure: TransCal" in report(run)


def test_a_target_without_rows(tmp_path):
    run = write_run(tmp_path / "run")
    path = table_path(run, "results")
    frame = pl.read_parquet(path)
    empty = pl.col("split") == "movies > amazon"
    count = empty & (pl.col("metric") == "n_evaluated")
    value = pl.when(count).then(0.0).when(empty).then(float("nan")).otherwise("value")
    frame.with_columns(value=value).write_parquet(path)
    text = report(run)
    assert "The target has no rows in: movies > amazon" in text
    assert "over 5 splits" in text


def test_no_cell_finished(tmp_path):
    failures = [("amazon", "nyt", "*", "ValueError: bad data")]
    run = write_run(tmp_path / "run", failures=failures)
    for name in ("results", "reliability", "histogram", "selective", "map", "shift"):
        frame = read_table(run, name)
        frame.head(0).write_parquet(table_path(run, name))
    text = report(run)
    assert "every cell failed" in text and "ValueError: bad data" in text


def test_without_features_the_map_says_so(tmp_path):
    run = write_run(tmp_path / "run")
    for name in ("map", "shift"):
        read_table(run, name).head(0).write_parquet(table_path(run, name))
    assert "No map and no shift diagnostics: the rows have no features" in report(run)


def test_without_an_uncalibrated_classifier(tmp_path):
    run = write_run(tmp_path / "run", methods=("source-only", "set-level"))
    assert "The uncalibrated classifier is not among the results" in report(run)


def test_a_run_of_before_the_examples(tmp_path):
    run = write_run(tmp_path / "run")
    table_path(run, "examples").unlink()
    assert "The most confident mistakes" not in report(run)


def test_an_order_of_domains_is_explained_where_there_is_one(made, tmp_path):
    run = write_run(tmp_path / "run", ("a", "b", "c"))
    assert "drawn to photographed" not in report(run)
    assert "U shape" not in report(run)
    place = run / "run.json"
    record = json.loads(place.read_text())
    record["protocol"]["order"] = "from drawn to photographed"
    place.write_text(json.dumps(record))
    text = report(run)
    assert "The domains run from drawn to photographed." in text


def test_not_the_folder_of_a_run(tmp_path):
    with pytest.raises(ValueError, match=r"run\.json"):
        write_report(tmp_path)


def test_command(made, tmp_path, command):
    out = tmp_path / "r.html"
    code, shown, _ = command("report", made, "--out", out, "--json")
    assert code == 0
    assert json.loads(shown) == {"report": str(out), "bytes": out.stat().st_size}
    assert command("report", made, "--out", out)[1] == f"{out}\n"


def test_command_on_a_wrong_folder(tmp_path, command):
    code, _, complaint = command("report", tmp_path)
    assert code == 1
    assert "run.json" in complaint


def test_evaluation_report(tmp_path, npz, command):
    calibrator, out = tmp_path / "cal.skops", tmp_path / "r.html"
    domains = "--calibrate-on", "clipart,product"
    command("fit", npz, "--out", calibrator, "--method", "set-level", *domains)
    code, shown, _ = command("evaluate", calibrator, npz, "--report", out, "--json")
    assert code == 0
    lines = {line["domain"]: line for line in json.loads(shown)["domains"]}
    text = visible(out.read_text(encoding="utf-8"))
    assert "over 1 unseen domain" in text and "Set-level" in text
    real = lines["real"]["ece_change"]
    assert f"95 % interval {100 * real['low']:+.1f}".replace("-", "−") in text
    for name in ("clipart", "product", "real"):
        before = 100 * lines[name]["ece_before"]["estimate"]
        seen = "" if name == "real" else " (seen)"
        verdict = f"{name}{re.escape(seen)} (?:better|unclear|worse|still [a-z ]+)"
        assert re.search(f"{verdict} {before:.1f} ", text)
        assert f"{before:.2f}" in text  # the table
    # The title names the evaluated file; nothing internal is listed.
    assert f"Calibration of {npz.name}" in text
    assert "source []" not in text and "expected {" not in text


def test_the_domain_of_the_training_is_not_unseen(tmp_path, npz, command):
    calibrator, out = tmp_path / "cal.skops", tmp_path / "r.html"
    fit = "fit", npz, "--out", calibrator, "--calibrate-on", "product"
    command(*fit, "--method", "set-level")
    words = "evaluate", calibrator, npz, "--report", out, "--json"
    code, shown, _ = command(*words, "--source", "clipart")
    assert code == 0
    lines = json.loads(shown)["domains"]
    roles = {line["domain"]: (line["role"], line["seen"]) for line in lines}
    assert roles == {
        "clipart": ("source", True),
        "product": ("calibration", True),
        "real": ("unseen", False),
        "all": ("", None),
    }
    text = visible(out.read_text(encoding="utf-8"))
    assert "over 1 unseen domain" in text and "clipart (source)" in text
    assert "role" in command(*words[:3], "--source", "clipart")[1]


def test_the_calibrator_remembers_where_the_classifier_was_trained(
    tmp_path, npz, command
):
    calibrator = tmp_path / "cal.skops"
    fit = "fit", npz, "--out", calibrator, "--method", "auto"
    assert command(*fit, "--source", "clipart")[0] == 0
    shown = command("evaluate", calibrator, npz, "--json", "--draws", 20)[1]
    roles = [line["role"] for line in json.loads(shown)["domains"]]
    assert roles == ["source", "calibration", "calibration", ""]


def test_metadata_of_other_types_are_survived(tmp_path, npz, command):
    from coolhead.io.calibrators import load_calibrator, read_header, save_calibrator

    calibrator, out = tmp_path / "cal.skops", tmp_path / "r.html"
    command("fit", npz, "--out", calibrator, "--method", "set-level")
    known = read_header(calibrator)["metadata"]
    strange = {"domains": ["clipart"], "source": 3, "file": 5, "method": ["x"]}
    fitted = load_calibrator(calibrator)
    save_calibrator(fitted, calibrator, metadata=known | strange)
    code, _, err = command("evaluate", calibrator, npz, "--report", out)
    assert (code, err) == (0, "")


def test_evaluation_report_of_a_method_that_changes_scores(tmp_path, npz, command):
    calibrator, out = tmp_path / "cal.skops", tmp_path / "r.html"
    command("fit", npz, "--out", calibrator, "--method", "vector")
    assert command("evaluate", calibrator, npz, "--report", out)[0] == 0
    assert "Vector scaling" in visible(out.read_text(encoding="utf-8"))


def test_verdicts_on_domains():
    """Each of the four, by the interval of the change and the distance from noise."""
    rows = {
        "better": (30, 8, -25, -15),
        "unclear": (8, 7, -4, 2),
        "worse": (5, 9, 1, 6),
        "still not trustworthy": (40, 25, -20, -10),
    }
    keys = {"calibration": "c", "seed": 0, "ece_null": 2.0, "n_evaluated": 500.0}
    frame = pl.DataFrame(
        [
            keys
            | {"split": name, "target": name, "method": method, "ece_mean": float(ece)}
            | {"ece_vs_uncalibrated_low": low, "ece_vs_uncalibrated_high": high}
            | {"ece_vs_uncalibrated": float(after - before)}
            for name, (before, after, low, high) in rows.items()
            for method, ece in (("uncalibrated", before), ("set-level", after))
        ]
    )
    found = domain_verdicts(RunScores(frame), "set-level")
    assert [row["split"] for row in found] == [row["verdict"] for row in found]
    assert [row["verdict"] for row in found] == list(VERDICTS)


def test_plain_names_stand_beside_the_papers(page):
    text = visible(page)
    assert "Set-level: one temperature for all calibration domains" in text
    assert "Ensemble mean of set-level, nearest cluster and regression" in text


def test_small_counts_are_grey_and_estimates_beyond_their_interval_explained(tmp_path):
    data = ch.datasets.simulate_domains([1.0, 1.5], n_rows=60)
    cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    lines = evaluate_domains(cal, data, n_draws=100)
    assert any(
        not line.ece_after.low <= line.ece_after.estimate <= line.ece_after.high
        for line in lines
    )
    out = tmp_path / "page.html"
    ch.report.write_evaluation_report(out, cal, data, lines, {}, name="sites.csv")
    page = out.read_text(encoding="utf-8")
    assert page.count('<tr class="few">') == 2
    text = visible(page)
    assert "Calibration of sites.csv" in text
    assert "an estimate may lie outside its own interval" in text
