"""What fuzzing the readers found, and a small part of the fuzzing itself."""

import io
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.persist import load_calibrator, save_calibrator
from coolhead.predictions import load_predictions, open_predictions, stream_blocks

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
        load_predictions(tmp_path / "folder")
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
        load_calibrator(path) if name == "c.skops" else load_predictions(path)
    except (ValueError, OSError) as error:
        assert "\n" not in str(error)
