"""Small files that unpack to a lot, and files that say one thing twice."""

import io
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

from coolhead.io.archive import DomainArchive
from coolhead.io.reading import load_archive, open_predictions, stream_blocks

LOGITS = np.random.default_rng(0).normal(size=(6, 3))


def npz_of_zeros(path, **shapes):
    """Arrays of zeros, written without holding them: name -> (type, shape)."""
    np.savez(path, logits=LOGITS, labels=np.arange(6) % 3)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, (dtype, shape) in shapes.items():
            with archive.open(f"{name}.npy", "w") as stream:
                header = {"descr": dtype, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
                left = int(np.prod(shape)) * np.dtype(dtype).itemsize
                for start in range(0, left, 2**22):
                    stream.write(bytes(min(2**22, left - start)))
    return path


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "reason"),
    [
        ("class_names", "<U1", (10**5,), "100000 names, the logits have 3 columns"),
        ("class_names", "<U1", (2 * 10**7,), "class_names takes 80000000 bytes"),
        ("domain_names", "<U40000000", (1,), "domain_names takes 160000000 bytes"),
        ("metadata", "<U40000000", (), "metadata takes 160000000 bytes"),
        ("domains", "<U3000000", (6,), "room for 3000000 characters in every row"),
        ("ids", "|S9999999", (6,), "room for 9999999 characters in every row"),
    ],
)
def test_text_that_nobody_wrote_is_refused(tmp_path, name, dtype, shape, reason):
    path = npz_of_zeros(tmp_path / "x.npz", **{name: (dtype, shape)})
    assert path.stat().st_size < 500_000
    with pytest.raises(ValueError, match=reason) as failure:
        open_predictions(path)
    assert "x.npz" in str(failure.value)


READ = """
import resource, sys
from coolhead.io import load_archive, open_predictions, stream_blocks
import polars
limit = int(sys.argv[2]) + int(open("/proc/self/statm").read().split()[5]) * 4096
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
print(sum(len(block) for block in stream_blocks(open_predictions(sys.argv[1]))))
print(len(load_archive(sys.argv[1], labelled=True).domain_names))
"""


def test_wide_text_takes_the_room_of_what_it_says(tmp_path):
    path, n_rows = tmp_path / "x.npz", 40_000
    np.savez(path, logits=np.tile(LOGITS, (n_rows // 6 + 1, 1))[:n_rows])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, values in {
            "labels": np.zeros(n_rows, int),
            "domains": np.full(n_rows, "town", "<U2000"),
        }.items():
            buffer = io.BytesIO()
            np.save(buffer, values)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    words = [sys.executable, "-c", READ, str(path), str(2 * 10**8)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.stdout.split() == [str(n_rows), "1"], found.stderr[-500:]


@pytest.mark.parametrize("name", ["logits.npy", "logits", "class_names.npy"])
def test_two_arrays_of_one_name(tmp_path, name):
    path = tmp_path / "x.npz"
    np.savez(path, logits=LOGITS, class_names=["a", "b", "c"])
    buffer = io.BytesIO()
    np.save(buffer, LOGITS if "logits" in name else np.array(["c", "b", "a"]))
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.filterwarnings("ignore", message="Duplicate name")
        archive.writestr(name, buffer.getvalue())
    with pytest.raises(ValueError, match=r"x\.npz holds 2 arrays"):
        open_predictions(path)


@pytest.mark.parametrize("column", ["logit_1", "label", "domain", "feature_0"])
def test_a_column_that_stands_twice(tmp_path, column):
    path = tmp_path / "x.csv"
    path.write_text(f"logit_0,logit_1,feature_0,label,domain,{column}\n1,2,3,0,a,1\n")
    with pytest.raises(ValueError, match=f"has the column {column} twice"):
        open_predictions(path)
    path.write_text("logit_0,logit_1,label,note,note\n1,2,0,x,y\n")
    assert len(load_archive(path)) == 1


def test_many_names_are_compared_quickly():
    names = [str(number) for number in range(100_000)]
    archive = DomainArchive(LOGITS[:2], domains=[0, 1], domain_names=names)
    assert len(archive.domain_names) == 100_000
    with pytest.raises(ValueError, match="holds '7' twice"):
        archive.replace(domains=[0, 1], domain_names=[*names, "7"])


def test_streamed_and_whole_files_give_the_same_ids(tmp_path):
    ids = np.array(["päth/1", "", "c", "dd", "e" * 50, "f"])
    DomainArchive(LOGITS, ids=ids).save(tmp_path / "a.safetensors")
    np.savez(tmp_path / "b.npz", logits=LOGITS, ids=ids)
    header = "id,logit_0,logit_1,logit_2\n"
    rows = [",".join([i, *map(str, z)]) for i, z in zip(ids, LOGITS, strict=True)]
    (tmp_path / "c.csv").write_text(header + "\n".join(rows) + "\n")
    for name in ("a.safetensors", "b.npz", "c.csv"):
        blocks = stream_blocks(open_predictions(tmp_path / name), n_rows=4)
        assert [str(i) for block in blocks for i in block.ids] == ids.tolist()
        assert load_archive(tmp_path / name).ids.tolist() == ids.tolist()


def test_a_file_of_probabilities_is_refused_at_its_end_but_no_single_row(tmp_path):
    scores = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    np.save(tmp_path / "logits.npy", scores)
    with pytest.raises(ValueError, match="holds probabilities"):
        list(stream_blocks(open_predictions(tmp_path / "logits.npy"), n_rows=4))
    np.save(tmp_path / "logits.npy", scores[:1])
    assert len(list(stream_blocks(open_predictions(tmp_path / "logits.npy")))) == 1


def test_a_row_of_a_later_block_is_named_by_its_number_in_the_file(tmp_path):
    scores = np.full((6, 3), 1 / 3)
    scores[4] = [0.5, 0.6, 0.7]
    np.save(tmp_path / "probs.npy", scores)
    file = open_predictions(tmp_path / "probs.npy")
    with pytest.raises(ValueError, match="row 4 is no probability vector"):
        list(stream_blocks(file, scores="probabilities", n_rows=2))
