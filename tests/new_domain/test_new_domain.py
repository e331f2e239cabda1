"""A domain without labels: answers, updates, refusals, files."""

import numpy as np
import pytest

import coolhead as ch
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.new_domain import NewDomain, learn_evidence
from simulate import logits_and_labels


def test_the_answer_is_a_sentence_with_an_interval(there):
    found = there.accuracy
    assert 0 < found.low < found.estimate < found.high < 1
    assert f"expected accuracy {100 * found.estimate:.0f} %" in str(there)
    assert "lie outside the calibration data" in str(there)
    assert "<table>" in there._repr_html_()
    assert set(there.estimates) == {"left_out", "atc", "agreement", "cot"}


def test_a_far_away_batch_says_so_first(there):
    # Every domain of the simulation lies six units from the next.
    assert there.outside.share_outside > 0.9
    assert str(there).startswith("100 % of the rows lie outside")


def test_labels_add_up_in_any_order(there, world):
    labels = world[3]
    rows = there.rows_to_label(40)
    once = there.with_labels(rows, labels[rows])
    twice = there.with_labels(rows[25:], labels[rows[25:]]).with_labels(
        rows[:25], labels[rows[:25]]
    )
    assert once.accuracy == twice.accuracy
    assert once.calibrator.offset == twice.calibrator.offset
    assert there.n_labels == 0, "the object that was asked stays as it was"
    assert once.n_labels == 40


def test_rows_are_never_asked_for_twice(there, world):
    first = there.rows_to_label(30)
    np.testing.assert_array_equal(there.rows_to_label(12), first[:12])
    known = there.with_labels(first, world[3][first])
    more = known.rows_to_label(50)
    assert len(set(more)) == 50
    assert not set(more) & set(first)
    with pytest.raises(ValueError, match="only 270 of 300 rows have no label"):
        known.rows_to_label(271)


def test_many_labels_lead_to_their_mean(there, world):
    labels = world[3]
    rows = np.arange(len(labels))
    known = there.with_labels(rows, labels)
    truth = np.mean(world[1].argmax(axis=1) == labels)
    assert abs(known.uncorrected_accuracy.estimate - truth) < 0.01
    corrected = known.calibrator.confidence(*world[1:3])[1]
    # Class offsets fit the rows that decided them a little better than others.
    assert -0.04 < known.accuracy.estimate - np.mean(corrected == labels) < 0.01
    assert known.accuracy.high - known.accuracy.low < 0.1


def test_labels_narrow_the_interval_and_move_the_calibrator(there, world):
    rows = there.rows_to_label(100)
    known = there.without("classes").with_labels(rows, world[3][rows])
    width = there.accuracy.high - there.accuracy.low
    assert known.accuracy.high - known.accuracy.low < 0.7 * width
    best = ch.fit_temperature(world[1], world[3]).temperature
    moved = np.median(known.calibrator.temperature(world[1], world[2]))
    before = np.median(world[0].temperature(world[1], world[2]))
    assert abs(np.log(moved / best)) < abs(np.log(before / best)) + 0.02


def test_each_kind_of_evidence_can_be_switched_off(there, world):
    rows = there.rows_to_label(50)
    wrong = (world[1][rows].argmax(axis=1) + 1) % 5
    known = there.with_labels(rows, wrong)
    assert known.accuracy.estimate < 0.5 * there.accuracy.estimate
    assert known.without("labels").accuracy == there.accuracy
    alone = there.without("batch")
    assert list(alone.estimates) == ["left_out"]
    assert alone.calibrator.offset == 0.0
    with pytest.raises(ValueError, match="evidence 'rumour' is not known"):
        there.without("rumour")


def test_width_asks_for_about_enough_rows(there, world):
    rows = there.rows_to_label(width=0.15)
    known = there.with_labels(rows, world[3][rows])
    assert 0.10 < known.accuracy.high - known.accuracy.low < 0.19
    with pytest.raises(ValueError, match="wanted one of the two"):
        there.rows_to_label(20, width=0.1)
    with pytest.raises(ValueError, match="wide already"):
        there.rows_to_label(width=0.9)
    with pytest.raises(ValueError, match=r"width is 0\.01, which would take about"):
        there.rows_to_label(width=0.01)


def test_classes_and_groups(there, world):
    classes = there.by_class()
    assert sum(found.n_rows for found in classes.values()) == there.n_rows
    groups = np.where(np.arange(there.n_rows) % 2, "odd", "even")
    found = there.by_group(groups)
    assert set(found) == {"odd", "even"}
    inner = there.accuracy.high - there.accuracy.low
    outer = found["odd"].accuracy
    assert outer.high - outer.low > inner, "a part is less certain than the whole"
    whole = there.by_group(["all"] * there.n_rows)["all"].accuracy
    assert whole.high - whole.low == pytest.approx(inner, rel=0.05)
    with pytest.raises(ValueError, match="groups has shape"):
        there.by_group(groups[:5])


def test_the_calibrator_is_an_ordinary_one(there, world, tmp_path):
    rows = there.rows_to_label(20)
    moved = there.with_labels(rows, world[3][rows]).calibrator
    path = tmp_path / "there.skops"
    ch.save_calibrator(moved, path)
    loaded = ch.load_calibrator(path)
    assert isinstance(loaded, OffsetTemperature)
    for one, other in zip(
        loaded.confidence(*world[1:3]), moved.confidence(*world[1:3]), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    known = loaded.base.evidence_
    np.testing.assert_array_equal(known.domains, ["domain-1", "domain-2"])
    assert NewDomain(loaded.base, *world[1:3]).accuracy == there.accuracy
    with pytest.raises(TypeError, match="is not fitted: it moves a fitted calibrator"):
        moved.fit(world[1], world[3])


def test_torch_and_onnx_move_the_same_temperature(there, world, tmp_path):
    torch = pytest.importorskip("torch")
    from coolhead.torch import CalibratedSoftmax, export_onnx

    rows = there.rows_to_label(20)
    moved = there.with_labels(rows, world[3][rows]).calibrator
    moved.set_params(slope=0.7)
    logits, features = (torch.tensor(part) for part in world[1:3])
    found = CalibratedSoftmax(moved).details(logits, features).temperature.numpy()
    np.testing.assert_allclose(found, moved.temperature(*world[1:3]), rtol=1e-5)
    # The export compares its graph with the module before it writes.
    assert export_onnx(moved, tmp_path / "there.onnx").exists()


def test_sets_need_scores_of_labelled_rows():
    logits, labels = logits_and_labels(600, 4, scale=1.5)
    cal = ch.TemperatureScaling().fit(logits[:300], labels[:300])
    there = NewDomain(cal, logits[300:])
    assert "is unknown" in str(there)
    with pytest.raises(ValueError, match="fitted without evidence"):
        there.sets(0.9, promise="pooled")
    known = learn_evidence(cal, logits[:300], labels[:300])
    there = NewDomain(cal, logits[300:], evidence=known)
    assert there.sets(0.9, promise="pooled").sizes.min() >= 1


def test_the_table_shows_every_step(there, world):
    rows = there.rows_to_label(10)
    shown = there.with_labels(rows, world[3][rows])._repr_html_()
    for step in ("left-out domains", "+ unlabelled rows", "+ 10 labels"):
        assert f"<td>{step}</td>" in shown
