"""One file: whole, mapped, the same bytes every time, and clear when damaged."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from coolhead.io.archive import DomainArchive
from coolhead.io.reading import load_archive
from coolhead.io.safetensors import pack_strings


@pytest.fixture
def archive():
    random = np.random.default_rng(1)
    return DomainArchive(
        random.normal(size=(30, 3)),
        random.normal(size=(30, 4)).astype(np.float16),
        random.integers(0, 3, 30),
        np.repeat(["meer", "größe", "空"], 10),
        groups=[f"g{i // 3}" for i in range(30)],
        ids=np.arange(30) * 7,
        class_names=["é", "b", "c"],
        metadata={"note": "über", "n": 3},
    )


def assert_same(one, other):
    for name in ("logits", "features", "labels", "domains", "groups", "ids"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.class_names == other.class_names
    assert one.domain_names == other.domain_names
    assert one.metadata == other.metadata


def test_round_trip(archive, tmp_path):
    archive.save(tmp_path / "a.safetensors")
    loaded = load_archive(tmp_path / "a.safetensors")
    assert_same(loaded, archive)
    assert loaded.features.dtype == np.float16
    assert_same(loaded.select("空"), archive.select("空"))


def test_headers_of_any_size_are_no_pickle(archive, tmp_path):
    """A file begins with the size of its header, which may be bytes of a pickle."""
    starts = set()
    for padding in range(0, 1024, 8):
        padded = archive.replace(metadata={"note": "x" * padding})
        padded.save(tmp_path / "a.safetensors")
        starts.add((tmp_path / "a.safetensors").read_bytes()[:2])
        assert load_archive(tmp_path / "a.safetensors").metadata == padded.metadata
    assert starts & {bytes([0x80, protocol]) for protocol in (2, 3, 4, 5)}


def test_the_safetensors_library_reads_it_too(archive, tmp_path):
    archive.save(tmp_path / "a.safetensors")
    stored = load_file(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(stored["logits"], archive.logits)
    np.testing.assert_array_equal(stored["features"], archive.features)


def test_same_archive_same_bytes(archive, tmp_path):
    archive.save(tmp_path / "a.safetensors")
    load_archive(tmp_path / "a.safetensors").save(tmp_path / "b.safetensors")
    first, second = (tmp_path / f"{n}.safetensors" for n in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_the_order_of_metadata_does_not_matter(archive, tmp_path):
    archive.replace(metadata={"a": 1, "b": 2}).save(tmp_path / "a")
    archive.replace(metadata={"b": 2, "a": 1}).save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_archive_can_be_saved_over_its_own_file(archive, tmp_path):
    path = tmp_path / "a.safetensors"
    archive.save(path)
    mapped = load_archive(path)
    mapped.select("meer").save(path)
    assert len(load_archive(path)) == 10
    assert_same(mapped, archive)


def test_strings_survive(tmp_path):
    @settings(
        max_examples=50,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
        ],
    )
    @given(
        st.lists(
            st.text(
                st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
                max_size=8,
            )
        )
    )
    def check(strings):
        packed = pack_strings(np.array(strings, dtype=np.str_))
        assert packed[:].tolist() == strings
        assert packed[1:3].tolist() == strings[1:3]

    check()


MEASURE = """
import sys
from coolhead.io import load_archive

def anonymous_and_peak():
    fields = dict(line.split(":") for line in open("/proc/self/status"))
    return [int(fields[key].split()[0]) for key in ("RssAnon", "VmHWM")]

load_archive(sys.argv[2])
before = anonymous_and_peak()
archive = load_archive(sys.argv[1], check=sys.argv[3] == "check")
after = anonymous_and_peak()
assert len(archive.select("b")) == 50_000
print(*(b - a for a, b in zip(before, after)))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
@pytest.mark.parametrize("check", ["check", "trust"])
def test_loading_does_not_read_the_file_into_memory(archive, tmp_path, check):
    features = np.zeros((100_000, 256), np.float32)
    domains = np.repeat(["a", "b"], 50_000)
    DomainArchive(features=features, domains=domains).save(tmp_path / "big")
    archive.save(tmp_path / "small")
    command = [
        sys.executable,
        "-c",
        MEASURE,
        tmp_path / "big",
        tmp_path / "small",
        check,
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    anonymous, peak = map(int, printed.split())
    assert anonymous < 8_000, "kB of memory for a file of 100,000 kB"
    assert peak < 12_000


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.999])
def test_truncated_files_are_refused_in_one_line(archive, tmp_path, share):
    path = tmp_path / "cut.safetensors"
    archive.save(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(
        ValueError, match=r"cannot be read|is empty \(0 bytes\)"
    ) as caught:
        load_archive(path)
    assert "\n" not in str(caught.value)
    assert "cut.safetensors" in str(caught.value)


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("hello, this is no archive at all " * 10)
    with pytest.raises(ValueError, match="of no known kind, or is damaged"):
        load_archive(tmp_path / "text")
    save_file({"weight": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="no coolhead archive"):
        load_archive(tmp_path / "model.safetensors")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_archive(tmp_path / "nothing.npz")
    with pytest.raises(ValueError, match=r"is a folder without logits\.npy"):
        load_archive(tmp_path)


def test_a_header_that_is_no_object_is_refused(tmp_path):
    path = tmp_path / "list.safetensors"
    save_file({"logits": np.eye(3)}, path, metadata={"coolhead": "[1]"})
    with pytest.raises(ValueError, match="archive format None"):
        load_archive(path)


def rewrite(path, arrays, **header):
    known = {"format_version": 1, "domain_names": ["a"], "class_names": None}
    text = json.dumps(known | {"metadata": {}} | header)
    save_file(arrays, path, metadata={"coolhead": text})


@pytest.mark.parametrize(
    ("arrays", "header", "message"),
    [
        ({}, {"format_version": 9}, "archive format 9; this coolhead reads 1"),
        ({"labels": np.array([0, 5, 1])}, {}, "labels holds 5 in row 1"),
        ({"labels": np.array([0, 1])}, {}, "rows differ (labels 2, logits 3)"),
        ({"logits": np.full((3, 2), np.nan)}, {}, "logits contains NaN in row 0, 1, 2"),
        ({"domain_codes": np.array([0, 0, 1])}, {}, "domains holds 1 in row 2"),
        (
            {"ids.utf8": np.zeros(3, np.uint8), "ids.offsets": np.array([0, 9, 2, 3])},
            {},
            "string offsets are damaged",
        ),
    ],
)
def test_wrong_values_in_a_file_are_named(tmp_path, arrays, header, message):
    path = tmp_path / "odd.safetensors"
    rewrite(path, {"logits": np.eye(3)[:, :2] * 4} | arrays, **header)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        load_archive(path)
    assert "odd.safetensors" in str(caught.value)


def test_trusted_files_are_not_read(tmp_path):
    path = tmp_path / "nan.safetensors"
    rewrite(path, {"logits": np.full((3, 2), np.nan)})
    assert np.isnan(load_archive(path, check=False).logits).all()
