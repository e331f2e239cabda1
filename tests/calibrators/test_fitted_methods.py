"""What a fitted object can do next: a new domain, a monitor, a file."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import coolhead as ch

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


@pytest.fixture(scope="module")
def sites():
    """Four sites, of which the last is new."""
    rng = np.random.default_rng(0)
    site = np.repeat(["kyiv", "oslo", "rome", "bonn"], 150)
    x = rng.normal(size=(600, 3)) + 0.3 * np.repeat(np.arange(4), 150)[:, None]
    y = np.where(x[:, 0] + rng.normal(size=600) > 0.5, "dies", "lives")
    return pd.DataFrame({"a": x[:, 0], "site": site, "b": x[:, 1], "c": x[:, 2]}), y


@pytest.fixture(scope="module", params=["pandas", "polars"])
def frame(request, sites):
    frame, y = sites
    return frame if request.param == "pandas" else pl.from_pandas(frame), y


def test_one_line_per_step(frame, tmp_path):
    frame, y = frame
    X, X_new = frame[:450], frame[450:]
    model = ch.CalibratedClassifier(LogisticRegression())
    model.fit(X, y[:450], sample_domain="site")
    there = model.new_domain(X_new)
    rows = there.rows_to_label(20)
    better = there.with_labels(rows, y[450:][rows]).model
    watch = model.monitor()
    model.save(tmp_path / "model.skops")

    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.evidence_.domains.tolist() == ["kyiv", "oslo", "rome"]
    assert str(there) == str(ch.NewDomain(model, X_new))
    truth = np.mean(model.predict(X_new) == y[450:])
    assert there.accuracy.low < truth < there.accuracy.high
    assert isinstance(better, ch.CalibratedClassifier)
    assert better.calibrator_.base is model.calibrator_
    watch.update(model.details(X_new), y[450:])
    assert [found.n_rows for found in watch.check().findings] == [150, 150, 150]
    loaded = ch.load_calibrator(tmp_path / "model.skops")
    np.testing.assert_array_equal(
        loaded.predict_proba(X_new), model.predict_proba(X_new)
    )
    better.save(tmp_path / "better.skops")
    loaded = ch.load_calibrator(tmp_path / "better.skops")
    np.testing.assert_array_equal(loaded.predict(X_new), better.predict(X_new))


def test_the_estimator_never_sees_the_column_of_domains(frame):
    frame, y = frame
    without = frame[["a", "b", "c"]]
    site = np.asarray(frame["site"])
    model = ch.CalibratedClassifier(LogisticRegression())
    named = model.fit(frame, y, sample_domain="site").predict_proba(frame)
    np.testing.assert_array_equal(model.predict_proba(without), named)
    np.testing.assert_array_equal(model.features_of(frame), model.features_of(without))
    assert model.calibration_data(frame, y, sample_domain="site").domains_known
    other = ch.CalibratedClassifier(LogisticRegression())
    other.fit(without, y, sample_domain=site)
    np.testing.assert_array_equal(other.predict_proba(without), named)
    # A column of this name may be an ordinary one in the next fit.
    assert model.fit(without, y, sample_domain=site).domain_column_ is None


@pytest.mark.parametrize(
    "change, name, message",
    [
        (lambda X: X, "sites", r"'sites', the name of 0 columns.*found: a, site, b"),
        (lambda X: pd.concat([X, X[["site"]]], axis=1), "site", "of 2 columns of X"),
        (lambda X: X[["a", "b"]].to_numpy(), "site", "none: it is a ndarray"),
    ],
)
def test_a_column_that_is_not_there_once(sites, change, name, message):
    frame, y = sites
    model = ch.CalibratedClassifier(LogisticRegression())
    with pytest.raises(ValueError, match=message):
        model.fit(change(frame), y, sample_domain=name)


@pytest.mark.parametrize("kind", [ch.AutoCalibrator, ch.TemperatureScaling])
def test_the_methods_of_a_calibrator_call_their_owners(kind, tmp_path):
    data = ch.datasets.simulate_domains()
    seen, new = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    domains = {"sample_domain": seen.domains}
    cal = kind().fit(seen.logits, seen.labels, features=seen.features, **domains)
    there = cal.new_domain(new.logits, new.features, random_state=1)
    assert str(there) == str(ch.NewDomain(cal, new.logits, new.features))
    rows = there.rows_to_label(20)
    after = there.with_labels(rows, new.labels[rows])
    assert after.model is after.calibrator
    rows = seen.features, seen.domains
    with_rows = ch.DriftMonitor.for_calibrator(cal, *rows, logits=seen.logits)
    assert cal.monitor(*rows, logits=seen.logits).to_dict() == with_rows.to_dict()
    cal.save(tmp_path / "cal.skops", metadata={"camera": "north"})
    loaded = ch.load_calibrator(tmp_path / "cal.skops")
    np.testing.assert_array_equal(
        loaded.predict_proba(new.logits, new.features),
        cal.predict_proba(new.logits, new.features),
    )
    if kind is ch.AutoCalibrator:
        assert cal.monitor().expected.outside and cal.monitor().expected.unsure
    else:
        with pytest.raises(ValueError, match="carries no evidence"):
            cal.monitor()
