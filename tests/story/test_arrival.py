"""What the demo ends with: the answer on arrival in a domain nobody has data from."""

import re

import pytest

from coolhead.lab.commands.experiments import arrive


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_the_truth_lies_in_both_intervals_and_labels_narrow_them():
    heading, before, after, truth = arrive()
    assert "amazon arrives at tweets" in heading
    assert "no labels" in before and "20 labels" in after
    limits = [
        tuple(map(int, re.search(r"\((\d+) to (\d+)\)", line).groups()))
        for line in (before, after)
    ]
    right = int(re.search(r"(\d+) %$", truth).group(1))
    assert all(low <= right <= high for low, high in limits)
    (low, high), (lower, higher) = limits
    assert higher - lower < high - low
