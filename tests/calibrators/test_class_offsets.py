"""Class offsets against outside solvers; where they must help, and where not."""

import time
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.special import softmax as scipy_softmax

import coolhead as ch
from coolhead.calibrators.class_offsets import (
    OffsetProblem,
    _best_share,
    centred,
    learn_class_offsets,
    left_out_problem,
    move_to_shares,
)
from coolhead.numerics.softmax import confidence, log_loss_rows, score_rows, softmax


def simulate(seed, *, n_domains=4, n_classes=4, bias=0.0, spread=0.0, shift=0.0):
    """Domains whose logits carry a common class bias, own ones, and shifted labels."""
    rng = np.random.default_rng(seed)
    common = bias * centred(rng.normal(size=n_classes))
    logits, labels, domains = [], [], []
    for domain in range(n_domains):
        shares = rng.normal(size=n_classes) * shift
        truth = 1.5 * rng.normal(size=(400, n_classes)) + shares
        labels.append((truth + rng.gumbel(size=truth.shape)).argmax(axis=1))
        own = common + spread * rng.normal(size=n_classes)
        logits.append(rng.uniform(1, 2) * (truth + own))
        domains.append(np.full(400, f"domain-{domain}"))
    features = rng.normal(size=(400 * n_domains, 3))
    parts = map(np.concatenate, (logits, labels, domains))
    return (*parts, features)


def fit(data, last="domain-3", **settings):
    """Fit on all domains but the last, and return its rows."""
    logits, labels, domains, features = data
    seen = domains != last
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        cal = ch.AutoCalibrator(**settings).fit(
            logits[seen],
            labels[seen],
            features=features[seen],
            sample_domain=domains[seen],
        )
    return cal, logits[~seen], labels[~seen], features[~seen]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_with_offsets_is_scipys(dtype):
    rng = np.random.default_rng(0)
    logits = (5 * rng.normal(size=(300, 6))).astype(dtype)
    logits[::7, 2] = -np.inf
    labels, T = rng.integers(0, 6, 300), rng.uniform(0.5, 3, 300)
    offsets = rng.normal(size=6)
    scores = logits / T[:, None] + offsets
    wanted, exact = (
        scipy_softmax(scores, axis=1),
        1e-5 if dtype == np.float32 else 1e-12,
    )
    np.testing.assert_allclose(softmax(logits, T, offsets), wanted, atol=exact)
    sure, predicted = confidence(logits, T, offsets)
    np.testing.assert_array_equal(predicted, wanted.argmax(axis=1))
    np.testing.assert_allclose(sure, wanted.max(axis=1), atol=exact)
    losses = -log_softmax(scores, axis=1)[np.arange(300), labels]
    np.testing.assert_allclose(
        log_loss_rows(logits, labels, T, offsets), losses, 1e-4, 1e-6
    )
    scored = score_rows(logits, labels, T, offsets)
    briers = np.square(wanted - np.eye(6)[labels]).sum(axis=1)
    np.testing.assert_allclose(scored.brier, briers, atol=1e-5)
    np.testing.assert_allclose(scored.log_loss, losses, 1e-4, 1e-6)


@pytest.mark.parametrize("n_classes", [2, 5, 80])
def test_offsets_of_labels_are_the_most_probable(n_classes):
    rng = np.random.default_rng(n_classes)
    logits = rng.normal(size=(60, n_classes))
    labels, weights = rng.integers(0, n_classes, 60), rng.uniform(0.2, 3, 60)
    weights *= weights.sum() / np.square(weights).sum()
    center, spread = centred(rng.normal(size=n_classes)), 0.7
    problem = OffsetProblem(logits, np.ones(60), labels, np.zeros(60, int), weights)

    def loss(offsets):
        scores = log_softmax(logits + offsets, axis=1)[np.arange(60), labels]
        return -weights @ scores + np.square((offsets - center) / spread).sum() / 2

    wanted = minimize(loss, center, method="BFGS", options={"gtol": 1e-6}).x
    found = problem.solve(center, spread, max_iter=200)[0]
    np.testing.assert_allclose(found, centred(wanted), atol=2e-3)


def test_a_class_without_labels_stays_at_the_centre():
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    logits[:, 2] = -np.inf
    problem = OffsetProblem(logits, np.ones(40), labels, np.zeros(40, int))
    found = problem.solve(np.zeros(3), 0.5)[0]
    assert found[2] == pytest.approx(0, abs=1e-9)


def test_offsets_without_a_group_are_those_of_the_others():
    logits, labels, domains, _ = simulate(0, bias=1.0)
    codes = np.unique(domains, return_inverse=True)[1]
    whole = left_out_problem(logits, np.ones(len(labels)), labels, codes)
    without = whole.pooled()[1]
    for domain in range(4):
        rows = codes != domain
        rest = np.unique(codes[rows], return_inverse=True)[1]
        own = left_out_problem(logits[rows], np.ones(rows.sum()), labels[rows], rest)
        np.testing.assert_allclose(without[domain], own.pooled()[0], atol=0.01)


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_a_common_class_bias_is_corrected(n_classes):
    data = simulate(3, bias=1.0, n_classes=n_classes)
    cal, logits, labels, features = fit(data)
    plain = fit(data, class_offsets=False)[0]
    assert "class offsets: accuracy of left-out rows +" in cal.status_
    assert cal.left_out_accuracy_change_ > 0.01
    right = [
        np.mean(one.predict_proba(logits, features).argmax(axis=1) == labels)
        for one in (cal, plain)
    ]
    assert right[0] > right[1] + 0.01
    assert right[1] == np.mean(logits.argmax(axis=1) == labels)


@pytest.mark.parametrize("shift", [0.0, 0.7], ids=["nothing", "label shift"])
def test_without_a_class_bias_nothing_is_lost(shift):
    changes = []
    for seed in range(12):
        cal, logits, labels, features = fit(simulate(seed, shift=shift))
        found = cal.confidence(logits, features)[1]
        changes.append(np.mean(found == labels) - np.mean(logits.argmax(1) == labels))
    assert np.mean(changes) > -0.005
    assert min(changes) > -0.03


def test_class_weights_are_corrected_without_domains():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=3000) - 2.2
    labels = (truth + rng.logistic(size=3000) > 0).astype(int)
    # What class_weight="balanced" does to the log odds.
    scores = truth + np.log((1 - labels.mean()) / labels.mean())
    cal = ch.AutoCalibrator().fit(scores, labels, features=truth[:, None])
    found = cal.predict_proba(scores, truth[:, None])[:, 1].mean()
    assert abs(found - labels.mean()) < 0.01
    assert "class offsets" in cal.status_


def test_one_calibration_domain_asks_the_source():
    """The class shares of one domain look like a bias that others do not have."""

    def offsets(bias, spread, source):
        data = simulate(2, n_domains=2, bias=bias, spread=spread)
        logits, labels, domains, features = data
        settings = {"sample_domain": domains, "source_domain": "domain-0"}
        rows = np.ones(len(labels), bool)
        if not source:
            rows, settings = domains == "domain-1", {"sample_domain": domains[:400]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            cal = ch.AutoCalibrator().fit(
                logits[rows], labels[rows], features=features[rows], **settings
            )
        return cal.class_offsets_, cal.status_

    found, status = offsets(1.0, 0.0, source=True)
    assert np.abs(found).max() > 0.2
    assert not np.any(offsets(0.0, 1.0, source=True)[0])
    found, status = offsets(1.0, 0.0, source=False)
    assert not found.any()
    assert "one domain does not show a common bias" in status


def test_a_bias_that_is_left_is_warned_of():
    data = simulate(3, bias=1.5, n_classes=2)
    logits, labels, domains, features = data
    with pytest.warns(UserWarning, match="favours some classes out of domain: class"):
        ch.AutoCalibrator(class_offsets=False).fit(
            logits, labels, features=features, sample_domain=domains
        )


def test_the_step_is_small_where_class_shares_differ():
    steps = []
    for shift in (0.0, 1.5):
        logits, labels, domains, _ = simulate(2, spread=0.8, shift=shift)
        codes = np.unique(domains, return_inverse=True)[1]
        problem = left_out_problem(logits, np.full(len(labels), 1.5), labels, codes)
        steps.append(learn_class_offsets(problem, across_domains=True).step)
    assert steps[0] > 0.5 > 0.3 > steps[1]


def test_mean_probabilities_go_the_wanted_step():
    logits = simulate(4, bias=1.0)[0][:400]
    T, shares = np.ones(400), np.array([0.1, 0.2, 0.3, 0.4])
    before = softmax(logits, T).mean(axis=0)
    moved = move_to_shares(logits, T, np.zeros(4), shares, 0.5)
    after = softmax(logits, T, moved).mean(axis=0)
    np.testing.assert_allclose(after, (before + shares) / 2, atol=0.01)


def test_the_order_of_rows_does_not_count():
    logits, labels, domains, features = simulate(6, bias=0.8)
    order = np.random.default_rng(0).permutation(len(labels))
    first, second = (
        fit((logits[rows], labels[rows], domains[rows], features[rows]))[0]
        for rows in (np.arange(len(labels)), order)
    )
    np.testing.assert_allclose(first.class_offsets_, second.class_offsets_, atol=1e-3)


def test_labels_of_a_new_domain_correct_its_own_bias():
    gains = []
    for seed in range(8):
        data = simulate(seed, spread=1.0)
        cal, logits, labels, features = fit(data)
        there = ch.NewDomain(cal, logits, features)
        there = there.with_labels(rows := there.rows_to_label(40), labels[rows])
        right = [
            np.mean(one.confidence(logits, features)[1] == labels)
            for one in (there.calibrator, cal)
        ]
        gains.append(right[0] - right[1])
        kept = there.without("classes").calibrator.confidence(logits, features)[1]
        np.testing.assert_array_equal(kept, logits.argmax(axis=1))
    assert np.mean(gains) > 0.04


def test_it_is_saved_exported_and_served(tmp_path):
    torch = pytest.importorskip("torch")
    da = pytest.importorskip("dask.array")
    cal, logits, labels, features = fit(simulate(3, bias=1.0))
    there = ch.NewDomain(cal, logits, features)
    moved = there.with_labels(np.arange(30), labels[:30]).calibrator
    for one in (cal, moved):
        wanted = one.predict_proba(logits, features)
        assert (wanted.argmax(axis=1) != logits.argmax(axis=1)).any()
        ch.save_calibrator(one, tmp_path / "cal.skops")
        loaded = ch.load_calibrator(tmp_path / "cal.skops")
        np.testing.assert_array_equal(loaded.predict_proba(logits, features), wanted)
        blocks = da.from_array(logits, chunks=(100, -1))
        lazy = ch.dask.predict_proba(one, blocks, da.from_array(features, (100, -1)))
        np.testing.assert_allclose(lazy.compute(), wanted, atol=1e-12)
        module = ch.torch.CalibratedSoftmax(one)
        found = module(torch.tensor(logits), torch.tensor(features)).numpy()
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.slow
def test_a_hundred_thousand_classes():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 100_000)).astype(np.float32)
    labels, codes = rng.integers(0, 100_000, 200), np.repeat([0, 1], 100)
    start = time.process_time()
    problem = left_out_problem(logits, np.ones(200), labels, codes)
    learned = learn_class_offsets(problem, across_domains=True)
    assert np.isfinite(learned.offsets).all()
    assert time.process_time() - start < 60


def test_all_offsets_are_used_only_where_clearly_better_than_half():
    none = np.zeros(4)
    unsure = np.array([none, [0.02, 0.03, 0.02, 0.03], [0.09, 0.01, 0.05, 0.0]])
    clear = np.array([none, [0.02, 0.03, 0.02, 0.03], [0.04, 0.05, 0.04, 0.06]])
    noise = np.array([none, [0.05, -0.04, 0.03, -0.02], [0.1, 0.1, 0.1, 0.1]])
    right = np.full((3, 4), 0.01)
    assert _best_share(unsure, right, 1.0) == 1
    assert _best_share(clear, right, 1.0) == 2
    assert _best_share(noise, right, 1.0) == 0
    assert _best_share(clear, -right, 1.0) == 0
