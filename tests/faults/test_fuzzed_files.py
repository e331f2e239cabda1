"""What fuzzing the readers found, and a small part of the fuzzing itself."""

import base64
import io
import signal
import struct
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.io.calibrators import load_calibrator, save_calibrator
from coolhead.io.parquet_pages import check_pages
from coolhead.io.reading import load_archive, open_predictions, stream_blocks

QUIET = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def npy_with_header(text, content=b"\0" * 64):
    header = text.encode("latin1").ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    "header",
    [
        # Each made NumPy or Python's parser fail in another way.
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, '''",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 3), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 3), }",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (3, 3), }",
        "{'descr': '<f4', 'fortran_order': 7, 'shape': (3, 3), }",
        "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
        "{'a\\x00': 1}",
    ],
)
def test_odd_headers_are_refused_in_one_line(tmp_path, header):
    path = tmp_path / "x.npy"
    path.write_bytes(npy_with_header(header))
    with pytest.raises(ValueError, match=r"x\.npy") as failure:
        open_predictions(path)
    assert "\n" not in str(failure.value)


def test_text_that_is_no_text_is_refused(tmp_path):
    domains = np.array(["a", "b"])
    buffer = io.BytesIO()
    np.save(buffer, domains)
    broken = buffer.getvalue()[:-8] + struct.pack("<II", 97, 0x7FFFFFFF)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "domains.npy").write_bytes(broken)
    np.save(tmp_path / "folder" / "logits.npy", np.array([[1.0, 2], [3, 5]]))
    np.save(tmp_path / "folder" / "labels.npy", np.array([0, 1]))
    with pytest.raises(ValueError, match="no text"):
        load_archive(tmp_path / "folder")
    with pytest.raises(ValueError, match="no text"):
        list(stream_blocks(open_predictions(tmp_path / "folder")))


@pytest.mark.parametrize("number", ["2", "00", "999999999999", "9" * 5000])
def test_columns_with_odd_numbers_are_refused_at_once(tmp_path, number):
    path = tmp_path / "x.csv"
    path.write_text(f"logit_0,logit_{number}\n1,2\n")
    with pytest.raises(ValueError, match=r"x\.csv") as failure:
        open_predictions(path)
    assert "\n" not in str(failure.value)


def test_a_column_whose_name_is_many_lines(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,"b\n1,2\n3,4\n')
    with pytest.raises(ValueError, match="columns found") as failure:
        open_predictions(path)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("found", "forged", "reason"),
    [
        # Of the first data page, number of values: 9 made -8, which ended the process.
        (b"\x2c\x15\x12", b"\x2c\x15\x0f", "byte 4 claims -8 values; wanted 0 to 9"),
        (b"\x2c\x15\x12", b"\x2c\x15\x7e", "byte 4 claims 63 values; wanted 0 to 9"),
        (
            b"\x2c\x15\x12",
            b"\x2c\x15\x10",
            "1 values of a column are in none of its pages",
        ),
        # Of the dictionary of labels: more values than its 24 bytes can hold.
        (b"\x4c\x15\x06", b"\x4c\x15\x7e", "claims 63 values; wanted 0 to 24"),
        # Of the first page, bytes once unpacked and bytes in the file.
        (b"\x00\x15\x54", b"\x00\x15\x53", "byte 4 claims -42 bytes unpacked"),
        (b"\x54\x15\x54", b"\x54\x15\x7e", "byte 4 claims 63 bytes; wanted 0 to 42"),
        (b"\x54\x15\x54", b"\x54\x25\x54", "byte 4 claims None bytes"),
    ],
)
def test_pages_that_claim_more_than_they_hold(run, tmp_path, found, forged, reason):
    path, out = tmp_path / "x.parquet", tmp_path / "c.skops"
    numbers = np.arange(9, dtype=np.float32)
    columns = {"logit_0": numbers, "logit_1": numbers[::-1], "label": [0, 1, 2] * 3}
    pl.DataFrame(columns).write_parquet(path, compression="uncompressed")
    content = path.read_bytes()
    assert found in content
    path.write_bytes(content.replace(found, forged, 1))
    code, _, message = run("fit", path, "--method", "set-level", "--out", out)
    assert code == 1
    assert message.count("\n") == 1
    assert f"{path} cannot be read: " in message
    assert reason in message
    assert not out.exists()


READ = "import polars, sys; polars.scan_parquet(sys.argv[1]).collect()"


def test_the_page_check_is_still_needed(tmp_path):
    """Without it one changed byte ends the process; once it does not, it can go."""
    path, numbers = tmp_path / "x.parquet", np.arange(9, dtype=np.float32)
    pl.DataFrame({"logit_0": numbers}).write_parquet(path, compression="uncompressed")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"\x2c\x15\x12", b"\x2c\x15\x0f", 1))
    words = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode == -signal.SIGABRT


def test_an_encrypted_column_that_is_not_used_is_no_damage(tmp_path):
    """Its pages can be read by no one here; the others are whole."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def __init__(self, settings):
            super().__init__()

        def wrap_key(self, key_bytes, master_key_identifier):
            return base64.b64encode(key_bytes)

    factory = encryption.CryptoFactory(Keys)
    wanted = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["patient"]}, plaintext_footer=True
    )
    properties = factory.file_encryption_properties(
        encryption.KmsConnectionConfig(), wanted
    )
    path, numbers = tmp_path / "x.parquet", np.arange(9.0)
    columns = {"logit_0": numbers, "logit_1": numbers[::-1], "patient": numbers}
    columns["label"] = np.arange(9) % 2
    table = pyarrow.table({name: pyarrow.array(v) for name, v in columns.items()})
    parquet.write_table(table, path, encryption_properties=properties)
    np.testing.assert_array_equal(load_archive(path).labels, columns["label"])


@pytest.mark.parametrize("writer", ["polars", "arrow 1.0", "arrow 2.0"])
def test_whole_files_of_many_pages_pass(tmp_path, writer):
    rng = np.random.default_rng(0)
    path, n = tmp_path / "x.parquet", 3000
    columns = {"number": rng.normal(size=n), "same": np.zeros(n), "truth": [True] * n}
    table = pl.DataFrame(columns).with_columns(
        gaps=pl.when(pl.col("number") > 0).then("number"),
        nothing=pl.lit(None, pl.Float32),
        arrays=pl.Series(rng.normal(size=(n, 3))),
        lists=pl.Series([[1.0] * (i % 4) for i in range(n)]),
        text=pl.Series([str(i % 7) * (i % 3) for i in range(n)]),
    )
    if writer == "polars":
        table.write_parquet(path, row_group_size=1000, data_page_size=800)
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        sizes = {"row_group_size": 1000, "data_page_size": 800, "write_batch_size": 50}
        version = {"data_page_version": writer.split()[1], "write_page_checksum": True}
        parquet.write_table(table.to_arrow(), path, **sizes, **version)
    check_pages(path)


@QUIET
@given(data=st.binary(max_size=300), ending=st.sampled_from(["npz", "npy", "csv"]))
def test_random_bytes_are_refused(tmp_path, data, ending):
    path = tmp_path / f"x.{ending}"
    path.write_bytes(data)
    try:
        opened = open_predictions(path)
        list(stream_blocks(opened))
    except (ValueError, OSError) as error:
        assert "\n" not in str(error)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    save_calibrator(TemperatureScaling().fit(logits, labels), folder / "c.skops")
    np.savez(folder / "p.npz", logits=logits, labels=labels)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@QUIET
@given(data=st.data(), name=st.sampled_from(["c.skops", "p.npz"]))
def test_changed_bytes_are_refused_or_harmless(tmp_path, whole, data, name):
    content = bytearray(whole[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path = tmp_path / name
    path.write_bytes(content)
    try:
        load_calibrator(path) if name == "c.skops" else load_archive(path)
    except (ValueError, OSError) as error:
        assert "\n" not in str(error)
