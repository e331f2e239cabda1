"""Whatever comes instead of good rows and labels: a sentence, and nothing is lost."""

import numpy as np
import pytest
from scipy.special import softmax

import coolhead as ch
from coolhead.new_domain import NewDomain, learn_evidence
from simulate import logits_and_labels

LABELS = {
    "a row beyond the batch": (
        [300],
        [0],
        "rows holds 300, which is no row of this batch",
    ),
    "a row before the batch": (
        [-1],
        [0],
        "rows holds -1, which is no row of this batch",
    ),
    "rows that are no numbers": ([0.5], [0], "wanted row numbers"),
    "a table of rows": ([[1, 2]], [0, 1], r"rows has shape \(1, 2\)"),
    "no rows": (np.zeros(0, int), [], "rows is empty"),
    "an empty list": ([], [], "rows is empty"),
    "one row, two labels": ([1, 1], [0, 1], "contradict .* row 1 is 0 and 1"),
    "another label than before": ([3], [2], "contradict .* row 3 is 1 and 2"),
    "an unknown class": ([1], [7], "labels holds 7 in row 1 "),
    "a class below zero": ([1], [-1], "labels holds -1 in row 1 "),
    "a name for a class": ([1], ["cat"], "wanted class numbers"),
    "too few labels": ([1, 2], [0], "wanted one label per row, 2"),
    "NaN as a label": ([1], [np.nan], "drop rows whose label is not known"),
}


@pytest.mark.parametrize("case", LABELS)
def test_bad_labels_are_refused_and_what_was_known_stays(there, case):
    rows, labels, message = LABELS[case]
    known = there.with_labels([3, 5], [1, 0])
    before = known.accuracy, known.calibrator.offset
    with pytest.raises(ValueError, match=message):
        known.with_labels(rows, labels)
    assert known.labelled_rows.tolist() == [3, 5]
    assert (known.accuracy, known.calibrator.offset) == before
    again = known.with_labels([3], [1])
    assert again.n_labels == 2, "the same label once more is no contradiction"


BATCHES = {
    "zero rows": (lambda x, f: (x[:0], f[:0]), "logits is empty"),
    "NaN in the logits": (lambda x, f: (spoil(x), f), "logits contains NaN in row 4"),
    "NaN in the features": (lambda x, f: (x, spoil(f)), "features contains NaN"),
    "infinite features": (lambda x, f: (x, spoil(f, np.inf)), "features contains inf"),
    "another number of classes": (lambda x, f: (x[:, :3], f), "X has 3 features"),
    "features of other rows": (lambda x, f: (x, f[:-1]), "features has 299 rows"),
    "no features": (lambda x, f: (x, None), "features is missing"),
    "probabilities": (
        lambda x, f: (softmax(x, axis=1), f),
        "logits holds probabilities",
    ),
}


def spoil(array, value=np.nan):
    array = array.copy()
    array[4, 1] = value
    return array


@pytest.mark.parametrize("case", BATCHES)
def test_bad_batches_are_refused(world, case):
    cal, logits, features, _ = world
    change, message = BATCHES[case]
    with pytest.raises(ValueError, match=message):
        NewDomain(cal, *change(logits, features))


def one_domain(logits, labels):
    cal = ch.TemperatureScaling().fit(logits, labels)
    return cal, learn_evidence(cal, logits, labels)


def no_evidence(logits, labels):
    return ch.TemperatureScaling().fit(logits, labels), None


def two_domains(logits, labels):
    named = {"sample_domain": np.arange(len(labels)) % 2}
    cal = ch.TemperatureScaling().fit(logits, labels, **named)
    return cal, learn_evidence(cal, logits, labels, **named)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (one_domain, "fewer than two calibration domains: no spread could be measured"),
        (no_evidence, "fitted without evidence: the spread of domains is a default"),
    ],
)
def test_who_knows_no_spread_says_so_and_is_wider(make, said):
    logits, labels = logits_and_labels(600, 4, scale=1.5)
    seen, new = (logits[:300], labels[:300]), logits[300:]
    cal, known = make(*seen)
    there = NewDomain(cal, new, evidence=known)
    assert said in str(there) and said in there._repr_html_()
    cal, known = two_domains(*seen)
    better = NewDomain(cal, new, evidence=known)
    assert said not in str(better)
    widths = [one.accuracy.high - one.accuracy.low for one in (there, better)]
    assert widths[0] > widths[1]
    moved = there.with_labels([0, 1, 2], labels[300:303])
    assert moved.n_labels == 3 and np.isfinite(moved.calibrator.offset)


def test_rows_nobody_asked_for_are_taken_and_noted(there, world):
    rows = np.setdiff1d(np.arange(300), there.rows_to_label(100))[:30]
    assert "were not suggested" in str(there.with_labels(rows, world[3][rows]))
    rows = there.rows_to_label(30)
    assert "not asked" not in str(there.with_labels(rows, world[3][rows]))


def test_refusals_name_rows_as_they_are_numbered(world):
    cal, logits, features, _ = world
    few = slice(0, 300, 10)
    numbers = np.arange(0, 300, 10)
    there = NewDomain(cal, logits[few], features[few], row_numbers=numbers)
    known = there.with_labels([20], [1])
    assert known.labelled_rows.tolist() == [20]
    with pytest.raises(ValueError, match="row 20 is 1 and 2"):
        known.with_labels([20], [2])
    with pytest.raises(ValueError, match="labels holds 9 in row 30"):
        known.with_labels([30], [9])
    with pytest.raises(ValueError, match=r"rows holds 5, .* wanted rows of the sample"):
        known.with_labels([5], [0])


@pytest.mark.parametrize("numbers", [[3, 2, 1], [0, 1], [0.0, 1.0, 2.0], [-1, 0, 1]])
def test_row_numbers_that_are_none(world, numbers):
    cal, logits, features, _ = world
    with pytest.raises(ValueError, match="row_numbers has shape"):
        NewDomain(cal, logits[:3], features[:3], row_numbers=numbers)


@pytest.mark.parametrize(
    "calibrator", [object(), ch.baselines.HistogramBinning(), None]
)
def test_what_is_no_temperature_is_refused(world, calibrator):
    with pytest.raises(TypeError, match=r"wanted a (fitted )?calibrator"):
        NewDomain(calibrator, world[1])
