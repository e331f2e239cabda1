"""Predictions and scores of blocks equal those in memory."""

import dask
import dask.array as da
import numpy as np
import pytest
from spread_rows import make_rows

import coolhead.dask
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.metrics import (
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    negative_log_likelihood,
)
from coolhead.new_domain import NewDomain
from coolhead.numerics import softmax

from_here = None
pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture(scope="module")
def rows():
    return make_rows(11, 7000)


@pytest.fixture(scope="module")
def calibrator(rows):
    return TemperatureEnsemble(n_clusters=3).fit(
        rows["logits"], rows["labels"], features=rows["features"]
    )


@pytest.fixture(scope="module")
def spread(rows):
    return {
        name: da.from_array(values, chunks=(900, *values.shape[1:]))
        for name, values in rows.items()
    }


def test_predictions(calibrator, rows, spread):
    given = rows["logits"], rows["features"]
    lazily = spread["logits"], spread["features"]
    proba = coolhead.dask.predict_proba(calibrator, *lazily)
    assert proba.shape == (7000, 8) and proba.dtype == np.float32
    assert proba.chunks[0] == spread["logits"].chunks[0]
    np.testing.assert_allclose(
        proba.compute(), calibrator.predict_proba(*given), atol=1e-6
    )
    scale = coolhead.dask.temperature(calibrator, *lazily).compute()
    np.testing.assert_allclose(scale, calibrator.temperature(*given), rtol=1e-12)
    sure, predicted = dask.compute(*coolhead.dask.confidence(calibrator, *lazily))
    wanted_sure, wanted_class = calibrator.confidence(*given)
    np.testing.assert_allclose(sure, wanted_sure, rtol=1e-6)
    np.testing.assert_array_equal(predicted, wanted_class)


@pytest.mark.parametrize("calibrated", [True, False])
def test_evaluation(calibrator, rows, spread, calibrated):
    found = coolhead.dask.evaluate(
        calibrator if calibrated else None,
        spread["logits"],
        spread["labels"],
        features=spread["features"],
        sample_domain=spread["sample_domain"],
        n_bins=10,
    )
    assert list(found.by_domain) == ["art", "clipart", "photo"]
    parts = {None: found, **found.by_domain}
    for name, part in parts.items():
        own = rows["sample_domain"] == name if name else slice(None)
        logits, labels = rows["logits"][own], rows["labels"][own]
        scale = 1.0
        if calibrated:
            scale = calibrator.temperature(logits, rows["features"][own])
        sure, predicted = softmax.confidence(logits, scale)
        correct = predicted == labels
        assert part.n_samples == len(labels) == part.bin_counts.sum()
        assert part.accuracy == pytest.approx(correct.mean(), rel=1e-12)
        assert part.mean_confidence == pytest.approx(sure.mean(dtype=float), rel=1e-6)
        error = expected_calibration_error(correct, sure, n_bins=10)
        assert part.expected_calibration_error == pytest.approx(error, abs=1e-6)
        loss = negative_log_likelihood(labels, logits=logits, temperature=scale)
        assert part.negative_log_likelihood == pytest.approx(loss, rel=1e-6)
        brier = brier_score(labels, logits=logits, temperature=scale)
        assert part.brier_score == pytest.approx(brier, rel=1e-6)
        proba = softmax.softmax(logits, scale)
        classwise = classwise_calibration_error(labels, proba, n_bins=10)
        assert part.classwise_calibration_error == pytest.approx(classwise, rel=1e-5)


def test_error_of_the_same_confidences(calibrator, rows, spread):
    """The sums of the bins are the same numbers, added in another order."""
    given = rows["logits"], rows["features"]
    sure, predicted = calibrator.confidence(*given)
    correct = predicted == rows["labels"]
    sure[:30] = np.linspace(0, 1, 30)  # some on the edges of bins
    for n_bins in (1, 10, 15):
        found = coolhead.dask.expected_calibration_error(
            da.from_array(correct, chunks=640), da.from_array(sure, chunks=640),
            n_bins=n_bins,
        )  # fmt: skip
        wanted = expected_calibration_error(correct, sure, n_bins=n_bins)
        assert found == pytest.approx(wanted, abs=1e-12)
    proba = calibrator.predict_proba(*given)
    found = coolhead.dask.expected_calibration_error(
        spread["labels"], da.from_array(proba, chunks=(500, 3))
    )
    wanted = expected_calibration_error(rows["labels"], proba)
    assert found == pytest.approx(wanted, abs=1e-12)


def test_what_is_wrong_is_named(calibrator, spread):
    with pytest.raises(ValueError, match="features is missing: TemperatureEnsemble"):
        coolhead.dask.predict_proba(calibrator, spread["logits"])
    with pytest.raises(ValueError, match="logits has 5 columns; wanted 8, as in fit"):
        coolhead.dask.confidence(
            calibrator, spread["logits"][:, :5], spread["features"]
        )


def test_scores_of_one_pass(rows, calibrator):
    """Three walks over the logits in one give the same numbers."""
    logits, labels = rows["logits"], rows["labels"]
    scale = calibrator.temperature(logits, rows["features"])
    found = softmax.score_rows(logits, labels, scale)
    sure, predicted = softmax.confidence(logits, scale)
    np.testing.assert_array_equal(found.confidence.astype(np.float32), sure)
    np.testing.assert_array_equal(found.predicted, predicted)
    np.testing.assert_array_equal(
        found.log_loss, softmax.log_loss_rows(logits, labels, scale)
    )
    np.testing.assert_array_equal(
        found.brier, softmax.brier_rows(logits, labels, scale)
    )


def test_a_new_domain_of_blocks_is_that_of_all_rows(rows, spread, calibrator):
    whole = NewDomain(calibrator, rows["logits"], rows["features"])
    found = coolhead.dask.new_domain(calibrator, spread["logits"], spread["features"])
    assert (found.accuracy, found.drawn_from) == (whole.accuracy, None)
    asked = found.rows_to_label(20)
    np.testing.assert_array_equal(asked, whole.rows_to_label(20))
    moved = found.with_labels(asked, rows["labels"][asked]).calibrator
    here = moved.temperature(rows["logits"], rows["features"])
    there = coolhead.dask.temperature(moved, spread["logits"], spread["features"])
    np.testing.assert_allclose(there.compute(), here, rtol=1e-6)


def test_a_new_domain_of_many_rows_is_told_from_a_sample(rows, spread, calibrator):
    whole = NewDomain(calibrator, rows["logits"], rows["features"])
    found = coolhead.dask.new_domain(
        calibrator, spread["logits"], spread["features"], sample_rows=1000
    )
    assert (found.n_rows, found.drawn_from) == (1000, 7000)
    assert "from 1000 rows out of 7000" in str(found)
    assert abs(found.accuracy.estimate - whole.accuracy.estimate) < 0.02
    asked = found.rows_to_label(30)
    assert (asked % 7 == 0).all(), "numbers among all rows"
    known = found.with_labels(asked, rows["labels"][asked])
    np.testing.assert_array_equal(known.labelled_rows, np.sort(asked))
    with pytest.raises(ValueError, match=r"rows holds 8, .* wanted rows of the sample"):
        found.with_labels([8], [0])
