"""One pass over labelled rows: its scores are those of the public functions."""

import numpy as np
import pytest

import coolhead as ch
from coolhead.evaluate import evaluate_domains
from coolhead.metrics import (
    brier_score,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    expected_calibration_error_null,
    maximum_calibration_error,
    negative_log_likelihood,
    signed_calibration_gap,
    top_label_brier_score,
)
from coolhead.metrics.scored import ScoreSums, score_calibrated

PUBLIC = {
    "ece": expected_calibration_error,
    "ece_debiased": debiased_calibration_error,
    "ece_max": maximum_calibration_error,
    "ece_null": lambda labels, p, n_bins: expected_calibration_error_null(
        p, n_bins=n_bins
    ),
    "ece_classwise": classwise_calibration_error,
    "signed_gap": lambda labels, p, n_bins: signed_calibration_gap(labels, p),
    "nll": lambda labels, p, n_bins: negative_log_likelihood(labels, p),
    "brier": lambda labels, p, n_bins: brier_score(labels, p),
    "top_brier": lambda labels, p, n_bins: top_label_brier_score(labels, p),
}


def world(n_rows, n_classes, dtype, seed=0):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((n_rows, n_classes))
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits.astype(dtype), labels, rng.integers(0, 3, n_rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [1, 10, 15])
@pytest.mark.parametrize(("n_rows", "n_classes"), [(900, 2), (70_000, 4), (600, 700)])
def test_every_domain_has_the_scores_of_the_public_functions(
    n_rows, n_classes, n_bins, dtype
):
    logits, labels, codes = world(n_rows, n_classes, dtype)
    scored = score_calibrated(
        None, logits, labels, n_bins=n_bins, codes=codes, n_domains=3
    )
    probabilities = score_probabilities(logits)
    lines = scored.sums(n_bins, 3)
    for rows, line in [
        *((codes == code, line) for code, line in enumerate(lines)),
        (slice(None), lines.sum(axis=0)),
        (slice(None), scored.together().sums(n_bins)[0]),
        (codes == 1, scored.domain(1).sums(n_bins)[0]),
    ]:
        found = ScoreSums(line, n_bins).scores()
        for name, metric in PUBLIC.items():
            wanted = metric(labels[rows], probabilities[rows], n_bins=n_bins)
            near = 1e-12 if dtype is np.float64 else 2e-6
            assert found[name] == pytest.approx(wanted, abs=near), name


def score_probabilities(logits):
    """In the precision of the logits, as everywhere."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_sums_of_blocks_add_up_to_those_of_all_rows():
    logits, labels, codes = world(5000, 6, np.float64)
    settings = {"n_bins": 12, "n_domains": 3}
    whole = score_calibrated(None, logits, labels, codes=codes, **settings)
    parts = sum(
        score_calibrated(
            None, logits[part], labels[part], codes=codes[part], **settings
        ).sums(12, 3)
        for part in (slice(0, 1), slice(1, 777), slice(777, None))
    )
    np.testing.assert_allclose(parts, whole.sums(12, 3), atol=1e-9)


def test_a_method_that_changes_the_class_scores_is_scored_alike():
    logits, labels, _ = world(2000, 5, np.float64)
    calibrator = ch.baselines.VectorScaling().fit(logits, labels)
    probabilities = calibrator.predict_proba(logits)
    scored = score_calibrated(calibrator, logits, labels, n_bins=15)
    found = ScoreSums(scored.sums(15)[0], 15)
    for name, metric in PUBLIC.items():
        wanted = metric(labels, probabilities, n_bins=15)
        assert found.scores()[name] == pytest.approx(wanted, abs=1e-12), name
    for number in range(5):
        wanted = expected_calibration_error(labels == number, probabilities[:, number])
        assert found.class_errors[number] == pytest.approx(wanted, abs=1e-12)


def test_an_evaluation_has_bins_and_a_class_of_ones_own():
    data = ch.datasets.simulate_domains([2.0, 3.0])
    cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    for line in evaluate_domains(cal, data, n_draws=10, n_bins=7, class_name="1"):
        rows = slice(None) if line.domain == "all" else data.domains == line.domain
        labels, logits = data.labels[rows], data.logits[rows]
        after = cal.predict_proba(logits)
        assert line.n_bins == 7
        wanted = expected_calibration_error(labels, after, n_bins=7)
        assert line.ece_after.estimate == pytest.approx(wanted)
        wanted = classwise_calibration_error(labels, after, n_bins=7)
        assert line.classwise_after == pytest.approx(wanted)
        wanted = expected_calibration_error(labels == 1, after[:, 1], n_bins=7)
        assert line.class_after == pytest.approx(wanted)
        assert line.class_before > line.class_after
    with pytest.raises(ValueError, match="'9' is no class"):
        evaluate_domains(cal, data, class_name="9")
