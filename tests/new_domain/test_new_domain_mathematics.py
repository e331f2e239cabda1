"""Functions of arrays against closed forms and simulations with a known truth."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import t

from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.metrics.intervals import Interval
from coolhead.new_domain import NewDomain, learn_evidence
from coolhead.new_domain.accuracy import (
    Labelled,
    accuracy_interval,
    believe_accuracy,
    together,
)
from coolhead.new_domain.batch import (
    class_shares,
    dealt_probability,
    equal_domains_threshold,
    train_second,
)
from coolhead.new_domain.labelling import (
    asking_order,
    choose_rows,
    find_strata,
    label_weights,
)
from coolhead.new_domain.labels import labels_for_width
from coolhead.new_domain.offsets import best_offset, shrunk_scale
from coolhead.new_domain.posterior import Witness, believe, expit, logit, shift_to
from coolhead.new_domain.scores import class_scores, conformal_scores
from coolhead.new_domain.sets import domains_needed, score_limit
from coolhead.new_domain.threshold import find_threshold
from simulate import logits_and_labels


def test_the_best_offset_undoes_a_wrong_temperature():
    logits, labels = logits_and_labels(4000, 5, scale=2.0)
    found = best_offset(logits, labels, np.zeros(len(labels)))
    direct = TemperatureScaling().fit(logits, labels)
    assert abs(found.value - np.log(direct.temperature_)) < 1e-4
    assert 0.5 < found.error / direct.log_temperature_se_ < 2


def test_few_domains_borrow_from_a_default_and_many_do_not():
    none = np.zeros(0)
    assert shrunk_scale(none, none, 0.3, 4) == pytest.approx(0.3)
    many = np.random.default_rng(0).normal(scale=0.8, size=4000)
    assert abs(shrunk_scale(many, np.zeros(4000), 0.3, 4) - 0.8) < 0.03
    noisy = many + np.random.default_rng(1).normal(scale=0.5, size=4000)
    assert abs(shrunk_scale(noisy, np.full(4000, 0.5), 0.3, 4) - 0.8) < 0.03


def test_one_witness_alone_gives_his_t_interval():
    witness = Witness("left_out", 0.4, 0.3)
    belief = believe(witness.log_density, -8, 8)
    assert abs(belief.mean - 0.4) < 1e-3
    expected = 0.4 + 0.3 * t(4).ppf(0.95)
    assert abs(belief.quantile(0.95) - expected) < 0.02


def test_equal_confidences_and_no_prior_come_close_to_wilsons_interval():
    right = np.arange(40) < 28
    labelled = Labelled(np.full(40, 0.6), right, np.full(40, 1 / 40))
    vague = [Witness("left_out", 0.0, 1e6)]
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
        Witness("left_out", 0.0, 0.3),
        Witness("surer", 0.1, 0.3),
        Witness("agreement", 5.0, 0.3),
    ]
    assert abs(together(far, None).centre) < 0.3


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
    assert equal_domains_threshold(sure, right, codes) == pytest.approx(0.5, abs=0.01)


def test_the_second_classifier_solves_either_system_alike():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 50)
    features = rng.normal(size=(50, 49)) + np.eye(3)[labels].repeat(17, 1)[:, :49]
    tall = train_second(features, labels, 3)
    wide = train_second(
        np.hstack([features, np.zeros((50, 2))]), labels, 3
    )  # 51 columns, so the other branch
    np.testing.assert_allclose(wide.weights[:49], tall.weights, atol=1e-10)
    assert (tall.predict(features) == labels).mean() > 0.9


def test_classes_are_dealt_as_cheaply_as_possible():
    """Against all permutations of four rows, two of each class."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 2))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = dealt_probability(logits, np.ones(4), np.array([0.5, 0.5]))
    ways = set(permutations((0, 0, 1, 1)))
    best = max(chances[np.arange(4), list(way)].mean() for way in ways)
    assert found == pytest.approx(best)
    shares = class_shares(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1]), 3)
    np.testing.assert_allclose(shares, [0.5, 0.5, 0.0], err_msg="domains count alike")


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
    belief = believe_accuracy(sure, [Witness("left_out", 0.9, 0.4)], None)
    now = accuracy_interval(belief, sure)
    assert isinstance(now, Interval)
    counts = [labels_for_width(width, belief, now, sure) for width in (0.2, 0.1, 0.05)]
    assert counts[0] < counts[1] < counts[2]
    # Wilson would need 4 z² p (1 - p) / width²: ours must not need more.
    assert counts[2] < 4 * 1.645**2 * 0.25 / 0.05**2


def test_the_threshold_answers_only_what_it_can():
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.3, 1, 5000)
    right = rng.random(5000) < sure
    found = find_threshold(sure, sure.mean(), sure.mean(), 0.9, 0.9)
    answered = sure >= found.confidence
    assert answered.mean() == pytest.approx(found.share, abs=1e-3)
    assert abs(right[answered].mean() - 0.9) < 0.03
    careful = find_threshold(sure, sure.mean(), sure.mean() - 0.1, 0.9, 0.9)
    assert careful.confidence > found.confidence
    never = find_threshold(np.full(100, 0.4), 0.4, 0.3, 0.95, 0.9)
    assert never.confidence is None
    assert "cannot be had" in str(never)
    with pytest.raises(ValueError, match="accuracy is 95"):
        find_threshold(sure, 0.5, 0.4, 95, 0.9)


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
