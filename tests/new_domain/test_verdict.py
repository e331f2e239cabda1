"""Use a classifier in a new domain, label rows first, or do not use it."""

import numpy as np
import pytest

import coolhead as ch

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


@pytest.fixture(scope="module")
def sites():
    data = ch.datasets.simulate_domains([1.0, 1.3, 1.6, 1.4], n_rows=400)
    seen, new = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    cal = ch.AutoCalibrator()
    cal.fit(seen.logits, seen.labels, sample_domain=seen.domains)
    return cal, new, seen


def test_the_interval_decides(sites):
    cal, new, _ = sites
    there = cal.new_domain(new.logits)
    low, high = there.accuracy.low, there.accuracy.high
    assert there.verdict(low - 0.01).answer == "use it"
    assert there.verdict(high + 0.01).answer == "do not use it here"
    found = there.verdict(low + 0.01)
    assert found.answer == f"label {found.n_labels} more rows first"
    assert 10 <= found.n_labels < there.n_rows
    # The nearer the estimate, the more labels.
    assert there.verdict(there.accuracy.estimate).n_labels > found.n_labels
    assert str(found).startswith(f"{found.answer}: expected accuracy")
    assert "needed" in str(found) and "from 400 rows and no labels" in str(found)


def test_the_labels_that_were_asked_for_settle_it(sites):
    cal, new, _ = sites
    there = cal.new_domain(new.logits)
    truth = np.mean(cal.confidence(new.logits)[1] == new.labels)
    for need, answer in ((truth - 0.08, "use it"), (truth + 0.08, "do not use it")):
        now = there
        for _ in range(6):
            found = now.verdict(need)
            if not found.n_labels:
                break
            rows = now.rows_to_label(found.n_labels)
            now = now.with_labels(rows, new.labels[rows])
        assert found.answer.startswith(answer), found


def test_nothing_is_left_to_label(sites):
    cal, new, _ = sites
    there = cal.new_domain(new.logits)
    there = there.with_labels(np.arange(400), new.labels)
    found = there.verdict(there.accuracy.estimate)
    assert (found.answer, found.n_labels) == ("do not use it here", 0)
    assert there.without("labels").verdict(0.01).n_used == 0


def test_rows_like_none_before_are_labelled_first(sites):
    _, new, seen = sites
    beside = {"features": seen.features, "sample_domain": seen.domains}
    cal = ch.AutoCalibrator().fit(seen.logits, seen.labels, **beside)
    there = cal.new_domain(new.logits, new.features + 50)
    found = there.verdict(0.01)
    assert found.answer == "label 20 more rows first"
    assert "100% of them outside the calibration data" in str(found)
    rows = there.rows_to_label(20)
    assert there.with_labels(rows, new.labels[rows]).verdict(0.01).answer == "use it"


@pytest.mark.parametrize("need", [0, 1, 80, -0.1, float("nan")])
def test_need_is_a_share(sites, need):
    cal, new, _ = sites
    there = cal.new_domain(new.logits)
    with pytest.raises(ValueError, match="wanted an accuracy between 0 and 1"):
        there.verdict(need)
