"""Protocols: strict files, the right splits."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from small_world import protocol_content, write_toml

from coolhead.lab.plan import make_splits
from coolhead.lab.protocol import EvaluationSettings, FormationsData, Methods, Protocol
from coolhead.lab.protocol_files import load_protocol, protocol_names

COUNTS = {
    "sentiment": 12,
    "digits": 12,
    "office-home": 12,
    "office-home-multi-source": 4,
    "domainnet": 60,
    "pacs": 12,
    "formations": 10,
}


def test_every_bundled_protocol_has_its_splits():
    assert set(protocol_names()) == set(COUNTS)
    for name, count in COUNTS.items():
        assert len(make_splits(load_protocol(name).roles)) == count


def test_settings_of_the_paper():
    office, net = load_protocol("office-home"), load_protocol("domainnet")
    assert (office.methods.clusters, net.methods.clusters) == (8, 9)
    assert (office.evaluation.size, net.evaluation.size) == (1500, 10_000)
    assert (office.division.small, net.division.small) == (0.2, 0.1)
    for protocol in (office, net):
        assert protocol.evaluation.draws == 1000
        assert (protocol.evaluation.bins, protocol.evaluation.other_bins) == (15, 10)
        assert protocol.methods.sensitivity == (2, 4, 8, 16, 32)


def test_every_protocol_compares_published_and_own_weights_and_both_set_levels():
    wanted = {"set-level", "set-level-equal", "transcal", "wts", "cpcs"}
    wanted |= {"transcal-ours", "wts-ours", "cpcs-ours"}
    for name in COUNTS:
        assert wanted <= set(load_protocol(name).methods.names)


def test_an_order_of_domains_is_claimed_where_there_is_one():
    ordered = {name for name in COUNTS if load_protocol(name).order is not None}
    assert ordered == {"office-home", "office-home-multi-source", "domainnet", "pacs"}


def test_classifiers_are_trained_once_per_source_set():
    for name, count in {"office-home": 4, "domainnet": 15}.items():
        splits = make_splits(load_protocol(name).roles)
        assert len({split.source for split in splits}) == count


def test_roles_never_overlap_and_every_domain_is_used():
    for name in set(COUNTS) - {"office-home-multi-source"}:
        protocol = load_protocol(name)
        for split in make_splits(protocol.roles):
            used = split.source + split.calibration + split.target
            assert sorted(used) == sorted(protocol.roles.domains)


def test_multi_source_calibrates_on_its_sources():
    for split in make_splits(load_protocol("office-home-multi-source").roles):
        assert split.calibration == split.source
        assert len(split.source) == 3
        assert not set(split.target) & set(split.source)


def test_cyclic_splits_give_every_domain_every_role_equally_often():
    splits = make_splits(load_protocol("formations").roles)
    for role, times in {"source": 4, "calibration": 4, "target": 2}.items():
        seen = Counter(name for split in splits for name in getattr(split, role))
        assert set(seen.values()) == {times}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sedes": [0]}, "unknown key 'sedes'; did you mean 'seeds'?"),
        ({"evaluation": {"drwas": 5}}, "'evaluation.drwas'; did you mean 'draws'?"),
        (
            {"methods": {"names": ["ensembel"]}},
            "unknown method 'ensembel'; did you mean 'ensemble'?",
        ),
        ({"data": {"kind": "trained"}}, "missing key 'data.trained.pattern'"),
        ({"seeds": [1, 1]}, "seeds must be distinct"),
        ({"evaluation": {"draws": 0}}, "evaluation.draws"),
    ],
)
def test_mistakes_are_explained(tmp_path, change, message):
    path = write_toml(tmp_path / "p.toml", protocol_content(tmp_path, **change))
    with pytest.raises(ValueError, match=r"p\.toml") as caught:
        load_protocol(path)
    assert message in str(caught.value)


SIZES = {
    "methods.clusters": 10_000,
    "methods.discriminator_rows": 10**8,
    "methods.label_draws": 1000,
    "evaluation.size": 10**6,
    "evaluation.draws": 100_000,
    "evaluation.bins": 1000,
    "evaluation.other_bins": 1000,
    "evaluation.bootstrap": 100_000,
    "data.formations.n_images": 100_000,
}


def test_every_size_has_a_bound():
    numbers = {
        f"{key}.{name}"
        for key, model in [
            ("methods", Methods),
            ("evaluation", EvaluationSettings),
            ("data.formations", FormationsData),
        ]
        for name, info in model.model_fields.items()
        if info.annotation is int and name != "random_state"
    }
    assert numbers == set(SIZES)


@pytest.mark.parametrize(("key", "most"), SIZES.items())
def test_sizes_that_cannot_be(key, most):
    name = "formations" if "data" in key else "digits"
    short = key.replace(".formations", "")
    few = ["evaluation.size=1"] if key == "evaluation.draws" else []
    load_protocol(name, [f"{short}={most}", *few])
    for value in ("1e9", most + 1, 10**30):
        wanted = rf"{key}: Input .* less than or equal to {most}; found [0-9.e+]+"
        with pytest.raises(ValueError, match=wanted):
            load_protocol(name, [f"{short}={value}"])
    for value in (0, -1):
        wanted = f"{key}: Input should be greater than 0; found {value}"
        with pytest.raises(ValueError, match=wanted):
            load_protocol(name, [f"{short}={value}"])
    for value in ("nan", "inf", "1.5"):
        with pytest.raises(ValueError, match=f"{key}: Input should be a .*number"):
            load_protocol(name, [f"{short}={value}"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("methods.sensitivity=[2, 10001]", "sensitivity.1: Input .*; found 10001"),
        ("evaluation={size = 100000, draws = 10001}", r"100000 \* 10001, 4 GB of row"),
        ("seeds=[4294967296]", "found 4294967296; wanted numbers from 0 to"),
        ("seeds=[0, -1]", "found -1; wanted numbers from 0 to"),
        ("classifiers.mlp.hidden=1e9", "hidden must hold positive layer widths up to"),
        ("classifiers.mlp.hidden=[65537]", r"up to 65536; found \[65537\]"),
        ("classifiers.mlp.hidden=[5.5]", r"up to 65536; found \[5.5\]"),
        ("classifiers.mlp.epochs=1000001", "epochs must be a whole number from 1 to"),
        ("classifiers.mlp.batch_size=1e9", "batch_size must be a whole number from 1"),
        ('classifiers.mlp.alpha="x"', "alpha must not be negative; found 'x'"),
    ],
)
def test_other_numbers_that_cannot_be(setting, message):
    with pytest.raises(ValueError, match=message):
        load_protocol("digits", [setting])


def test_a_typo_in_the_classifier_is_explained(tmp_path):
    content = protocol_content(tmp_path)
    content["data"] = {"kind": "bundled", "dataset": "digits"}
    content["classifiers.mlp"] = {"kind": "mlp", "epocs": 3}
    path = write_toml(tmp_path / "p.toml", content)
    with pytest.raises(ValueError, match="unknown key 'epocs'; did you mean 'epochs'"):
        load_protocol(path)


def test_too_many_roles_for_the_domains(tmp_path):
    content = protocol_content(tmp_path)
    content["roles"]["calibration"] = 3
    with pytest.raises(ValueError, match="= 5 domains, but domains lists 4"):
        Protocol.model_validate(content)


def test_unknown_name_suggests_a_bundled_protocol():
    with pytest.raises(ValueError, match="did you mean 'office-home'"):
        load_protocol("ofice-home")


def test_seed_reaches_only_what_varies(small_protocol):
    fixed = small_protocol.model_copy(update={"vary": ("clusters",)})
    assert fixed.seed_of("clusters", 3) == 3
    assert fixed.seed_of("division", 3) == 0


def test_splits_command_needs_no_data(tmp_path):
    command = [sys.executable, "-c", "from coolhead.cli import main; main()"]
    answer = subprocess.run(
        [*command, "splits", "domainnet", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    listed = json.loads(answer.stdout)
    assert len(listed) == 60
    assert set(listed[0]) == {"source", "calibration", "target"}
    assert [len(listed[0][role]) for role in ("source", "calibration", "target")] == [
        2,
        3,
        1,
    ]
