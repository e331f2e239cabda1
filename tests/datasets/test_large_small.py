"""The division that every experiment shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from coolhead.io.archive import DomainArchive
from coolhead.lab.images import split_large_small


def make(sizes, *, groups=None, labels=None):
    n = sum(sizes.values())
    return DomainArchive(
        features=np.zeros((n, 1)),
        labels=np.arange(n) % 3 if labels is None else labels,
        domains=np.repeat(list(sizes), list(sizes.values())),
        groups=groups,
    )


OFFICE_HOME = {"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357}


def test_office_home_sizes():
    archive = make(OFFICE_HOME)
    small = split_large_small(archive)
    assert small.dtype == bool
    assert archive.rows(small).domain_sizes() == {
        "Art": 486,
        "Clipart": 873,
        "Product": 888,
        "Real World": 872,
    }


def test_same_rows_as_scikit_learn():
    small = split_large_small(make({"a": 101}), small=0.1, random_state=7)
    _, chosen = train_test_split(np.arange(101), test_size=0.1, random_state=7)
    np.testing.assert_array_equal(np.flatnonzero(small), np.sort(chosen))


def test_a_domain_is_divided_alike_whatever_stands_beside_it():
    archive = make(OFFICE_HOME)
    small = split_large_small(archive)
    for name in OFFICE_HOME:
        alone = split_large_small(archive.select(name))
        np.testing.assert_array_equal(alone, small[archive.domains == name])
    assert (split_large_small(archive, random_state=1) != small).any()
    np.testing.assert_array_equal(split_large_small(archive), small)


def test_stratified_shares_are_equal():
    archive = make({"a": 900, "b": 300})
    small = split_large_small(archive, stratify=True)
    for name in "ab":
        rows = small & (archive.domains == name)
        assert len(set(np.bincount(archive.labels[rows]))) == 1


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(
        lambda g: len(set(g)) > 1
    ),
    st.floats(0.05, 0.6),
    st.integers(0, 5),
)
def test_groups_never_straddle(groups, share, seed):
    archive = make({"a": len(groups)}, groups=groups)
    small = split_large_small(archive, small=share, random_state=seed)
    groups = np.array(groups)
    assert 0 < small.sum() < len(small)
    assert not np.intersect1d(groups[small], groups[~small]).size
    # Taking one group more or less would not come nearer than its size allows.
    largest = np.bincount(groups).max()
    assert abs(small.sum() - np.ceil(share * len(groups))) <= largest


def test_stratified_groups_do_not_straddle_either():
    groups = np.repeat([f"g{i}" for i in range(60)], 5)
    archive = make({"a": 300}, groups=groups)
    small = split_large_small(archive, stratify=True)
    assert not np.intersect1d(groups[small], groups[~small]).size
    assert 50 <= small.sum() <= 70


def test_groups_can_be_given_or_ignored():
    archive = make({"a": 100}, groups=np.arange(100) // 2)
    assert split_large_small(archive, groups=None).sum() == 20
    own = split_large_small(archive, groups=np.arange(100) // 10)
    assert set(np.bincount(np.flatnonzero(own) // 10)) == {0, 10}


@pytest.mark.parametrize(
    ("archive", "options", "message"),
    [
        (make({"a": 9}), {"small": 0}, "small is 0; wanted a share"),
        (make({"a": 9}), {"small": 1.0}, "small is 1.0; wanted a share"),
        (make({"b": 9, "a": 1}), {}, "domain 'a' cannot be divided"),
        (make({"a": 9}, groups=[1] * 9), {}, "all its rows are one group"),
        (make({"a": 9}), {"groups": [1, 2]}, "groups has 2 rows"),
        (
            make({"a": 9}, labels=[0] * 8 + [1]),
            {"stratify": True},
            "domain 'a' cannot be divided",
        ),
        (
            make({"a": 9}, groups=range(9)),
            {"stratify": True, "small": 0.3},
            "wanted 1/2, 1/3",
        ),
        (
            DomainArchive(features=np.zeros((9, 1))),
            {"stratify": True},
            "needs labels",
        ),
    ],
)
def test_impossible_divisions_are_refused(archive, options, message):
    with pytest.raises(ValueError, match=message):
        split_large_small(archive, **options)
