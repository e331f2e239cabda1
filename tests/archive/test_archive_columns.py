"""What enters an archive, what is refused, and what selection keeps."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from coolhead.io.archive import DomainArchive


@pytest.fixture
def archive():
    random = np.random.default_rng(0)
    return DomainArchive(
        random.normal(size=(60, 3)).astype(np.float32),
        random.normal(size=(60, 4)).astype(np.float16),
        random.integers(0, 3, 60),
        np.repeat(["sea", "air", "land"], 20),
        groups=np.arange(60) // 5,
        ids=[f"img-{i}" for i in range(60)],
        class_names=["a", "b", "c"],
        metadata={"seed": 0, "sizes": (1, 2)},
    )


def test_columns_are_kept(archive):
    assert archive.domain_names == ("air", "land", "sea")
    assert archive.domain_sizes() == {"air": 20, "land": 20, "sea": 20}
    assert archive.domains[0] == "sea"
    assert archive.logits.dtype == np.float32
    assert archive.features.dtype == np.float16
    assert archive.n_classes == 3
    assert archive.metadata["sizes"] == [1, 2]
    assert "60 rows, 3 classes, logits 3 x float32" in repr(archive)


def test_selection_keeps_rows_together(archive):
    part = archive.select("sea", "land")
    assert len(part) == 40
    assert part.domain_names == ("land", "sea")
    np.testing.assert_array_equal(part.domains, np.repeat(["sea", "land"], 20))
    rows = np.r_[0:20, 40:60]
    np.testing.assert_array_equal(part.logits, archive.logits[rows])
    np.testing.assert_array_equal(part.ids, archive.ids[rows])
    np.testing.assert_array_equal(part.groups, archive.groups[rows])


def test_neighbouring_rows_stay_a_view(archive):
    assert np.shares_memory(archive.select("air").logits, archive.logits)
    assert all(
        np.shares_memory(b.features, archive.features) for b in archive.blocks(7)
    )


def test_blocks_cover_every_row_once(archive):
    blocks = list(archive.blocks(7))
    assert [len(block) for block in blocks] == [7] * 8 + [4]
    np.testing.assert_array_equal(np.concatenate([b.ids for b in blocks]), archive.ids)
    with pytest.raises(ValueError, match="n_rows is 0"):
        next(archive.blocks(0))


def test_concat_gives_back_what_was_cut(archive):
    whole = DomainArchive.concat([archive.select(n) for n in ("sea", "air", "land")])
    np.testing.assert_array_equal(whole.logits, archive.logits)
    np.testing.assert_array_equal(whole.domains, archive.domains)
    assert whole.metadata == archive.metadata
    assert whole.class_names == archive.class_names


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": None}, "archive 1 has no features"),
        ({"features": np.ones((60, 5))}, "features of archive 1 has 5 columns"),
        ({"class_names": ["a", "c", "b"]}, "class_names of archive 1 differ"),
        ({"ids": np.arange(60)}, "ids of archive 1 has type int64"),
    ],
)
def test_concat_refuses_what_does_not_fit(archive, change, message):
    with pytest.raises(ValueError, match=message):
        DomainArchive.concat([archive, archive.replace(**change)])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["see"], "'see' is not in the archive; did you mean 'sea'"),
        (["AIR"], "'AIR' is not in the archive; did you mean 'air'"),
        (["xyz"], "known: air, land, sea"),
        ([], "no domain"),
        ([["sea", "air"]], "one by one"),
    ],
)
def test_selection_refuses_unknown_domains(archive, names, message):
    with pytest.raises(ValueError, match=message):
        archive.select(*names)


def test_selection_refuses_a_domain_without_rows(archive):
    part = archive.rows(archive.domains != "air")
    assert part.domain_sizes()["air"] == 0
    with pytest.raises(ValueError, match="'air' has no rows"):
        part.select("air")


def test_integer_domains_are_names_or_codes():
    logits = np.eye(4) * 3
    named = DomainArchive(logits, domains=[7, 7, 3, 10])
    assert named.domain_names == ("3", "7", "10")
    assert len(named.select(7)) == len(named.select("7")) == 2
    coded = DomainArchive(logits, domains=[1, 1, 0, 1], domain_names=["x", "y", "z"])
    assert coded.domains.tolist() == ["y", "y", "x", "y"]


@pytest.mark.parametrize("series", [pd.Series, pl.Series, list])
def test_series_are_welcome(series):
    archive = DomainArchive(
        features=np.ones((3, 2)),
        labels=series([0, 1, 2]),
        domains=series(["x", "y", "x"]),
        ids=series(["p", "q", "r"]),
    )
    assert archive.domains.tolist() == ["x", "y", "x"]
    assert archive.ids.tolist() == ["p", "q", "r"]


def test_frames_read_only_and_strided_arrays_are_welcome():
    frozen = np.arange(12.0).reshape(4, 3)
    frozen.flags.writeable = False
    frame = pd.DataFrame(np.ones((2, 2)))
    archive = DomainArchive(frozen[::2], features=frame)
    np.testing.assert_array_equal(archive.logits, frozen[::2])


def test_binary_scores_and_missing_domains():
    archive = DomainArchive([1.0, -2.0])
    np.testing.assert_array_equal(archive.logits, [[0, 1], [0, -2]])
    assert archive.domain_names == ("all",)


LOGITS = np.array([[1.0, 2.0, 3.0]] * 4)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "both missing"),
        ({"logits": np.empty((0, 3))}, "empty"),
        ({"features": np.empty((4, 0))}, r"shape \(4, 0\)"),
        ({"features": [["a"]]}, "type <U1"),
        ({"logits": LOGITS, "features": np.ones((3, 2))}, "features has 3 rows"),
        ({"logits": LOGITS, "labels": [0, 1, 2, 3]}, "labels holds 3 in row 3"),
        ({"logits": LOGITS, "labels": [0, -1, 2, -1]}, r"-1 in row 1 \(2 such"),
        ({"logits": LOGITS, "labels": [0.0, 1, 2, 1]}, "type float64"),
        ({"logits": LOGITS, "labels": [0, 1]}, "labels has 2 entries"),
        ({"logits": LOGITS, "domains": ["a"]}, "domains has 1 rows"),
        ({"logits": LOGITS, "domains": ["a", None, "b", "b"]}, "no name in row 1"),
        ({"logits": LOGITS, "domains": [0.5] * 4}, "domains has type float64"),
        (
            {"logits": LOGITS, "domains": [0, 1, 2, 0], "domain_names": ["a", "b"]},
            "domains holds 2 in row 2",
        ),
        (
            {"logits": LOGITS, "domains": list("aabx"), "domain_names": ["a", "b"]},
            "'x' in row 3",
        ),
        ({"logits": LOGITS, "domain_names": ["a", "b"]}, "domains is missing"),
        ({"logits": LOGITS, "class_names": ["a", "b"]}, "3 columns"),
        ({"logits": LOGITS, "class_names": ["a", "b", "a"]}, "'a' twice"),
        ({"logits": LOGITS, "class_names": "abc"}, "wanted a list"),
        ({"logits": LOGITS, "ids": [1.5] * 4}, "ids has type float64"),
        ({"logits": LOGITS, "groups": ["a", None, "b", "c"]}, "no name in row 1"),
        ({"logits": LOGITS, "metadata": {"x": np.nan}}, "not plain JSON"),
        ({"logits": LOGITS, "metadata": [1]}, "wanted a dict"),
        ({"features": np.ones((2, 2)), "labels": [0, -3]}, "labels holds -3 in row 1"),
    ],
)
def test_bad_columns_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        DomainArchive(**columns)


@pytest.mark.parametrize("name", ["logits", "features"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_named(name, value):
    matrix = np.zeros((50_000, 10), np.float32)
    matrix[31_234, 3] = value
    with pytest.raises(ValueError, match=rf"{name} contains \w+ in row 31234;"):
        DomainArchive(**{name: matrix})


def test_replace_checks_only_what_changes(archive):
    changed = archive.replace(logits=archive.logits * 2, metadata={})
    np.testing.assert_array_equal(changed.logits, archive.logits * 2)
    np.testing.assert_array_equal(changed.domains, archive.domains)
    assert archive.replace(domains=["x"] * 60).domain_names == ("x",)
    with pytest.raises(ValueError, match="logits contains NaN in row 0"):
        archive.replace(logits=archive.logits * np.nan)


def test_rows_refuses_a_foreign_mask(archive):
    with pytest.raises(ValueError, match="row mask has shape"):
        archive.rows(np.ones(5, bool))
    with pytest.raises(ValueError, match="type float64"):
        archive.rows(np.ones(5))


def test_archives_are_frozen_and_travel_between_processes(archive):
    with pytest.raises(AttributeError):
        archive.logits = None
    copy = pickle.loads(pickle.dumps(archive))
    np.testing.assert_array_equal(copy.features, archive.features)
    np.testing.assert_array_equal(copy.domains, archive.domains)
