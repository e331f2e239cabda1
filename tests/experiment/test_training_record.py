"""Given logits of a classifier that has seen what it is calibrated on are refused."""

import pytest
from small_world import DOMAINS, make_archive, protocol_content

from coolhead.io.reading import load_archive
from coolhead.lab.commands.images import train
from coolhead.lab.plan import make_plan
from coolhead.lab.protocol import Protocol
from coolhead.lab.protocol_files import load_protocol
from coolhead.lab.results import read_table
from coolhead.lab.sweep import run_sweep

AS_SWEPT = {"small": 0.2, "stratify": False, "random_state": 0}


def write_world(folder, pattern="source={source}.safetensors", seed=0, **division):
    """Archives that record source and division, one per domain."""
    for name in DOMAINS:
        record = AS_SWEPT | {"random_state": seed} | division
        recorded = {"head": {"kind": "erm", "source": [name]}, "division": record}
        make_archive(metadata=recorded).save(
            folder / pattern.format(source=name, seed=seed)
        )


def plan(folder, **changes):
    return make_plan(
        Protocol.model_validate(protocol_content(folder, **changes)), folder
    )


def test_what_was_trained_as_swept_is_taken(tmp_path):
    write_world(tmp_path)
    jobs = plan(tmp_path).jobs
    assert len(jobs) == 12 and {job.note for job in jobs} == {None}


def test_another_source_is_refused(tmp_path):
    write_world(tmp_path)
    recorded = {"head": {"source": "west"}, "division": AS_SWEPT}
    make_archive(metadata=recorded).save(tmp_path / "source=east.safetensors")
    with pytest.raises(
        ValueError, match=r"source=east\.safetensors was trained on west, wanted east"
    ):
        plan(tmp_path)


@pytest.mark.parametrize(
    ("division", "found"),
    [
        ({"random_state": 3}, "'random_state': 3"),
        ({"small": 0.1}, "'small': 0.1"),
        ({"stratify": True}, "'stratify': True"),
    ],
)
def test_another_division_is_refused(tmp_path, division, found):
    write_world(tmp_path, **division)
    with pytest.raises(
        ValueError, match=r"source=.*\.safetensors was trained"
    ) as error:
        plan(tmp_path)
    for piece in (found, str(AS_SWEPT), "{seed}", "vary"):
        assert piece in str(error.value)


def test_one_archive_for_several_seeds_is_refused_unless_the_division_stays(tmp_path):
    write_world(tmp_path)
    with pytest.raises(ValueError, match=r"put {seed} into data\.pattern"):
        plan(tmp_path, seeds=[0, 1])
    kept = plan(tmp_path, seeds=[0, 1], vary=["clusters"])
    assert len(kept.jobs) == 24
    pattern = "{source}-{seed}.safetensors"
    for seed in (0, 1):
        write_world(tmp_path, pattern, seed)
    data = {"kind": "trained", "pattern": f"{tmp_path}/{pattern}"}
    assert len(plan(tmp_path, seeds=[0, 1], data=data).jobs) == 24


def test_what_records_nothing_is_taken_with_a_note(world, tmp_path):
    methods = {"names": ["uncalibrated", "set-level"], "clusters": 3}
    content = protocol_content(world, methods=methods)
    outcome = run_sweep(Protocol.model_validate(content), tmp_path, jobs=1)
    assert outcome.n_failed == 0
    assert len(outcome.notes) == len(DOMAINS)
    assert all("cannot be checked" in note for note in outcome.notes)
    assert set(outcome.notes) <= set(read_table(outcome.run, "notes")["note"])


def test_trained_by_the_command_it_carries_its_record(tmp_path):
    features = tmp_path / "features.safetensors"
    make_archive(logits=None).save(features)
    for name in DOMAINS:
        out = tmp_path / f"source={name}.safetensors"
        train(features, [name], out, kind="logistic", small=0.25, seed=1)
    recorded = load_archive(out).metadata
    assert recorded["division"] == AS_SWEPT | {"small": 0.25, "random_state": 1}
    fitting = {"seeds": [1], "division": {"small": 0.25}}
    assert {job.note for job in plan(tmp_path, **fitting).jobs} == {None}
    with pytest.raises(ValueError, match="it has seen Small rows"):
        plan(tmp_path, **(fitting | {"seeds": [2]}))


def test_the_advice_of_the_bundled_protocol_names_the_seed():
    from importlib.resources import files

    assert len(load_protocol("office-home").seeds) > 1
    place = files("coolhead.lab") / "protocols" / "office-home.toml"
    patterns = [s for s in place.read_text().splitlines() if "pattern =" in s]
    assert patterns and all("{seed}" in line for line in patterns)
