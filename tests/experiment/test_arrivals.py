"""Methods of the sweep that see rows or some labels of the target."""

import numpy as np
import pytest
from small_world import DOMAINS, make_archive

import coolhead as ch
from coolhead.lab.cell import evaluate_cell
from coolhead.lab.images import split_large_small
from coolhead.lab.plan import Split
from coolhead.lab.protocol import EvaluationSettings, Methods
from coolhead.lab.rows import SplitRows, fit_draws, fit_method
from coolhead.methods import find_method
from coolhead.report.tables import _by_number, competing

SPLIT = Split((DOMAINS[0],), (DOMAINS[1], DOMAINS[2]), (DOMAINS[3],))
NAMES = ("uncalibrated", "source-only", "auto", "auto+batch", "auto+batch+20")
NAMES += ("plain+20", "set-level+5")


@pytest.fixture(scope="module")
def rows():
    archive = make_archive(n_rows=200)
    return archive, split_large_small(archive, small=0.3)


@pytest.fixture(scope="module")
def result(rows):
    methods = Methods(names=NAMES, clusters=3, label_draws=4)
    evaluation = EvaluationSettings(size=60, draws=20, bootstrap=20)
    return evaluate_cell(*rows, SPLIT, methods, evaluation)


@pytest.mark.parametrize(
    ("name", "label", "seen"),
    [
        ("auto+batch", "Auto + batch", "unlabelled"),
        ("auto+1", "Auto + 1 label", "1 label"),
        ("auto+batch+20", "Auto + batch + 20 labels", "unlabelled, 20 labels"),
        ("set-level+source+7", "Set-level + source + 7 labels", "7 labels"),
        ("plain+100", "Plain scaling, 100 labels", "100 labels"),
        ("transcal", "TransCal", "unlabelled"),
        ("target-only", "Target-only (oracle)", "all labels"),
        ("auto", "Auto", ""),
    ],
)
def test_a_name_says_what_is_seen_of_the_target(name, label, seen):
    method = find_method(name)
    assert (method.label, method.seen_of_target) == (label, seen)
    assert method.sees_target == (seen != "")
    assert (label in competing([name])) == ("label" not in seen or seen == "unlabelled")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("auto+0", "unknown method"),
        ("auto+bach+20", "unknown method .*auto\\+batch\\+20"),
        ("plain+batch", "unknown method"),
        ("transcal+20", "unknown method"),
        ("isotonic+20", "fits no temperature"),
        ("uncalibrated+20", "fits no temperature"),
    ],
)
def test_names_that_mean_nothing_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        find_method(name)


def test_numbers_are_sorted_as_numbers():
    names = ["auto+100", "auto+batch", "auto+20", "auto+5"]
    assert sorted(names, key=_by_number) == [
        "auto+5",
        "auto+20",
        "auto+100",
        "auto+batch",
    ]


def test_it_is_what_a_user_would_get(rows):
    data = SplitRows(*rows, SPLIT)
    record = data.record(find_method("auto"), ch.AutoCalibrator.takes)
    named = {
        "features": record.features,
        "sample_domain": record.sample_domain,
        "source_domain": DOMAINS[0],
        "reference_features": record.reference,
    }
    cal = ch.AutoCalibrator().fit(record.logits, record.labels, **named)
    cal.evidence_ = ch.new_domain.learn_evidence(
        cal, record.logits, record.labels, **named
    )
    archive, small = rows
    target = archive.rows(small & (archive.domains == DOMAINS[3]))
    there = ch.NewDomain(cal, target.logits, target.features)
    asked = there.rows_to_label(20)
    there = there.with_labels(asked, target.labels[asked])
    (found,) = fit_draws(find_method("auto+batch+20"), data, n_clusters=3, n_draws=1)
    assert found.expected == there.accuracy
    assert found.calibrator.offset == there.calibrator.offset


def test_scores_are_means_over_the_draws(rows, result):
    assert not result.failed, result.tables["failures"]
    data = SplitRows(*rows, SPLIT)
    unseen = data.evaluated
    for name in ("auto+batch+20", "plain+20"):
        draws = fit_draws(find_method(name), data, n_clusters=3, n_draws=4)
        errors = [
            ch.expected_calibration_error(
                unseen.labels,
                draw.calibrator.predict_proba(unseen.logits, unseen.features),
            )
            for draw in draws
        ]
        assert len(set(errors)) > 1, "other labels, other temperatures"
        (mean,) = [
            row["value"]
            for row in result.tables["results"]
            if (row["method"], row["metric"]) == (name, "ece")
        ]
        assert mean == pytest.approx(np.mean(errors), rel=1e-6)
        shown = [r for r in result.tables["adaptation"] if r["method"] == name]
        assert [row["ece"] for row in shown] == pytest.approx(errors, rel=1e-6)


def test_adaptations_stand_beside_their_base(result):
    rows = {
        (row["method"], row["draw"]): row
        for row in result.tables["adaptation"]
        if row["draw"] < 2
    }
    assert set(rows) == {
        ("auto", 0),
        ("auto+batch", 0),
        *((name, draw) for name in NAMES[4:] for draw in (0, 1)),
    }
    assert {name: row["base"] for (name, _), row in rows.items()} == {
        "auto": "auto",
        "auto+batch": "auto",
        "auto+batch+20": "auto",
        "plain+20": "plain",
        "set-level+5": "set-level",
    }
    assert rows["plain+20", 0]["expected"] is None
    before, after = rows["auto", 0], rows["auto+batch+20", 0]
    assert after["high"] - after["low"] < before["high"] - before["low"]
    # Class offsets change predicted classes; a temperature does not.
    assert rows["plain+20", 0]["truth"] == rows["plain+20", 1]["truth"]


def test_more_labels_than_rows_fail_with_a_sentence(rows):
    data = SplitRows(*rows, SPLIT)
    for name in ("auto+500", "plain+500"):
        with pytest.raises(ValueError, match="500"):
            fit_method(find_method(name), data, n_clusters=3)
