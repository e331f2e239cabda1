"""Functions of arrays against closed forms and simulations with a known truth."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import t
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.estimators import (
    RIDGE,
    FeatureSums,
    accuracy_threshold,
    assigned_probability,
)
from coolhead.calibrators.evidence import (
    class_scores,
    conformal_scores,
    domain_offsets,
    logit,
    shrunk_scale,
)
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.metrics.bins import Interval
from coolhead.new_domain import NewDomain, learn_evidence
from coolhead.new_domain.accuracy import (
    Labelled,
    accuracy_interval,
    believe_accuracy,
    combined,
)
from coolhead.new_domain.labels import (
    asking_order,
    choose_rows,
    find_strata,
    label_weights,
    labels_for_width,
)
from coolhead.new_domain.posterior import (
    Estimate,
    believe,
    expit,
    shift_to,
)
from coolhead.new_domain.sets import (
    domains_needed,
    score_limit,
)
from simulate import logits_and_labels


def test_the_best_offset_of_a_domain_undoes_its_wrong_temperature():
    parts = [logits_and_labels(4000, 5, scale=scale) for scale in (2.0, 0.7)]
    logits, labels = map(np.concatenate, zip(*parts, strict=True))
    domains = np.repeat(["a", "b"], 4000)
    data = CalibrationData.of(logits, labels, sample_domain=domains)
    offsets, errors = domain_offsets(data, np.zeros(len(data)))
    for part, offset, error in zip(parts, offsets, errors, strict=True):
        direct = TemperatureScaling().fit(*part)
        assert abs(offset - np.log(direct.temperature_)) < 1e-4
        assert 0.5 < error / direct.log_temperature_se_ < 2


def test_few_domains_borrow_from_a_default_and_many_do_not():
    none = np.zeros(0)
    assert shrunk_scale(none, none, 0.3, 4) == pytest.approx(0.3)
    many = np.random.default_rng(0).normal(scale=0.8, size=4000)
    assert abs(shrunk_scale(many, np.zeros(4000), 0.3, 4) - 0.8) < 0.03
    noisy = many + np.random.default_rng(1).normal(scale=0.5, size=4000)
    assert abs(shrunk_scale(noisy, np.full(4000, 0.5), 0.3, 4) - 0.8) < 0.03


def test_one_estimate_alone_gives_its_t_interval():
    one = Estimate("left_out", 0.4, 0.3)
    belief = believe(one.log_density, -8, 8)
    assert abs(belief.mean - 0.4) < 1e-3
    expected = 0.4 + 0.3 * t(4).ppf(0.95)
    assert abs(belief.quantile(0.95) - expected) < 0.02


def test_equal_confidences_and_no_prior_come_close_to_wilsons_interval():
    right = np.arange(40) < 28
    labelled = Labelled(np.full(40, 0.6), right, np.full(40, 1 / 40))
    vague = [Estimate("left_out", 0.0, 1e6)]
    sure = np.full(100_000, 0.6)
    found = accuracy_interval(believe_accuracy(sure, vague, labelled), sure)
    z, n, share = 1.6448536, 40, 0.7
    middle = (share + z * z / 2 / n) / (1 + z * z / n)
    half = z * np.sqrt(share * 0.3 / n + z * z / 4 / n**2) / (1 + z * z / n)
    assert abs(found.low - (middle - half)) < 0.02
    # The larger of two variances makes it a little wider, never narrower.
    assert 1.0 < (found.high - found.low) / (2 * half) < 1.25


def test_a_narrow_belief_is_looked_at_closely():
    belief = believe(lambda x: -0.5 * np.square((x - 0.123) / 1e-3), -8, 8)
    assert abs(belief.mean - 0.123) < 1e-4
    assert belief.deviation == pytest.approx(1e-3, rel=0.05)


def test_a_lone_witness_far_off_loses_against_two():
    far = [
        Estimate("left_out", 0.0, 0.3),
        Estimate("atc", 0.1, 0.3),
        Estimate("agreement", 5.0, 0.3),
    ]
    assert abs(combined(far, None).centre) < 0.3


def test_shift_reaches_the_wanted_mean():
    sure = np.random.default_rng(0).uniform(0.2, 1.0, 500)
    for wanted in (0.03, 0.5, 0.97):
        shifted = expit(logit(sure) + shift_to(sure, wanted))
        assert shifted.mean() == pytest.approx(wanted, abs=1e-4)


def test_domains_count_alike_in_the_threshold():
    # A thousand certain rows of one domain, ten of another: half of each is right.
    sure = np.concatenate([np.linspace(0.5, 1, 1000), np.linspace(0, 0.5, 10)])
    right = np.concatenate([np.ones(1000, bool), np.zeros(10, bool)])
    codes = np.repeat([0, 1], [1000, 10])
    assert accuracy_threshold(sure, right, codes) == pytest.approx(0.5, abs=0.01)


def test_the_second_classifier_is_ridge_regression_with_and_without_rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    features = 50 + rng.normal(size=(90, 6)) + 3 * np.eye(3)[labels].repeat(2, 1)
    out = np.arange(90) < 30
    for kept, without in ((np.ones(90, bool), None), (~out, out)):
        found = FeatureSums(features, labels, 3).classifier(without)
        scaled = StandardScaler().fit(features[kept])
        oracle = Ridge(alpha=RIDGE * kept.sum())
        oracle.fit(scaled.transform(features[kept]), np.eye(3)[labels[kept]])
        wanted = oracle.predict(scaled.transform(features))
        scores = features @ found.weights.astype(float) + found.bias
        np.testing.assert_allclose(scores, wanted, atol=1e-4)
    assert (found.predict(features) == labels).mean() > 0.9


def test_many_features_are_projected_for_the_second_classifier():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 600)
    features = rng.normal(size=(600, 500)) + rng.normal(size=(3, 500))[labels]
    found = FeatureSums(features[:400], labels[:400], 3).classifier()
    assert found.weights.shape == (128, 3)
    assert (found.predict(features[400:]) == labels[400:]).mean() > 0.9


def test_classes_are_assigned_at_the_smallest_cost():
    """Against all permutations of four rows, two of each class."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 2))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = assigned_probability(logits, np.ones(4), np.array([0.5, 0.5]))
    ways = set(permutations((0, 0, 1, 1)))
    best = max(chances[np.arange(4), list(way)].mean() for way in ways)
    assert found == pytest.approx(best)


def test_strata_hold_alike_and_weights_stand_for_the_batch():
    rng = np.random.default_rng(0)
    sure = rng.beta(5, 2, 3000)
    strata = find_strata(sure)
    held = np.bincount(strata, np.sqrt(sure * (1 - sure)))
    assert held.max() / held.min() < 1.3
    order = asking_order(strata, 0)
    rows = choose_rows(sure, strata, order, np.zeros(3000, bool), 60)
    weights = label_weights(strata, rows)
    assert weights.sum() == pytest.approx(1)
    assert abs(weights @ sure[rows] - sure.mean()) < 0.02
    assert abs(sure[rows].mean() - sure.mean()) > 0.02, "weights are needed"


def test_chosen_rows_are_never_biased():
    """Over many draws the weighted labels have the accuracy as their mean."""
    rng = np.random.default_rng(1)
    sure = rng.beta(4, 2, 1000)
    right = rng.random(1000) < np.clip(sure - 0.1, 0, 1)
    strata = find_strata(sure)
    found = []
    for seed in range(300):
        order = asking_order(strata, seed)
        rows = choose_rows(sure, strata, order, np.zeros(1000, bool), 30)
        found.append(label_weights(strata, rows) @ right[rows])
    error = np.std(found) / np.sqrt(300)
    assert abs(np.mean(found) - right.mean()) < 4 * error


def test_a_smaller_width_needs_more_labels():
    sure = np.random.default_rng(0).beta(5, 2, 1000)
    belief = believe_accuracy(sure, [Estimate("left_out", 0.9, 0.4)], None)
    now = accuracy_interval(belief, sure)
    assert isinstance(now, Interval)
    counts = [labels_for_width(width, belief, now, sure) for width in (0.2, 0.1, 0.05)]
    assert counts[0] < counts[1] < counts[2]
    # Wilson would need 4 z² p (1 - p) / width²: ours must not need more.
    assert counts[2] < 4 * 1.645**2 * 0.25 / 0.05**2


def test_scores_on_a_row_by_hand():
    logits = np.log([[0.5, 0.3, 0.2]])
    one = np.ones(1)
    np.testing.assert_allclose(class_scores(logits, one, "lac"), [[0.5, 0.7, 0.8]])
    np.testing.assert_allclose(class_scores(logits, one, "aps"), [[0.5, 0.8, 1.0]])
    found = conformal_scores(logits, np.array([1]), one)
    assert found["lac"][0] == pytest.approx(0.7)
    assert found["aps"][0] == pytest.approx(0.8)


def test_pooled_quantile_is_the_usual_one():
    scores = np.arange(1, 20) / 20  # ceil(20 * 0.9) = 18th smallest
    found = score_limit(scores, np.zeros(19), 0.9, "pooled")
    assert found == pytest.approx(0.9)
    assert score_limit(scores[:5], np.zeros(5), 0.9, "pooled") == np.inf


def test_new_domain_sets_refuse_too_few_domains():
    assert domains_needed(0.9) == 9
    assert domains_needed(0.8) == 4
    with pytest.raises(ValueError, match="needs 9 left-out domains, found 3"):
        score_limit(np.arange(9.0), np.repeat([0, 1, 2], 3), 0.9, "new_domain")
    with pytest.raises(ValueError, match="promise is 'any'"):
        score_limit(np.arange(9.0), np.zeros(9), 0.9, "any")


def random_domain(rng, n_rows, scale):
    true = 2 * rng.normal(size=(n_rows, 4))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    return scale * true, labels


def test_new_domain_sets_cover_where_domains_differ_at_random():
    held = {"new_domain": [], "pooled": []}
    for repetition in range(150):
        rng = np.random.default_rng(repetition)
        parts = [random_domain(rng, 40, np.exp(rng.normal())) for _ in range(11)]
        scores = [conformal_scores(*part, np.ones(40))["lac"] for part in parts]
        domains = np.repeat(np.arange(10), 40)
        for promise, found in held.items():
            limit = score_limit(np.concatenate(scores[:10]), domains, 0.9, promise)
            found.append(np.mean(scores[10] <= limit))
    error = np.std(held["new_domain"]) / np.sqrt(150)
    assert np.mean(held["new_domain"]) > 0.9 - 2 * error


@pytest.mark.parametrize("n_domains", [2, 5])
def test_intervals_cover_where_domains_differ_at_random(n_domains):
    covered = {"none": [], "labels": []}
    for repetition in range(40):
        rng = np.random.default_rng([repetition, n_domains])
        scales = np.exp(rng.normal(scale=0.3, size=n_domains + 1))
        parts = [random_domain(rng, 150, scale) for scale in scales[:-1]]
        logits = np.concatenate([part[0] for part in parts])
        labels = np.concatenate([part[1] for part in parts])
        named = {"sample_domain": np.repeat(np.arange(n_domains), 150)}
        cal = TemperatureScaling().fit(logits, labels, **named)
        known = learn_evidence(cal, logits, labels, **named)
        logits, labels = random_domain(rng, 4000, scales[-1])
        truth = np.mean(logits.argmax(axis=1) == labels)
        there = NewDomain(cal, logits[:500], evidence=known)
        rows = there.rows_to_label(20)
        for name, one in (
            ("none", there),
            ("labels", there.with_labels(rows, labels[rows])),
        ):
            covered[name].append(one.accuracy.low <= truth <= one.accuracy.high)
    for found in covered.values():
        assert np.mean(found) >= 0.75, "nominal 90 %, forty repetitions"


def test_labels_that_choose_class_offsets_count_with_a_larger_variance():
    right = np.arange(25) < 15
    sure, vague = np.full(10_000, 0.6), [Estimate("left_out", 0.0, 1e6)]
    widths = []
    for shared in (False, True):
        labelled = Labelled(np.full(25, 0.6), right, np.full(25, 1 / 25), shared)
        found = accuracy_interval(believe_accuracy(sure, vague, labelled), sure)
        widths.append(found.high - found.low)
    # The factor 1 + 4 / sqrt(25) of the variance; the logit scale bends a little.
    assert np.sqrt(1.8) - 0.1 < widths[1] / widths[0] < np.sqrt(1.8) + 0.02
