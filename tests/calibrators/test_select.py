"""SelectByDomain: folds, evidence, and doing no harm."""

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneGroupOut

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.clustered import NearestClusterTemperature
from coolhead.calibrators.select import LeaveOneDomainOut, SelectByDomain, pick
from coolhead.calibrators.temperature import TemperatureScaling
from simulate import logits_and_labels, shifted_domains


class WrongTemperature(TemperatureCalibrator):
    """A candidate that always does harm."""

    def __init__(self, factor=30.0):
        self.factor = factor

    def _learn(self, data):
        self.temperature_, self.status_ = self.factor, "converged"


def same_everywhere(scale=3.0, n=200, n_domains=4):
    logits, labels = logits_and_labels(n * n_domains, 5, scale=scale)
    return logits, labels, np.repeat([f"d{i}" for i in range(n_domains)], n)


def test_folds_are_scikit_learns_without_the_source():
    domains = np.repeat(["a", "b", "c"], 30)
    ours = {
        tuple(test) for _, test in LeaveOneDomainOut().split(domains, None, domains)
    }
    peer = LeaveOneGroupOut().split(domains, groups=domains)
    assert ours == {tuple(test) for _, test in peer}
    kept = list(LeaveOneDomainOut("b").split(domains, None, domains))
    assert len(kept) == LeaveOneDomainOut("b").get_n_splits(None, None, domains) == 2
    for train, test in kept:
        assert "b" in domains[train]
        assert "b" not in domains[test]


def test_many_domains_make_ten_folds_that_cover_each_row_once():
    domains = np.repeat(np.arange(37), 25)
    tests = [t for _, t in LeaveOneDomainOut().split(domains, None, domains)]
    assert len(tests) == 10
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(37 * 25))


def test_picks_the_simplest_within_one_standard_error():
    scores = np.array([[2.0, 2.0, 2.0], [1.02, 0.99, 1.01], [1.0, 1.0, 1.0]])
    assert pick(scores).tolist() == [0, 1, 0]
    scores[1] += 0.2
    assert pick(scores).tolist() == [0, 0, 1]


def test_picks_set_level_where_all_domains_agree():
    logits, labels, domains = same_everywhere()
    chosen = SelectByDomain([TemperatureScaling(), WrongTemperature()]).fit(
        logits, labels, sample_domain=domains
    )
    assert chosen.status_.startswith("picked TemperatureScaling")
    assert chosen.temperature(logits)[0] == pytest.approx(3.0, rel=0.15)
    assert chosen.scores_.shape == (3, 4)


@pytest.mark.parametrize("combine", ["pick", "stack"])
def test_harmful_candidates_get_no_say(combine):
    logits, labels, domains = same_everywhere(scale=1.0)
    chosen = SelectByDomain(
        [WrongTemperature(), WrongTemperature(20.0)], combine=combine, penalty=0.1
    ).fit(logits, labels, sample_domain=domains)
    assert chosen.names_[chosen.weights_.argmax()] == "uncalibrated"
    assert chosen.temperature(logits)[0] == pytest.approx(1.0, rel=0.5)


def test_stack_averages_log_temperatures():
    logits, labels, features, domains = shifted_domains(n=150)
    chosen = SelectByDomain(
        [TemperatureScaling(), NearestClusterTemperature(3, n_init=1)],
        combine="stack",
        prior=(0.5, 0.5),
    ).fit(
        logits,
        labels,
        features=features,
        sample_domain=domains,
        source_domain=["domain-0"],
    )
    assert chosen.weights_.sum() == pytest.approx(1)
    assert (chosen.weights_ >= 0).all()
    assert chosen.names_.tolist()[:2] == ["uncalibrated", "source-only"]
    each = [np.log(c.temperature(logits, features)) for c in chosen.candidates_]
    np.testing.assert_allclose(
        np.log(chosen.temperature(logits, features)), chosen.weights_ @ each
    )
    assert chosen.domains_.tolist() == ["domain-1", "domain-2"]


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_source_only_is_fitted_on_source_rows_only():
    logits, labels, _, domains = shifted_domains(n=400)
    chosen = SelectByDomain([TemperatureScaling()]).fit(
        logits, labels, sample_domain=domains, source_domain="domain-2"
    )
    assert chosen.candidates_[1].temperature_ == pytest.approx(4.0, rel=0.15)


def test_source_rows_reach_only_who_can_tell_them_apart():
    logits, labels, _, domains = shifted_domains(n=400)
    seen = {}

    class Blind(TemperatureScaling):
        def _learn(self, data):
            seen["blind"] = set(data.sample_domain)
            return super()._learn(data)

    class Knowing(TemperatureScaling):
        takes = ("source",)

        def _learn(self, data):
            seen["knowing"] = set(data.sample_domain)
            return super()._learn(data)

    names = sorted(set(domains))
    SelectByDomain([Blind(), Knowing()]).fit(
        logits, labels, sample_domain=domains, source_domain=names[0]
    )
    assert seen == {"blind": set(names[1:]), "knowing": set(names)}


def test_a_handful_of_rows_away_from_home_does_not_decide_alone():
    logits, labels = logits_and_labels(305, 5, scale=3.0)
    labels[300:] = logits[300:].argmax(axis=1)
    domains = np.repeat(["home", "away"], [300, 5])
    chosen = SelectByDomain([TemperatureScaling()]).fit(
        logits, labels, sample_domain=domains, source_domain="home"
    )
    assert chosen.candidates_[-1].temperature_ > 1


def test_one_domain_can_not_choose_and_says_so():
    logits, labels, _ = same_everywhere()
    chosen = SelectByDomain([TemperatureScaling(), WrongTemperature()]).fit(
        logits, labels
    )
    assert "could not choose" in chosen.status_
    assert "no source_domain" in chosen.status_
    assert chosen.weights_.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "metric", ["brier", "top_label_brier", "ece", lambda y, p: -np.log(p[0, y[0]])]
)
def test_other_metrics(metric):
    logits, labels, domains = same_everywhere()
    chosen = SelectByDomain([TemperatureScaling()], metric=metric).fit(
        logits, labels, sample_domain=domains
    )
    assert np.isfinite(chosen.scores_).all()


def test_wrong_arguments_are_named():
    logits, labels, domains = same_everywhere(n=40)
    for settings, words in [
        ({"metric": "accuracy"}, "metric is 'accuracy'"),
        ({"combine": "vote"}, "combine is 'vote'"),
        ({"prior": (1, 2, 3)}, "prior is"),
    ]:
        with pytest.raises(ValueError, match=words):
            SelectByDomain(**settings).fit(logits, labels, sample_domain=domains)
    with pytest.raises(ValueError, match="groups is missing"):
        next(LeaveOneDomainOut().split(domains))
    with pytest.raises(ValueError, match="sample_domain is missing"):
        SelectByDomain().fit(logits, labels, source_domain="d0")
