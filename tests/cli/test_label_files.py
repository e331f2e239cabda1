"""Files of labels as people, or somebody else, may hand them over."""

import pytest

from coolhead.cli.new_domain import read_labels


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"row,label\n1,\xff\n", "is no CSV file in UTF-8"),
        (b"row,label\n1," + b"9" * 200_000, "is no CSV file in UTF-8: field larger"),
        ("row,label\n\N{SUPERSCRIPT TWO},1\n".encode(), "line 2 holds row '²'"),
        (b"row,label\n99999999999999999999,1\n", "wanted a row number"),
    ],
)
def test_what_is_no_number_names_the_file(tmp_path, content, reason):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason) as failure:
        read_labels(path)
    assert str(path) in str(failure.value)


@pytest.mark.parametrize("words", [(), ("--rows", 5, "--width", 0.1)])
def test_rows_or_width(run, npz, tmp_path, words):
    # The calibrator is not even read.
    code, _, err = run("label", npz, npz, "--out", tmp_path / "l.csv", *words)
    assert code == 2 and "wanted one of --rows and --width" in err
