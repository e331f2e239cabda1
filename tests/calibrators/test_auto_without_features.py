"""The default without features: one temperature, and class offsets."""

import numpy as np
import pytest
from sklearn.base import clone

import coolhead as ch

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


@pytest.fixture(scope="module")
def sites():
    data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 3.0])
    rows = np.concatenate([np.arange(250), np.arange(300, len(data))])
    return data.rows(rows)  # domains of unequal sizes


@pytest.mark.parametrize("weights", ["equal", "pooled"])
def test_it_is_one_temperature_for_all_rows(sites, weights):
    domains = sites.domains if weights == "equal" else None
    given = sites.logits, sites.labels
    auto = ch.AutoCalibrator().fit(*given, sample_domain=domains)
    whole = ch.TemperatureScaling(weights).fit(*given, sample_domain=domains)
    assert auto.temperature_ == pytest.approx(whole.temperature_, rel=1e-8)
    np.testing.assert_allclose(auto.temperature(sites.logits), auto.temperature_)
    assert auto.status_.startswith("no features: one temperature for all rows")
    assert not auto.uses_features and auto.n_features_ is None


def test_class_offsets_are_learned_without_features():
    data = ch.datasets.simulate_domains([1.5, 1.5, 1.5, 1.5], n_rows=600)
    biased = data.logits + np.array([3.0, 0.0, 0.0])
    auto = ch.AutoCalibrator().fit(biased, data.labels, sample_domain=data.domains)
    assert auto.class_offsets_[0] < auto.class_offsets_[1:].min() - 0.5
    kept = clone(auto).set_params(class_offsets=False)
    with pytest.warns(UserWarning, match="favours some classes"):
        kept.fit(biased, data.labels, sample_domain=data.domains)
    np.testing.assert_array_equal(kept.confidence(biased)[1], biased.argmax(axis=1))


def test_the_source_does_not_enter_the_temperature(sites):
    rest = sites.select("site-1", "site-2", "site-3")
    auto = ch.AutoCalibrator().fit(
        sites.logits, sites.labels, sample_domain=sites.domains, source_domain="site-0"
    )
    whole = ch.TemperatureScaling("equal")
    whole.fit(rest.logits, rest.labels, sample_domain=rest.domains)
    assert auto.temperature_ == pytest.approx(whole.temperature_, rel=1e-8)


def test_features_belong_to_a_fit_or_do_not(sites):
    auto, beside = ch.AutoCalibrator(), {"sample_domain": sites.domains}
    auto.fit(sites.logits, sites.labels, **beside)
    found = auto.predict_proba(sites.logits)
    np.testing.assert_array_equal(
        auto.predict_proba(sites.logits, sites.features), found
    )
    assert auto.new_domain(sites.logits).outside is None
    auto.fit(sites.logits, sites.labels, features=sites.features, **beside)
    assert auto.uses_features and "no features" not in auto.status_
    with pytest.raises(ValueError, match="features is missing"):
        auto.predict_proba(sites.logits)
    auto.fit(sites.logits, sites.labels, **beside)
    np.testing.assert_array_equal(auto.predict_proba(sites.logits), found)


def test_saved_watched_and_exported(sites, tmp_path):
    torch = pytest.importorskip("torch")
    auto = ch.AutoCalibrator().fit(
        sites.logits, sites.labels, sample_domain=sites.domains
    )
    found = auto.predict_proba(sites.logits)
    auto.save(tmp_path / "auto.skops")
    loaded = ch.load_calibrator(tmp_path / "auto.skops")
    np.testing.assert_array_equal(loaded.predict_proba(sites.logits), found)
    module = ch.torch.CalibratedSoftmax(loaded)
    np.testing.assert_allclose(module(torch.tensor(sites.logits)), found, atol=1e-6)
    watch = auto.monitor()
    watch.update(auto.details(sites.logits))
    # Confidence alone never says that all is well.
    assert watch.check().alarm is None and watch.check().of("confidence").n_rows
