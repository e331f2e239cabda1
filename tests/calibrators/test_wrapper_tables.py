"""X as people have it: gaps, categories, text, dates; boosters take it, so must we."""

import datetime

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import coolhead as ch
from coolhead.classifier.features import TablePreparation, is_plain

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 300
    hour = rng.normal(12, 4, n)
    late = rng.random(n) < 1 / (1 + np.exp(-(hour - 12) / 3))
    frame = pd.DataFrame(
        {
            "hour": np.where(rng.random(n) < 0.1, np.nan, hour),
            "origin": pd.Categorical(rng.choice(["JFK", "LGA", None], n)),
            "code": pd.Categorical(rng.integers(0, 3, n)),
            "wet": rng.random(n) < 0.3,
            "tail": [f"N{i % 90}" for i in range(n)],
            "day": pd.Timestamp("2013-01-01") + pd.to_timedelta(np.arange(n), "D"),
        }
    )
    carrier = np.array(["UA", "B6", "EV"])[np.arange(n) % 3]
    return frame, np.where(late, "late", "in time"), carrier


def boosted(frame):
    """LightGBM takes gaps and categories, but neither text nor dates."""
    return frame.drop(columns=["tail", "day"])


def test_preparation_by_hand():
    frame = pd.DataFrame(
        {
            "x": [1.0, np.nan, 3.0, np.inf],
            "c": ["a", None, "b", "a"],
            "d": [datetime.date(1970, 1, 1 + i) for i in (0, 2, 0, 2)],
        }
    )
    found = TablePreparation().fit_transform(frame)
    # x with its median 2 in the gaps, d in days; then where x was missing; all scaled.
    x = np.array([1, 2, 3, 2]) - 2
    flag = np.array([-1.0, 1, -1, 1])
    want = np.column_stack([x / x.std(), flag, flag])
    np.testing.assert_allclose(found[:, :3], want)
    np.testing.assert_array_equal(
        found[:, 3:], [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    )
    same = TablePreparation().fit_transform(pl.from_pandas(frame))
    np.testing.assert_allclose(same, found)
    as_objects = TablePreparation().fit_transform(frame.to_numpy(dtype=object))
    np.testing.assert_allclose(as_objects, found)


def test_preparation_of_what_fit_did_not_see():
    tool = TablePreparation(max_categories=3).fit([["a", 1], ["b", 2], ["a", 3]] * 5)
    strange = tool.transform([["never seen", None]])
    assert np.isfinite(strange).all() and strange.shape == (1, 3)
    with pytest.raises(ValueError, match="column 1 of X holds"):
        tool.transform([["a", "text"]])
    with pytest.raises(ValueError, match="wanted 2 as in fit"):
        tool.transform([["a"]])


def test_what_needs_no_preparation():
    assert is_plain(np.ones((3, 2), int)) and is_plain(pd.DataFrame({"a": [1, 2.5]}))
    assert not is_plain(np.array([[np.nan, 1]]))
    assert not is_plain(pd.DataFrame({"a": pd.Categorical([1, 2])}))
    assert not is_plain(np.array([["2013-01-01"]], "datetime64[D]"))


@pytest.mark.parametrize("how", [None, "table", "leaves"])
def test_booster_with_auto_over_a_table(table, how, tmp_path):
    frame, y, carrier = boosted(table[0]), *table[1:]
    booster = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1)
    model = ch.CalibratedClassifier(booster, features=how)
    model.fit(frame, y, sample_domain=carrier)
    assert isinstance(model.calibrator_, ch.AutoCalibrator)
    features = model.features_of(frame)
    assert np.isfinite(features).all()
    # hour, wet, where hour is missing; JFK, LGA, none; three codes; or 16 of leaves
    assert features.shape == (300, 16 if how == "leaves" else 9)
    alone = np.concatenate([model.predict_proba(frame[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(alone, model.predict_proba(frame[:5]))
    assert model.details(frame).covered.mean() > 0.9


@pytest.mark.parametrize("how", [None, "leaves"])
def test_catboost_with_a_list_of_categories(table, how):
    """scikit-learn's own `clone` refuses it."""
    frame, y, carrier = boosted(table[0]), *table[1:]
    frame = frame.assign(origin=frame.origin.astype(object).fillna("none"))
    quiet = {"iterations": 5, "verbose": 0, "allow_writing_files": False}
    booster = catboost.CatBoostClassifier(cat_features=["origin", "code"], **quiet)
    model = ch.CalibratedClassifier(booster, source=["UA"], features=how)
    model.fit(frame, y, sample_domain=carrier)
    assert not booster.is_fitted()
    assert np.isfinite(model.predict_proba(frame)).all()


def test_the_preparation_is_saved(table, tmp_path):
    frame, y, carrier = boosted(table[0]), *table[1:]
    model = ch.CalibratedClassifier(
        make_pipeline(TablePreparation(), LogisticRegression()),
        ch.NearestClusterTemperature(2),
    ).fit(frame, y, sample_domain=carrier)
    ch.save_calibrator(model, tmp_path / "model.skops")
    again = ch.load_calibrator(tmp_path / "model.skops")
    np.testing.assert_array_equal(
        again.predict_proba(frame), model.predict_proba(frame)
    )


class Counting(ClassifierMixin, BaseEstimator):
    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        return self


@pytest.mark.parametrize(
    "features, X, said",
    [
        ("leaves", None, "has no trees to ask"),
        ("pca", None, "there is no pipeline"),
        ("table", np.ones(6), "wanted a table"),
        (None, np.ones((6, 0)), "minimum of 1"),
    ],
)
def test_refused_before_the_first_fit(features, X, said):
    X = np.ones((6, 2)) if X is None else X
    model = ch.CalibratedClassifier(Counting(), features=features)
    with pytest.raises(ValueError, match=said):
        model.fit(X, list("ababab"), sample_domain=[1, 1, 2, 2, 3, 3])
    assert Counting.fits == 0


def test_a_fold_of_one_class_is_refused_before_the_first_fit():
    model = ch.CalibratedClassifier(Counting())
    with pytest.raises(ValueError, match="holds the class a alone"):
        model.fit(np.ones((6, 2)), list("aaaaab"), sample_domain=[1, 1, 2, 2, 3, 3])
    assert Counting.fits == 0


def test_gaps_that_come_after_fit_name_the_remedy(table):
    _, y, carrier = table
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = ch.CalibratedClassifier(HistGradientBoostingClassifier(max_iter=3))
    model.fit(X, y, sample_domain=carrier)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"row 3.*features='table'"):
        model.predict_proba(X)


@pytest.mark.filterwarnings("ignore:RandomForestClassifier gives probabilities only")
def test_leaves_of_a_forest_are_near_where_trees_agree():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0], [9.0, 0.0]], 40, axis=0)
    X += np.random.default_rng(0).normal(scale=0.3, size=X.shape)
    y = np.repeat([0, 1, 2], 40)
    model = ch.CalibratedClassifier(
        RandomForestClassifier(10, random_state=0),
        ch.NearestClusterTemperature(3),
        features="leaves",
    ).fit(X, y)
    clusters = model.details(X).cluster.reshape(3, 40)
    assert (clusters == clusters[:, :1]).all() and len(set(clusters[:, 0])) == 3
