"""One answer for terminal and report, and never the advice to make things worse."""

import polars as pl
import pytest

from coolhead.report.answer import choose_method, describe_answer
from coolhead.report.tables import RunScores


def invented(**values):
    """Scores of five splits, the given mean ECE for every method."""
    rows = [
        {
            "split": f"s{i} > t{i}",
            "target": f"t{i}",
            "calibration": "c",
            "seed": 0,
            "method": method.replace("_", "-"),
            "ece_mean": ece + i / 10,
            "ece_null": 1.0,
        }
        for method, ece in values.items()
        for i in range(5)
    ]
    return RunScores(pl.DataFrame(rows))


def test_where_the_classifier_is_best_left_alone_it_is_said():
    scores = invented(uncalibrated=16.0, source_only=20.0, set_level=28.6)
    found = describe_answer(scores, "split")
    assert not found["recommended"]
    assert found["sentence"].startswith("Leave the classifier uncalibrated: no method")
    assert "Use" not in found["sentence"]


def test_where_the_source_alone_is_best_it_is_said():
    scores = invented(uncalibrated=16.0, source_only=9.0, set_level=10.0)
    found = describe_answer(scores, "split")
    assert (choose_method(scores), found["recommended"]) == ("source-only", True)
    assert found["sentence"].startswith(
        "Use Source-only, rows of other domains do not help here: over 5 splits it"
    )


@pytest.mark.parametrize("better", ["set-level", "source-only"])
def test_the_lowest_of_all_that_need_no_target_is_used(better):
    values = {"set_level": 12.0, "source_only": 12.0, better.replace("-", "_"): 8.0}
    scores = invented(uncalibrated=16.0, target_only=2.0, transcal=3.0, **values)
    assert choose_method(scores) == better
