"""Images become tables by one command, which can be stopped at any step."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from small_tree import DOMAINS, N_PER_CLASS, PROTOCOL, TRAINING, copy_tree, reproduce

from coolhead.io.reading import load_archive
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.record import read_run_record
from coolhead.lab.reproduce import Ledger, Recipe, title_by_network
from coolhead.lab.results import read_table


def test_frozen_features_become_tables(run, protocol, tree, tmp_path):
    runs = tmp_path / "runs"
    code, said, complaint = reproduce(run, protocol, tree, runs)
    assert code == 0, complaint
    assert "0 of 1 steps are done" in said
    assert "to do: features" in said
    assert "12 of 12 cells done" in said
    assert "What it took" in said
    assert (runs / "small" / "tables" / "summary.csv").is_file()
    record = json.loads((runs / "small" / "run.json").read_text())
    assert record["protocol"]["title"] == "A small tree, frozen tiny"
    report = (runs / "small" / "report.html").read_text("utf-8")
    assert "<h1>A small tree, frozen tiny</h1>" in report
    made = (runs / "small" / "features.safetensors").stat().st_mtime_ns
    code, said, _ = reproduce(run, protocol, tree, runs)
    assert code == 0
    assert "1 of 1 steps are done" in said
    assert (runs / "small" / "features.safetensors").stat().st_mtime_ns == made


def test_finetuned_networks_are_swept_with_their_own_division(
    run, protocol, tree, tmp_path
):
    runs = tmp_path / "runs"
    code, said, complaint = reproduce(run, protocol, tree, runs, *TRAINING)
    assert code == 0, complaint
    assert "cannot be checked" not in said
    folder = runs / "small-finetuned"
    archives = sorted((folder / "trained").glob("*-0.safetensors"))
    assert [path.name for path in archives] == sorted(
        f"{name}-0.safetensors" for name in DOMAINS
    )
    for path in archives:
        archive = load_archive(path)
        assert archive.logits.shape == (2 * N_PER_CLASS * len(DOMAINS), 2)
        assert archive.metadata["division"]["small"] == 0.4
        assert archive.metadata["extraction"]["transform"]["size"] == 34
    assert len(read_table(folder, "results")) > 0
    ledger = Ledger(folder / "steps.json")
    assert set(ledger.entries) == {f"{name}, seed 0" for name in DOMAINS} | {"sweep"}
    assert all(entry["cpu_seconds"] > 0 for entry in ledger.entries.values())


def test_a_stopped_run_goes_on(run, protocol, tree, tmp_path, monkeypatch):
    from coolhead.lab.images import finetuning as finetuned

    runs, done = tmp_path / "runs", []
    work = finetuned.finetune

    def stops_at_the_second(images, backbone, source, *rest, **options):
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(source)
        return work(images, backbone, source, *rest, **options)

    monkeypatch.setattr(finetuned, "finetune", stops_at_the_second)
    assert reproduce(run, protocol, tree, runs, *TRAINING)[0] == 130
    monkeypatch.setattr(finetuned, "finetune", work)
    code, said, complaint = reproduce(run, protocol, tree, runs, *TRAINING, "--plan")
    assert code == 0, complaint
    assert "1 of 4 steps are done" in said
    assert not (runs / "small-finetuned" / "tables").exists()
    code, said, complaint = reproduce(run, protocol, tree, runs, *TRAINING)
    assert code == 0, complaint
    whole = tmp_path / "whole"
    assert reproduce(run, protocol, tree, whole, *TRAINING)[0] == 0
    for name in DOMAINS:
        place = Path("small-finetuned") / "trained" / f"{name}-0.safetensors"
        assert (runs / place).read_bytes() == (whole / place).read_bytes()


@pytest.mark.parametrize("more", [(), TRAINING])
def test_official_lists_train_and_test_apart(run, tree, tmp_path, more):
    protocol = tmp_path / "lists.toml"
    protocol.write_text(
        PROTOCOL.format(train_path='train_path = "nowhere-train.safetensors"')
    )
    code, _, complaint = reproduce(run, protocol, tree, tmp_path / "none", *more)
    assert code == 1
    assert "has no DOMAIN_train.txt and DOMAIN_test.txt" in complaint
    root = tmp_path / "lists"
    copy_tree(tree, root, DOMAINS, lists=True)
    code, said, complaint = reproduce(run, protocol, root, tmp_path / "runs", *more)
    assert code == 0, complaint
    assert "cannot be checked" not in said
    kept = tmp_path / "runs" / "small"
    if more:
        path = Path(f"{kept}-finetuned") / "trained" / "photo-0.safetensors"
        assert len(load_archive(path)) == 8 * 2 * len(DOMAINS)
        return
    assert len(load_archive(kept / "features.safetensors")) == 8 * 2 * len(DOMAINS)
    assert len(load_archive(kept / "train-features.safetensors")) == 4 * 2 * 4


@pytest.mark.parametrize(
    ("name", "n_cells"),
    [pytest.param("domainnet", 60, marks=pytest.mark.long), ("pacs", 12)],
)
def test_bundled_protocols_take_trees_as_published(run, tree, tmp_path, name, n_cells):
    protocol = load_protocol(name)
    root = tmp_path / "images"
    copy_tree(tree, root, protocol.roles.domains, lists=name == "domainnet")
    few = ("methods.names=['uncalibrated','set-level']", "methods.sensitivity=[]")
    small = ("division.small=0.4", "evaluation.size=5", "evaluation.draws=5")
    short = ("evaluation.bootstrap=5", "classifiers.mlp.epochs=1")
    settings = [part for s in (*few, *small, *short) for part in ("--set", s)]
    folder = tmp_path / "runs"
    code, said, complaint = reproduce(
        run, name, root, folder, "--seeds", "0", *settings
    )
    assert code == 0, complaint
    assert f"{n_cells} of {n_cells} cells done" in said
    title = f"{protocol.title.partition(':')[0]}, frozen tiny"
    assert read_run_record(folder / name)["protocol"]["title"] == title


@pytest.mark.parametrize(
    ("backbone", "finetune", "network"),
    [
        ("efficientnet-lite0", None, "frozen EfficientNet-Lite0"),
        ("timm:resnet50", {}, "fine-tuned ResNet50"),
        ("torchvision:resnet18", None, "frozen ResNet18"),
        ("python:module:own_net", {}, "fine-tuned own_net"),
    ],
)
def test_a_title_tells_the_network(backbone, finetune, network):
    recipe = Recipe(backbone, finetune=finetune)
    titles = ("Office-Home: 12 splits", "Office-Home")
    for title in titles:
        assert title_by_network(title, recipe) == f"Office-Home, {network}"


def test_a_given_title_stays(run, protocol, tree, tmp_path):
    more = ("--set", "title=Mine: all of it", "--set", "methods.names=['uncalibrated']")
    assert reproduce(run, protocol, tree, tmp_path, *more)[0] == 0
    record = json.loads((tmp_path / "small" / "run.json").read_text())
    assert record["protocol"]["title"] == "Mine: all of it"


@pytest.mark.parametrize("more", [(), TRAINING])
def test_killed_between_the_file_and_the_word_that_it_is_finished(
    run, protocol, tree, tmp_path, monkeypatch, more
):
    note = Ledger._note

    def killed(self, name, identity, finished, *rest):
        if finished:
            raise KeyboardInterrupt
        note(self, name, identity, finished, *rest)

    monkeypatch.setattr(Ledger, "_note", killed)
    assert reproduce(run, protocol, tree, tmp_path, *more)[0] == 130
    monkeypatch.setattr(Ledger, "_note", note)
    made = next(tmp_path.rglob("*.safetensors")).stat().st_mtime_ns
    code, said, complaint = reproduce(run, protocol, tree, tmp_path, *more, "--plan")
    assert code == 0, complaint
    assert f"1 of {4 if more else 1} steps are done" in said
    assert next(tmp_path.rglob("*.safetensors")).stat().st_mtime_ns == made


def test_other_settings_are_not_mixed_in(run, protocol, tree, tmp_path):
    runs = tmp_path / "runs"
    assert reproduce(run, protocol, tree, runs)[0] == 0
    code, _, complaint = reproduce(run, protocol, tree, runs, "--size", 34)
    assert code == 1
    assert "was not made from these images with these settings" in complaint


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--epochs", 3), "--epochs is of training the network: add --finetune"),
        (("--set", "roles.domains=['a','b','c','d']"), "wants a, b, c, d too"),
        (("--images", "/dev/null"), "wanted a folder"),
        (("--seeds", "one"), "--seeds is 'one'"),
    ],
)
def test_mistakes_are_found_before_the_work(
    run, protocol, tree, tmp_path, more, complaint
):
    code, _, said = reproduce(run, protocol, tree, tmp_path / "runs", *more)
    assert code == 1
    assert complaint in said
    assert not (tmp_path / "runs").exists()


def test_a_damaged_ledger_is_named(tmp_path):
    path = tmp_path / "steps.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"steps\.json is damaged: delete it"):
        Ledger(path)


def test_time_counts_on_over_interruptions(tmp_path):
    path = tmp_path / "steps.json"
    with pytest.raises(RuntimeError), Ledger(path).timed("a", "x"):
        raise RuntimeError
    first = json.loads(path.read_text())["a"]
    assert not first["finished"]
    with Ledger(path).timed("a", "x"):
        pass
    second = json.loads(path.read_text())["a"]
    assert second["finished"]
    assert second["seconds"] >= first["seconds"]
