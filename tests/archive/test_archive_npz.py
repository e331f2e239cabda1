"""The .npz files people have."""

import json

import numpy as np
import pytest

from coolhead.io.reading import load_archive

LOGITS = np.arange(12.0).reshape(4, 3)


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_all_columns(tmp_path):
    path = save(
        tmp_path / "preds.npz",
        logits=LOGITS,
        features=np.ones((4, 2), np.float16),
        labels=np.array([0, 1, 2, 0]),
        domains=np.array(["x", "y", "x", "y"]),
        groups=np.array([1, 1, 2, 2]),
        ids=np.array(["a", "b", "c", "d"]),
        class_names=np.array(["p", "q", "r"]),
        metadata=json.dumps({"backbone": "tiny"}),
    )
    archive = load_archive(path)
    assert archive.domains.tolist() == ["x", "y", "x", "y"]
    assert archive.class_names == ("p", "q", "r")
    assert archive.groups.tolist() == [1, 1, 2, 2]
    assert archive.metadata == {"backbone": "tiny"}


def test_codes_with_names_paths_as_ids_and_bytes(tmp_path):
    path = save(
        tmp_path / "features.npz",
        features=np.ones((3, 2), np.float16),
        labels=np.array([0, 1, 1], np.uint8),
        domain=np.array([1, 0, 1], np.int8),
        domain_names=np.array([b"art", b"photo"]),
        paths=np.array(["p/1.jpg", "p/2.jpg", "p/3.jpg"]),
        exposure=np.ones(3),
    )
    archive = load_archive(path)
    assert archive.logits is None
    assert archive.domains.tolist() == ["photo", "art", "photo"]
    assert archive.ids[2] == "p/3.jpg"
    assert archive.labels.dtype == np.intp
    assert archive.metadata == {"ignored_arrays": ["exposure"]}


def test_the_suffix_does_not_matter(tmp_path):
    path = save(tmp_path / "a.npz", logits=LOGITS)
    path.rename(tmp_path / "a.data")
    assert len(load_archive(tmp_path / "a.data")) == 4


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logit": LOGITS}, "did you mean 'logits'"),
        ({"labels": np.arange(4)}, "has no logits \\(columns found: labels\\)"),
        ({"logits": LOGITS.astype(object)}, "logits is an array of Python objects"),
        (
            {"logits": LOGITS, "ids": np.array(["a", 1, None, 2], object)},
            "ids is an array of Python objects",
        ),
        (
            {"logits": LOGITS, "labels": np.array([0, 1, 2, 3])},
            "labels holds 3 in row 3",
        ),
        (
            {"logits": LOGITS, "labels": np.arange(3)},
            r"rows differ \(logits 4, labels 3\)",
        ),
        ({"logits": np.where(LOGITS == 7, np.nan, LOGITS)}, "contains NaN in row 2"),
        (
            {"logits": LOGITS, "domain": np.zeros(4, int), "domains": np.zeros(4, int)},
            "holds domains twice, also as domain",
        ),
        ({"logits": LOGITS, "metadata": "{not json"}, "metadata is not a JSON object"),
    ],
)
def test_bad_files_are_refused(tmp_path, arrays, message):
    path = save(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        load_archive(path)
    assert "bad.npz" in str(caught.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.98])
def test_truncated_npz(tmp_path, share):
    path = save(
        tmp_path / "cut.npz", logits=np.random.default_rng(0).normal(size=(9, 3))
    )
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError, match=r"cut\.npz cannot be read"):
        load_archive(path)


def test_flipped_bytes(tmp_path):
    path = tmp_path / "flipped.npz"
    np.savez_compressed(path, logits=np.random.default_rng(0).normal(size=(90, 3)))
    data = bytearray(path.read_bytes())
    data[200:260] = bytes(60)
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"flipped\.npz cannot be read"):
        load_archive(path)
