"""What the metrics take and what they refuse."""

import numpy as np
import pandas
import polars
import pytest

from coolhead.metrics import (
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    risk_coverage_curve,
    signed_calibration_gap,
    top_label_brier_score,
)

CORRECT = [1, 0, 1, 1]
CONFIDENCE = [0.9, 0.6, 0.75, 0.3]
TOP_LABEL = [
    expected_calibration_error,
    maximum_calibration_error,
    signed_calibration_gap,
    top_label_brier_score,
    reliability_curve,
    risk_coverage_curve,
]


@pytest.mark.parametrize("metric", TOP_LABEL)
@pytest.mark.parametrize(
    ("correct", "confidence", "message"),
    [
        (CORRECT, [0.9, np.nan, 0.5, 0.5], "confidence holds nan in row 1"),
        (CORRECT, [0.9, np.inf, 0.5, 0.5], "confidence holds inf in row 1"),
        (CORRECT, [0.9, 0.5, 1.5, 0.5], r"1.5 in row 2; wanted values in \[0, 1\]"),
        (CORRECT, [-0.1, 0.5, 0.5, 0.5], "confidence holds -0.1 in row 0"),
        ([0, 1, 2, 1], CONFIDENCE, "correctness holds 2 in row 2; wanted 0 or 1"),
        ([0, 1, 0.5, 1], CONFIDENCE, "correctness holds 0.5 in row 2"),
        ([0, 1, np.nan, 1], CONFIDENCE, "correctness holds nan in row 2"),
        ([0, 1], CONFIDENCE, r"correctness has shape \(2,\); wanted \(4,\)"),
        ([[0], [1], [1], [0]], CONFIDENCE, r"correctness has shape \(4, 1\)"),
        ([], [], r"confidence has shape \(0,\)"),
        (CORRECT, ["a", "b", "c", "d"], "confidence is not numeric"),
        (["a", "b", "c", "d"], CONFIDENCE, "correctness is not numeric"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], "row 0 is no probability vector"),
        ([0, 2], [[0.5, 0.5], [0.5, 0.5]], "labels holds 2 in row 1"),
        ([0.0, 1.0], [[0.5, 0.5], [0.5, 0.5]], "labels has type float64"),
        ([0], [[0.5, 0.5], [0.5, 0.5]], "labels has 1 entries"),
        (0, 0.5, "probabilities has shape"),
    ],
)
def test_refused(metric, correct, confidence, message):
    with pytest.raises(ValueError, match=message):
        metric(correct, confidence)


@pytest.mark.parametrize(
    "kind",
    [
        np.array,
        tuple,
        pandas.Series,
        polars.Series,
        lambda values: np.array(values, np.float16),
        lambda values: np.repeat(np.array(values), 2)[::2],
    ],
)
def test_kinds_of_vectors(kind):
    expected = expected_calibration_error(CORRECT, CONFIDENCE)
    value = expected_calibration_error(kind(CORRECT), kind(CONFIDENCE))
    assert value == pytest.approx(expected, abs=1e-3)
    right = np.array(CORRECT, bool)
    assert expected_calibration_error(right, kind(CONFIDENCE)) == pytest.approx(
        expected, abs=1e-3
    )


def test_frames_of_probabilities():
    table = np.array([[0.9, 0.1], [0.4, 0.6]])
    expected = expected_calibration_error([0, 0], table)
    for frame in (pandas.DataFrame(table), polars.DataFrame(table)):
        assert expected_calibration_error([0, 0], frame) == expected


def test_read_only_arrays_are_left_alone():
    confidence = np.array([0.9, 1 + 1e-7])
    confidence.setflags(write=False)
    # The excess over one is a rounding error of the softmax and cut off.
    assert expected_calibration_error([1, 1], confidence) == pytest.approx(0.05)
    assert confidence[1] > 1


def test_results_are_plain_floats():
    for metric in TOP_LABEL[:4]:
        assert type(metric(CORRECT, CONFIDENCE)) is float
