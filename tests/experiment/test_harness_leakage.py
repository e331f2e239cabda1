"""Poisoned targets through the whole harness: only who declares it may look."""

import numpy as np
import pytest
from small_world import DOMAINS, make_archive
from spying_calibrators import BlindSpy, ForeignSpy, GreedySpy

from coolhead.lab.adaptation import LabelBudget
from coolhead.lab.cell import evaluate_cell
from coolhead.lab.images import split_large_small
from coolhead.lab.plan import Split
from coolhead.lab.protocol import EvaluationSettings, Methods
from coolhead.lab.rows import SplitRows, fit_method
from coolhead.methods import METHODS, Method, find_method

SPLIT = Split((DOMAINS[0],), (DOMAINS[1], DOMAINS[2]), (DOMAINS[3],))
EVALUATION = EvaluationSettings(size=60, draws=10, bootstrap=20)
# What a method's fit declares: see `coolhead.methods`.
TRANSFER = {
    "transcal",
    "transcal-ours",
    "transcal-root",
    "wts",
    "wts-ours",
    "cpcs",
    "cpcs-ours",
    "wts-calibration",
    "weighted-cluster",
    "chosen-domains",
}
ORACLES = {"target-only", "target-ece-oracle"}
# The name of a method that adapts says what it receives of the target.
UNLABELLED = {"auto+batch", "set-level+batch"}
LABELLED = {"auto+20", "auto+batch+20", "ensemble+batch+5", "plain+20"}
SLOW = {"pts"}
NAMES = [name for name in METHODS if name not in SLOW]
NAMES += sorted(UNLABELLED | LABELLED)


@pytest.fixture(scope="module")
def archive():
    return make_archive(n_rows=150)


@pytest.fixture(scope="module")
def small(archive):
    return split_large_small(archive, small=0.3)


def temperatures(archive, small, names):
    methods = Methods(names=tuple(names), clusters=3)
    result = evaluate_cell(archive, small, SPLIT, methods, EVALUATION)
    found = {}
    for row in result.tables["results"]:
        if row["metric"] == "confidence":
            found[row["method"]] = row["value"]
    return found, {row["method"] for row in result.tables["failures"]}


@pytest.fixture(scope="module")
def clean(archive, small):
    found, failed = temperatures(archive, small, NAMES)
    assert not failed
    return found


def target_rows(archive):
    return archive.domain_codes == DOMAINS.index(SPLIT.target[0])


def test_only_declared_methods_read_the_small_rows_of_the_target(archive, small, clean):
    rng = np.random.default_rng(1)
    where = target_rows(archive) & small
    logits, features = archive.logits.copy(), archive.features.copy()
    labels = archive.labels.copy()
    logits[where] = 50 * rng.normal(size=logits[where].shape)
    features[where] = 50 * rng.normal(size=features[where].shape)
    labels[where] = rng.integers(logits.shape[1], size=where.sum())
    poisoned = archive.replace(logits=logits, features=features, labels=labels)
    dirty, failed = temperatures(poisoned, small, NAMES)
    changed = {name for name in NAMES if clean[name] != dirty.get(name)} | failed
    assert changed == TRANSFER | ORACLES | UNLABELLED | LABELLED
    assert {name for name in NAMES if find_method(name).sees_target} == (
        changed | {"transcal-transductive"}
    )


def test_labels_of_unlabelled_target_rows_are_never_read(archive, small, clean):
    where = target_rows(archive) & small
    labels = archive.labels.copy()
    labels[where] = (labels[where] + 1) % archive.logits.shape[1]
    dirty, _ = temperatures(archive.replace(labels=labels), small, NAMES)
    changed = {name for name in NAMES if clean[name] != dirty[name]}
    assert changed == ORACLES | LABELLED


def test_no_label_is_read_but_those_that_were_asked_for(archive, small, monkeypatch):
    """All other labels of the target's Small rows may be anything."""
    asked = {}
    honest = LabelBudget.ask

    def listen(budget, rows):
        asked.setdefault(len(rows), set()).update(int(row) for row in rows)
        return honest(budget, rows)

    monkeypatch.setattr(LabelBudget, "ask", listen)
    names = ["uncalibrated", "auto+batch+5", "plain+7"]
    clean, _ = temperatures(archive, small, names)
    where = np.flatnonzero(target_rows(archive) & small)
    # Three draws each, of five and of seven rows.
    assert 5 <= len(asked[5]) <= 15 and 7 <= len(asked[7]) <= 21
    labels = archive.labels.copy()
    free = np.delete(where, sorted(asked[5] | asked[7]))
    labels[free] = (labels[free] + 1) % archive.logits.shape[1]
    dirty, _ = temperatures(archive.replace(labels=labels), small, names)
    assert len(free) and clean == dirty


def test_no_more_labels_than_declared_are_handed_out(archive, small):
    budget = SplitRows(archive, small, SPLIT).label_budget(3)
    assert len(budget.ask([4, 5])) == len(budget.ask([5, 4])) == 2
    with pytest.raises(PermissionError, match="labels of 4 target rows"):
        budget.ask([6, 7])


def test_evaluated_labels_decide_scores_but_no_fit(archive, small, clean):
    where = target_rows(archive) & ~small
    labels = archive.labels.copy()
    labels[where] = (labels[where] + 1) % archive.logits.shape[1]
    dirty, _ = temperatures(archive.replace(labels=labels), small, NAMES)
    assert clean == dirty


def test_source_and_calibration_large_rows_have_no_labels_for_methods(
    archive, small, clean
):
    where = ~target_rows(archive) & ~small
    labels = archive.labels.copy()
    labels[where] = 0
    dirty, _ = temperatures(archive.replace(labels=labels), small, NAMES)
    assert clean == dirty


@pytest.mark.parametrize(
    ("spy", "seen"),
    [
        (BlindSpy, set()),
        (GreedySpy, {"features", "source", "reference", "target"}),
        (ForeignSpy, set()),
    ],
)
def test_nothing_but_the_declaration_decides_what_is_handed_over(
    archive, small, spy, seen
):
    data = SplitRows(archive, small, SPLIT)
    rows = ("calibration", "source")
    method = Method("Spy", spy, rows, sees_training_data=True)
    assert fit_method(method, data, n_clusters=2).seen == seen


def test_a_method_that_takes_the_target_counts_as_seeing_it():
    assert Method("Spy", GreedySpy).sees_target
    assert not Method("Spy", BlindSpy).sees_target
