"""Pages of mapped files are given back, and come again."""

import numpy as np
import pytest

from coolhead.io.arrays import give_back_pages


def resident(path):
    """Kilobytes of the file that this process holds."""
    total, inside = 0, False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            first = line.split()[0]
            if "-" in first and not first.endswith(":"):
                inside = line.rstrip().endswith(str(path))
            elif inside and first == "Rss:":
                total += int(line.split()[1])
    return total


def test_pages_are_given_back_and_read_again(tmp_path):
    path = tmp_path / "numbers"
    np.arange(1_000_000.0).tofile(path)
    mapped = np.memmap(path, np.float64, "r", shape=(1000, 1000))
    try:
        before = mapped.sum(), resident(path)
    except FileNotFoundError:
        pytest.skip("this system has no /proc")
    give_back_pages(mapped[10:], None, np.ones(3))
    assert before[1] > 7_000 > resident(path)
    assert mapped.sum() == before[0]


@pytest.mark.parametrize("mode", ["c", "r+"])
def test_what_was_written_to_a_map_stays(tmp_path, mode):
    path = tmp_path / "numbers"
    np.zeros(10_000).tofile(path)
    mapped = np.memmap(path, np.float64, mode, shape=(100, 100))
    mapped[:] = 7
    mapped.flags.writeable = False
    give_back_pages(mapped[10:])
    assert (mapped == 7).all()
