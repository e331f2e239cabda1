"""AutoCalibrator: never crashes, always says how it decided, does no harm."""

import numpy as np
import pytest
from test_shift_aware import drifting_world

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.datasets import simulate_domains
from coolhead.io.calibrators import load_calibrator, save_calibrator
from coolhead.numerics.softmax import log_loss_rows


def fit_all(logits, labels, features, domains, **more):
    return AutoCalibrator().fit(
        logits, labels, features=features, sample_domain=domains, **more
    )


@pytest.fixture(scope="module")
def world():
    logits, labels, features, domains, _ = drifting_world((0.0, 0.5, 1.0), n=300)
    home = drifting_world([0.0], seed=5)[2]
    options = {"source_domain": "place 0", "reference_features": home}
    return logits, labels, features, domains, options


def test_beats_set_level_on_unseen_domains_near_and_far(world):
    *seen, options = world
    auto = fit_all(*seen, **options)
    plain = TemperatureScaling().fit(*seen[:2])
    for place in (0.0, 0.8):
        logits, labels, features, _, _ = drifting_world([place], seed=9)
        loss = [
            log_loss_rows(logits, labels, c.temperature(logits, features)).mean()
            for c in (auto, plain)
        ]
        assert loss[0] < loss[1]


def test_reports_candidates_weights_and_scores(world):
    *seen, options = world
    auto = fit_all(*seen, **options)
    assert auto.names_.tolist() == [
        "uncalibrated",
        "source-only",
        "TemperatureScaling",
        "ShiftAwareTemperature",
    ]
    assert auto.weights_.sum() == pytest.approx(1)
    assert auto.scores_.shape == (4, 2)
    assert auto.domains_.tolist() == ["place 0.5", "place 1"]
    assert auto.status_.startswith("stacked")


def test_same_seed_same_numbers_and_rows_in_any_order(world):
    logits, labels, features, domains, options = world
    one = fit_all(logits, labels, features, domains, **options)
    two = fit_all(logits, labels, features, domains, **options)
    expected = one.temperature(logits, features)
    np.testing.assert_array_equal(two.temperature(logits, features), expected)
    order = np.random.default_rng(0).permutation(len(labels))
    mixed = fit_all(
        logits[order], labels[order], features[order], domains[order], **options
    )
    np.testing.assert_allclose(mixed.temperature(logits, features), expected, rtol=1e-3)


def test_predicted_class_never_changes(world):
    *seen, options = world
    auto = fit_all(*seen, **options)
    probabilities = auto.predict_proba(seen[0], seen[2])
    np.testing.assert_array_equal(probabilities.argmax(1), seen[0].argmax(1))


def test_round_trip_through_a_file(world, tmp_path):
    logits, labels, features, domains, options = world
    auto = fit_all(logits, labels, features, domains, **options)
    save_calibrator(auto, tmp_path / "auto.skops")
    loaded = load_calibrator(tmp_path / "auto.skops")
    np.testing.assert_array_equal(
        loaded.temperature(logits, features), auto.temperature(logits, features)
    )


def plain_rows(n=60, k=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(n, k))
    labels = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    return logits, labels, rng.normal(size=(n, d)), np.arange(n) % 3


def hostile(kind):
    logits, labels, features, domains = plain_rows()
    if kind == "constant features":
        features = np.ones_like(features)
    elif kind == "zero features":
        features = np.zeros_like(features)
    elif kind == "one feature":
        features = features[:, :1]
    elif kind == "huge features":
        features = 1e99 * features
    elif kind == "tiny features":
        features = 1e-300 * features
    elif kind == "half precision":
        features, logits = features.astype(np.float16), logits.astype(np.float16)
    elif kind == "integer features":
        features = np.round(3 * features).astype(np.int8)
    elif kind == "huge logits":
        logits = 1e300 * logits
    elif kind == "constant logits":
        logits = np.zeros_like(logits)
    elif kind == "all right":
        labels = logits.argmax(axis=1)
    elif kind == "all wrong":
        labels = logits.argmin(axis=1)
    elif kind == "same row":
        logits, labels = logits[[0] * 60], labels[[0] * 60]
        features = features[[0] * 60]
    elif kind == "domains of one row":
        domains = np.arange(60)
    elif kind == "one row":
        logits, labels, features, domains = (
            part[:1] for part in (logits, labels, features, domains)
        )
    elif kind == "two rows":
        logits, labels, features, domains = (
            part[:2] for part in (logits, labels, features, domains)
        )
    elif kind == "one lonely row":
        domains = (np.arange(60) == 7).astype(int)
    elif kind == "many classes":
        logits, labels, features, domains = plain_rows(k=345)
    elif kind == "wide features":
        logits, labels, features, domains = plain_rows(d=2048)
    elif kind == "binary scores":
        logits, labels = logits[:, 0], (logits[:, 0] > 1).astype(int)
    elif kind == "strings":
        domains = np.array(["a", "b", "c"], object)[domains]
    return logits, labels, features, domains


HOSTILE = [
    "constant features",
    "zero features",
    "one feature",
    "huge features",
    "tiny features",
    "half precision",
    "integer features",
    "huge logits",
    "constant logits",
    "all right",
    "all wrong",
    "same row",
    "domains of one row",
    "one row",
    "two rows",
    "one lonely row",
    "many classes",
    "wide features",
    "binary scores",
    "strings",
]


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("known", ["nothing", "domains", "everything"])
def test_survives(kind, known):
    logits, labels, features, domains = hostile(kind)
    options = {}
    if known != "nothing":
        options["sample_domain"] = domains
    if known == "everything":
        options["source_domain"] = domains[0]
        options["reference_features"] = features
    auto = AutoCalibrator().fit(logits, labels, features=features, **options)
    temperature = auto.temperature(logits, features)
    assert np.isfinite(temperature).all()
    assert (temperature > 0).all()
    assert isinstance(auto.status_, str)
    assert auto.status_


def test_a_set_without_mistakes_is_not_made_certain():
    logits, labels, features, domains = hostile("all right")
    auto = fit_all(logits, labels, features, domains)
    assert auto.temperature(logits, features).min() > 0.5


def test_features_and_those_of_the_reference_have_one_width():
    logits, labels, _, _ = plain_rows()
    with pytest.raises(ValueError, match="reference_features has"):
        AutoCalibrator().fit(
            logits,
            labels,
            features=np.ones((60, 4)),
            reference_features=np.ones((9, 5)),
        )


def test_neither_the_order_of_rows_nor_a_seed_changes_a_temperature():
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(900, 4))
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    # Hidden units are often zero: single columns do not tell rows apart.
    features = np.maximum(rng.normal(size=(900, 12)) - 1, 0)
    domains = np.repeat(["source", "a", "b"], 300)
    reference = np.maximum(rng.normal(size=(2500, 12)) - 1, 0)

    def temperature(order, mixed, seed):
        auto = AutoCalibrator(random_state=seed).fit(
            logits[order],
            labels[order],
            features=features[order],
            sample_domain=domains[order],
            source_domain="source",
            reference_features=reference[mixed],
        )
        return auto.temperature(logits, features)

    wanted = temperature(np.arange(900), np.arange(2500), 0)
    found = temperature(rng.permutation(900), rng.permutation(2500), 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_status_says_whether_harm_can_be_ruled_out(world):
    *seen, options = world
    status = fit_all(*seen, **options).status_
    assert "NLL of 2 left-out domains changes by -" in status
    # No harm in two domains leaves 1 - 0.1 ** (1 / 2) = 68 % at 90 % certainty.
    assert "harm in a new domain cannot be ruled out, up to 68 % of such" in status
    many = simulate_domains(np.linspace(1.8, 3.0, 12))
    status = fit_all(many.logits, many.labels, many.features, many.domains).status_
    assert "NLL of 10 left-out domains changes by -" in status
    assert "up to" not in status
