"""Prediction files: every kind gives the same rows, in blocks and whole."""

import tracemalloc

import numpy as np
import polars as pl
import pytest

from coolhead.io.archive import DomainArchive
from coolhead.io.reading import (
    Block,
    block_length,
    load_archive,
    open_predictions,
    sample_blocks,
    sample_length,
    stream_blocks,
)
from coolhead.io.write import Written, write_blocks

RNG = np.random.default_rng(0)
N_ROWS = 103
LOGITS = RNG.normal(size=(N_ROWS, 3)).astype(np.float32)
FEATURES = RNG.normal(size=(N_ROWS, 4)).astype(np.float32)
LABELS = RNG.integers(0, 3, N_ROWS)
DOMAINS = np.array(["art", "bär"])[RNG.integers(0, 2, N_ROWS)]
ARRAYS = {
    "logits": LOGITS,
    "features": FEATURES,
    "labels": LABELS,
    "domains": DOMAINS,
}


def as_table(**changes):
    columns = {f"logit_{i}": LOGITS[:, i] for i in range(3)}
    columns |= {f"feature_{i}": FEATURES[:, i] for i in range(4)}
    columns |= {"label": LABELS, "domain": DOMAINS}
    kept = {k: v for k, v in (columns | changes).items() if v is not None}
    return pl.DataFrame(kept)


def write_npz(path):
    np.savez(path, **ARRAYS)


def write_compressed(path):
    np.savez_compressed(path, **ARRAYS)


def write_synonyms(path):
    np.savez(
        path,
        logits=np.asfortranarray(LOGITS),
        features=FEATURES.astype(">f4"),
        label=LABELS.astype(np.int8),
        domain=(DOMAINS == "bär").astype(np.int16),
        domain_names=["art", "bär"],
        unrelated=np.zeros(7),
    )


def write_folder(path):
    path.mkdir()
    for name, array in ARRAYS.items():
        np.save(path / f"{name}.npy", array)


def write_fortran_folder(path):
    path.mkdir()
    for name, array in ARRAYS.items():
        np.save(path / f"{name}.npy", np.asfortranarray(array))


def write_archive(path):
    DomainArchive(LOGITS, FEATURES, LABELS, DOMAINS).save(path)


def write_nested(path):
    pl.DataFrame(
        {"logits": LOGITS, "features": FEATURES, "label": LABELS, "domain": DOMAINS}
    ).write_parquet(path)


def write_lists(path):
    pl.DataFrame(
        {
            "logits": LOGITS.tolist(),
            "features": FEATURES.tolist(),
            "label": LABELS,
            "domain": DOMAINS,
        }
    ).write_parquet(path)


def write_shuffled(path):
    """Columns in any order, numbered from one like the labels, as float64 text."""
    table = as_table().with_columns(pl.col("label") + 1)
    names = {f"logit_{i}": f"logit_{i + 1}" for i in range(3)}
    table = table.rename(names)
    table.select(sorted(table.columns, reverse=True)).write_csv(path)


KINDS = {
    "a.npz": write_npz,
    "b.npz": write_compressed,
    "c.npz": write_synonyms,
    "folder": write_folder,
    "fortran": write_fortran_folder,
    "d.safetensors": write_archive,
    "e.parquet": lambda path: as_table().write_parquet(path, row_group_size=40),
    "f.parquet": write_nested,
    "g.parquet": write_lists,
    "h.arrow": lambda path: as_table().write_ipc(path),
    "i.csv": lambda path: as_table().write_csv(path),
    "j.tsv": lambda path: as_table().write_csv(path, separator="\t"),
    "k.csv": write_shuffled,
    # Names with wildcards are names, not patterns.
    "l[0-9]*.csv": lambda path: as_table().write_csv(path),
    "m[0-9]*.parquet": lambda path: as_table().write_parquet(path),
    "n[0-9]*.arrow": lambda path: as_table().write_ipc(path),
}


@pytest.fixture(params=KINDS)
def path(request, tmp_path):
    place = tmp_path / request.param
    KINDS[request.param](place)
    return place


def test_blocks_hold_the_rows_in_order(path):
    opened = open_predictions(path)
    assert opened.n_rows in (N_ROWS, None)
    blocks = list(stream_blocks(opened, n_rows=25))
    assert [block.start for block in blocks] == [0, 25, 50, 75, 100]
    assert np.allclose(np.concatenate([b.logits for b in blocks]), LOGITS, rtol=1e-6)
    features = np.concatenate([b.features for b in blocks])
    assert np.allclose(features, FEATURES, rtol=1e-6)
    assert np.array_equal(np.concatenate([b.labels for b in blocks]), LABELS)
    assert np.array_equal(np.concatenate([b.domains for b in blocks]), DOMAINS)


@pytest.mark.parametrize("n_rows", [7, 200])
def test_a_sample_of_any_kind_and_any_blocks_has_the_same_rows(path, n_rows):
    blocks = stream_blocks(open_predictions(path), n_rows=n_rows)
    found = sample_blocks(blocks, 20, keep=[3, 90])
    drawn = np.random.default_rng(0).random(N_ROWS)
    drawn[[3, 90]] = -1
    rows = np.sort(np.argsort(drawn)[:22])
    assert np.array_equal(found.rows, rows) and found.n_rows == N_ROWS
    assert np.allclose(found.logits, LOGITS[rows], rtol=1e-6)
    assert np.allclose(found.features, FEATURES[rows], rtol=1e-6)
    whole = sample_blocks(stream_blocks(open_predictions(path)), N_ROWS)
    assert np.array_equal(whole.rows, np.arange(N_ROWS))


def test_the_memory_of_a_sample_does_not_grow_with_the_file():
    def blocks(count):
        for number in range(count):
            logits = np.full((2000, 10), number, np.float32)
            yield Block(2000 * number, logits, logits, None, None, None)

    peaks = []
    for count in (10, 100):
        tracemalloc.start()
        found = sample_blocks(blocks(count), 1000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (len(found.rows), found.n_rows) == (1000, 2000 * count)
    assert peaks[1] < 1.2 * peaks[0]
    assert sample_length(1000) == 100_000
    assert sample_length(2**14) == 2**13
    assert sample_length(2**30) == 2_000


def test_the_whole_file_is_an_archive(path):
    archive = load_archive(path)
    assert np.allclose(archive.logits, LOGITS, rtol=1e-6)
    assert np.allclose(archive.features, FEATURES, rtol=1e-6)
    assert np.array_equal(archive.labels, LABELS)
    assert np.array_equal(archive.domains, DOMAINS)
    part = load_archive(path, domains=["bär"])
    assert np.array_equal(part.labels, LABELS[DOMAINS == "bär"])


def test_unlabelled_rows_are_left_out(tmp_path):
    labels = np.where(np.arange(N_ROWS) % 2, LABELS, -1)
    np.savez(tmp_path / "a.npz", **ARRAYS | {"labels": labels})
    empty = pl.Series([None if v < 0 else int(v) for v in labels], dtype=pl.Int64)
    as_table(label=empty).write_csv(tmp_path / "b.csv")
    for name in ("a.npz", "b.csv"):
        archive = load_archive(tmp_path / name, labelled=True)
        assert np.array_equal(archive.labels, LABELS[1::2])
        assert np.allclose(archive.logits, LOGITS[1::2], rtol=1e-6)


def test_class_names_come_from_the_columns(tmp_path):
    names = {"logit_0": "logit_cat", "logit_1": "logit_dog", "logit_2": "logit_owl"}
    texts = np.array(["cat", "dog", "owl"])[LABELS]
    as_table(label=texts).rename(names).write_csv(tmp_path / "a.csv")
    archive = load_archive(tmp_path / "a.csv")
    assert archive.class_names == ("cat", "dog", "owl")
    assert np.array_equal(archive.labels, LABELS)


def test_blocks_are_of_nearly_equal_size(tmp_path):
    np.save(tmp_path / "logits.npy", np.zeros((3_000_001, 2), np.float16))
    opened = open_predictions(tmp_path / "logits.npy")
    length = block_length(opened)
    sizes = [min(length, 3_000_001 - s) for s in range(0, 3_000_001, length)]
    assert max(sizes) - min(sizes) <= len(sizes)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "end"])
def test_csv_cells_may_hold_separators_and_ends_of_lines(tmp_path, ending, last):
    names = ["plain", "with, comma", "of two\nlines", 'with ""quotes""']
    rows = [f'{i}.5,{-i},"{names[i % 4]}"' for i in range(40)]
    text = ending.join(["logit_0,logit_1,domain", *rows, *([] if last else [""])])
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    whole = list(stream_blocks(open_predictions(path)))
    assert [len(block) for block in whole] == [40]
    assert whole[0].domains[:4].tolist() == [*names[:3], 'with "quotes"']
    parts = list(stream_blocks(open_predictions(path), n_rows=9))
    assert [part.start for part in parts] == [0, 9, 18, 27, 36]
    for name in ("logits", "domains"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(joined, getattr(whole[0], name))


def test_binary_scores_and_probabilities_of_one_class(tmp_path):
    scores = RNG.normal(size=50)
    np.savez(tmp_path / "s.npz", logits=scores, labels=np.zeros(50, int))
    p = 1 / (1 + np.exp(-scores))
    np.savez(tmp_path / "p.npz", probs=p, labels=np.zeros(50, int))
    one = load_archive(tmp_path / "s.npz").logits
    two = load_archive(tmp_path / "p.npz", input="probabilities").logits
    assert np.allclose(one[:, 1] - one[:, 0], scores)
    assert np.allclose(two[:, 1] - two[:, 0], scores)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "npy"])
def test_a_failure_in_the_middle_leaves_nothing(tmp_path, ending):
    def blocks():
        yield Written(np.full((5, 2), 0.5), {"confidence": np.full(5, 0.5)})
        raise ValueError("row 7 is bad")

    with pytest.raises(ValueError, match="row 7 is bad"):
        write_blocks(blocks(), tmp_path / f"out.{ending}")
    assert not list(tmp_path.iterdir())


def test_an_unknown_ending_is_refused_before_reading(tmp_path):
    with pytest.raises(ValueError, match=r"wanted one of .*\.parquet"):
        write_blocks(iter(()), tmp_path / "out.xlsx")


@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz"])
def test_pieces_beyond_the_memory_are_refused(tmp_path, monkeypatch, ending):
    values = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
    table = pl.DataFrame({"logits": values})
    path = tmp_path / f"x.{ending}"
    if ending == "parquet":
        table.write_parquet(path, row_group_size=3000)
    elif ending == "arrow":
        table.write_ipc(path)
    else:
        np.savez(path, logits=values)
    opened = open_predictions(path)
    assert 0.9 * values.nbytes < opened.held_bytes < 1.1 * values.nbytes
    assert sum(map(len, stream_blocks(opened))) == 3000
    monkeypatch.setattr("coolhead.io.reading.machine_memory", lambda: 1e4)
    with pytest.raises(ValueError, match=r"x\..*unpacks to .* small row groups"):
        next(stream_blocks(opened))
    table.write_parquet(tmp_path / "small.parquet", row_group_size=100)
    small = open_predictions(tmp_path / "small.parquet")
    assert small.held_bytes < 0.1 * values.nbytes
    assert sum(map(len, stream_blocks(small))) == 3000
