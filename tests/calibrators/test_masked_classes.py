"""A masked class changes nothing, for every calibrator the package has."""

import inspect
import warnings

import numpy as np
import pytest

import coolhead as ch
from contract.problems import calibrators
from coolhead.calibrators.base import TemperatureCalibrator
from simulate import shifted_domains

VALUES = [-1e4, -1e9, float(np.finfo(np.float32).min), -np.inf]
LOGITS, LABELS, FEATURES, DOMAINS = shifted_domains(
    150, 12, 4, temperatures=(1.0, 1.7, 3.0)
)
GIVEN = {
    "features": FEATURES,
    "sample_domain": DOMAINS,
    "target_features": FEATURES[300:] + 0.5,
}


KINDS = {
    name: type(calibrator)
    for name, calibrator in calibrators().items()
    if name != "OutsideCalibrator"
}


def fitted(kind, logits):
    accepted = inspect.signature(kind.fit).parameters
    given = {**GIVEN, "target_logits": logits[300:]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind().fit(
            logits,
            LABELS,
            **{name: given[name] for name in given if name in accepted},
        )


def test_the_list_is_not_empty():
    assert {"AutoCalibrator", "TransCal", "CPCS", "VectorScaling"} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_confidences_are_those_without_the_masked_class(kind):
    plain = fitted(kind, LOGITS)
    want = plain.predict_proba(LOGITS, FEATURES)
    for value in VALUES:
        masked = np.column_stack([LOGITS, np.full(len(LOGITS), value)])
        calibrator = fitted(kind, masked)
        found = calibrator.predict_proba(masked, FEATURES)
        sure, predicted = calibrator.confidence(masked, FEATURES)
        rows = np.ones(len(LOGITS), bool)
        if value == -1e4 and isinstance(calibrator, TemperatureCalibrator):
            # At a temperature of hundreds -1e4 is a low logit, and no mask.
            rows = calibrator.temperature(masked, FEATURES) < 200
        assert rows.mean() > 0.99
        np.testing.assert_allclose(found[rows, -1], 0.0, atol=1e-20)
        np.testing.assert_allclose(found[rows, :-1], want[rows], atol=1e-8)
        np.testing.assert_allclose(sure[rows], want.max(axis=1)[rows], atol=1e-8)
        np.testing.assert_array_equal(predicted[rows], want.argmax(axis=1)[rows])
        errors = [
            ch.expected_calibration_error(LABELS[rows], p[rows]) for p in (found, want)
        ]
        assert errors[0] == pytest.approx(errors[1])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_masks_that_differ_from_row_to_row_are_zeros(kind):
    rng = np.random.default_rng(0)
    masked = LOGITS.copy()
    hide = rng.random(masked.shape) < 0.4
    hide[np.arange(len(LABELS)), LABELS] = False
    hide[0] = np.arange(12) != LABELS[0]  # nothing but the label is left
    masked[hide] = -np.inf
    calibrator = fitted(kind, masked)
    found = calibrator.predict_proba(masked, FEATURES)
    assert (found[hide] == 0).all() and np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    assert found[0, LABELS[0]] == 1.0
    broken = masked.copy()
    broken[3] = -np.inf
    with pytest.raises(ValueError, match="-inf for every class in row 3"):
        calibrator.predict_proba(broken, FEATURES)
    broken = masked.copy()
    broken[4, LABELS[4]] = -np.inf
    calibrator = fitted(kind, broken)
    assert calibrator.n_masked_ == 1
    if isinstance(calibrator.status_, str):
        assert "1 rows left out, their class has probability zero" in calibrator.status_


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_no_rows_in_no_rows_out(kind):
    calibrator = fitted(kind, LOGITS)
    logits, features = LOGITS[:0], FEATURES[:0]
    assert calibrator.predict_proba(logits, features).shape == (0, 12)
    assert [part.shape for part in calibrator.confidence(logits, features)] == [
        (0,),
        (0,),
    ]
    if isinstance(calibrator, TemperatureCalibrator):
        assert calibrator.temperature(logits, features).shape == (0,)
        assert calibrator.details(logits, features).probabilities.shape == (0, 12)
    with pytest.raises(ValueError, match="0 sample"):
        kind().fit(
            logits,
            LABELS[:0],
            **{
                name: part[:0]
                for name, part in {**GIVEN, "target_logits": LOGITS}.items()
                if name in inspect.signature(kind.fit).parameters
            },
        )
