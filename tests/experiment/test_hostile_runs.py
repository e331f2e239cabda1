"""Names that command terminals, spreadsheets or folders; files that were damaged."""

import json
import shutil

import polars as pl
import pytest
from small_world import make_archive, protocol_content, write_toml

from coolhead.cli.terminal import print_pairs
from coolhead.lab.figures import write_figures
from coolhead.lab.protocol import Protocol
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.report import write_report
from coolhead.lab.results import table_path
from coolhead.lab.sweep import run_sweep
from coolhead.lab.tables.all_tables import all_tables, write_tables
from coolhead.report.tables import Table, TableBuilder, render_table

NAMES = ("$0_to_$10", "[/red]x", "\x1b[31mred\x07", "=HYPERLINK(1)")


def hostile_protocol(folder):
    path = folder / "features.safetensors"
    make_archive(n_rows=60, domain_names=NAMES, logits=None).save(path)
    roles = {"domains": list(NAMES), "source": 1, "calibration": 2, "target": 1}
    names = ["uncalibrated", "set-level", "nearest-cluster"]
    content = protocol_content(
        folder, roles=roles, methods={"names": names, "clusters": 3}
    )
    content["data"] = {"kind": "archive", "path": str(path)}
    return content | {"classifiers": {"plain": {"kind": "logistic"}}}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    protocol = Protocol.model_validate(hostile_protocol(folder))
    return run_sweep(protocol, folder, jobs=1).run


def test_dollars_are_no_mathematics(hostile):
    figures = {path.name: path for path in write_figures(hostile)}
    for path in (figures["plain-ece.svg"], write_report(hostile)):
        assert "$0_to_$10" in path.read_text()


def test_splits_and_tables_cannot_command_the_terminal(hostile, tmp_path, command):
    content = hostile_protocol(tmp_path)
    content["classifiers.plain"] = content.pop("classifiers")["plain"]
    toml = write_toml(tmp_path / "p.toml", content)
    for words in (("splits", toml), ("tables", hostile)):
        code, shown, err = command(*words)
        assert (code, err) == (0, "")
        assert "[/red]x" in shown and r"\x1b[31mred\x07" in shown
        assert "\x1b" not in shown and "\x07" not in shown


def test_complaints_and_pairs_cannot_either(command, capsys):
    _, _, err = command("splits", "no\x1b[2Jsuch")
    assert r"no\x1b[2Jsuch" in err and "\x1b" not in err
    print_pairs({"name": "\x1b[2J"})
    assert capsys.readouterr().out == "name  \\x1b[2J\n"


def test_a_spreadsheet_computes_nothing(hostile, tmp_path):
    from coolhead.lab.results import write_results_csv

    write_results_csv(hostile)
    written = write_tables(all_tables(hostile), tmp_path, "csv")
    for path in [hostile / "results.csv", *written]:
        frame = pl.read_csv(path, infer_schema=False)
        texts = [
            text
            for name, column in zip(frame.columns, frame, strict=True)
            if name not in ("value", "sd", "low", "high")
            for text in [name, *column.drop_nulls()]
        ]
        assert not [text for text in texts if text.startswith(tuple("=+-@\t"))]
    assert "'=HYPERLINK(1)" in (hostile / "results.csv").read_text()


def test_a_classifier_stays_in_its_folder(tmp_path):
    content = protocol_content(tmp_path)
    content["data"] = {"kind": "bundled", "dataset": "digits"}
    content['classifiers."../../x"'] = {"kind": "mlp"}
    path = write_toml(tmp_path / "p.toml", content)
    with pytest.raises(ValueError, match=r"'\.\./\.\./x' is no name of a classifier"):
        load_protocol(path)
    cells = TableBuilder()
    cells.add("row", "column", 1.0)
    folder = tmp_path / "deep" / "tables"
    (written,) = write_tables([Table("../../x", "T", cells.frame())], folder, "csv")
    assert written.parent == folder and not (tmp_path / "x.csv").exists()


def test_latex_labels_are_plain(hostile):
    for table in all_tables(hostile):
        assert f"\\label{{tab:{table.name}}}" in render_table(table, "latex")


def small_run(folder):
    for name in ("north", "east", "south", "west"):
        make_archive(n_rows=60).save(folder / f"source={name}.safetensors")
    methods = {"names": ["uncalibrated", "set-level"], "clusters": 3}
    protocol = Protocol.model_validate(protocol_content(folder, methods=methods))
    return protocol, run_sweep(protocol, folder, jobs=1)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"protocol": {}, "versions": {}}', "\xff"]
)
def test_a_damaged_record_is_named(hostile, tmp_path, command, content):
    (tmp_path / "run.json").write_text(content, encoding="latin-1")
    table_path(tmp_path, "results").write_bytes(
        table_path(hostile, "results").read_bytes()
    )
    for name in ("report", "tables"):
        code, _, err = command(name, tmp_path)
        assert code == 1 and f"{tmp_path / 'run.json'} is damaged" in err


@pytest.mark.parametrize("place", ["seeds", "roles", "evaluation"])
def test_what_a_record_lacks_is_named(hostile, tmp_path, command, place):
    record = json.loads((hostile / "run.json").read_text())
    del record["protocol"][place]
    (tmp_path / "run.json").write_text(json.dumps(record))
    table_path(tmp_path, "results").write_bytes(
        table_path(hostile, "results").read_bytes()
    )
    for name in ("report", "tables"):
        code, _, err = command(name, tmp_path)
        assert code == 1 and f"is damaged: it has no protocol.{place}" in err


def test_damaged_results_are_named(hostile, tmp_path, command):
    (tmp_path / "run.json").write_bytes((hostile / "run.json").read_bytes())
    results = table_path(tmp_path, "results")
    whole = table_path(hostile, "results").read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2]):
        results.write_bytes(content)
        code, _, err = command("tables", tmp_path)
        assert code == 1 and f"{results} is damaged" in err
    pl.DataFrame({"a": [1]}).write_parquet(results)
    code, _, err = command("report", tmp_path)
    assert code == 1 and f"{results} is damaged: it has no column experiment" in err


@pytest.mark.parametrize("name", ["results", "reliability", "status"])
def test_tables_of_other_types_are_named(hostile, tmp_path, command, name):
    run = tmp_path / "run"
    shutil.copytree(hostile, run)
    path = table_path(run, name)
    whole = pl.read_parquet(path)
    whole.with_columns(pl.all().cast(pl.String)).write_parquet(path)
    code, _, err = command("report", run)
    assert code == 1 and f"{path} is damaged: seed holds String, not Int64" in err
    whole.with_columns(pl.col("split").shift(1)).write_parquet(path)
    code, _, err = command("report", run)
    assert code == 1 and f"{path} is damaged: split is empty in some row" in err


def test_a_damaged_cell_is_computed_again(tmp_path):
    protocol, first = small_run(tmp_path)
    whole = table_path(first.run, "results").read_bytes()
    paths = sorted(p for p in (first.run / "cells").iterdir() if p.suffix == ".json")
    cells = [path for path in paths if not path.name.endswith(".runtimes.json")]
    cells[0].write_bytes(cells[0].read_bytes()[:100])
    cells[1].write_text("[]")
    cells[2].write_bytes(cells[3].read_bytes())
    cells[4].with_suffix(".runtimes.json").unlink()
    cells[5].write_text(json.dumps({"key": {}, "tables": {}}))
    again = run_sweep(protocol, tmp_path, jobs=1)
    assert (again.n_found, again.n_failed) == (7, 0)
    assert table_path(again.run, "results").read_bytes() == whole
