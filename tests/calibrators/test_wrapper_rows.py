"""Rows and scores of an estimator inside the wrapper: weights, folds, agreement."""

import numpy as np
import pytest
import sklearn
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    TunedThresholdClassifierCV,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC

import coolhead as ch

pytestmark = pytest.mark.filterwarnings("ignore:.*better off uncalibrated")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, :3] + rng.gumbel(size=(300, 3))).argmax(axis=1)
    weights = np.where(y == 0, 5.0, 1.0)
    return (
        X,
        np.array(["ant", "bee", "cow"])[y],
        weights,
        np.repeat(["a", "b", "c"], 100),
    )


LOGISTIC = LogisticRegression()
NESTED = {
    "alone": LOGISTIC,
    "pipeline": make_pipeline(StandardScaler(), LOGISTIC),
    "pipeline in a pipeline": make_pipeline(
        StandardScaler(), make_pipeline(StandardScaler(), LOGISTIC)
    ),
    "search": GridSearchCV(LOGISTIC, {"C": [1.0]}, cv=2),
    "search of a pipeline": GridSearchCV(
        make_pipeline(StandardScaler(), LOGISTIC), {}, cv=2
    ),
    "pipeline of a search": make_pipeline(
        StandardScaler(), GridSearchCV(LOGISTIC, {"C": [1.0]}, cv=2)
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_weights_reach_the_estimator(rows, name):
    X, y, weights, _ = rows
    again = np.repeat(np.arange(len(y)), weights.astype(int))
    model = ch.CalibratedClassifier(
        NESTED[name], ch.TemperatureScaling(), cv=StratifiedKFold(3)
    )
    found = model.fit(X, y, sample_weight=weights).estimator_
    want = LogisticRegression().fit(X[again], y[again])
    plain = LogisticRegression().fit(X, y)
    apart = np.abs(found.predict_proba(X) - want.predict_proba(X)).max()
    assert apart < 0.02 < np.abs(plain.predict_proba(X) - want.predict_proba(X)).max()


@pytest.mark.parametrize("name", NESTED)
def test_weights_are_routed_where_they_are_requested(rows, name):
    X, y, weights, _ = rows
    with sklearn.config_context(enable_metadata_routing=True):
        for asks in (True, False):
            estimator = sklearn.base.clone(NESTED[name])
            inner = estimator
            while not isinstance(inner, LogisticRegression):
                inner = inner[-1] if hasattr(inner, "steps") else inner.estimator
            inner.set_fit_request(sample_weight=asks)
            inner.set_score_request(sample_weight=asks)
            for _, part in sorted(estimator.get_params().items()):
                if isinstance(part, StandardScaler):
                    part.set_fit_request(sample_weight=False)
                if hasattr(part, "steps") and hasattr(part, "set_score_request"):
                    part.set_score_request(sample_weight=asks)  # scikit-learn 1.7
            model = ch.CalibratedClassifier(estimator, ch.TemperatureScaling(), cv=3)
            model.set_fit_request(sample_weight=True)
            if name == "search of a pipeline" and not asks:
                continue  # scikit-learn's own scoring fails there
            if asks:
                model.fit(X, y, sample_weight=weights)
                continue
            with pytest.warns(UserWarning, match="request them with LogisticRegr"):
                model.fit(X, y, sample_weight=weights)


@pytest.mark.filterwarnings("ignore:.*gives probabilities only")
def test_an_estimator_that_takes_no_weights_is_named(rows):
    X, y, weights, _ = rows
    model = ch.CalibratedClassifier(KNeighborsClassifier(), ch.TemperatureScaling())
    with pytest.warns(UserWarning, match="KNeighborsClassifier does not take") as heard:
        model.fit(X, y, sample_weight=weights)
    assert sum("does not take" in str(one.message) for one in heard) == 1


@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("around", ["alone", "pipeline", "search"])
def test_scores_of_pairs_of_classes_are_refused(rows, kind, around):
    X, y, _, domains = rows
    pairs, single = kind(decision_function_shape="ovo"), kind()
    wrap = {
        "alone": lambda e: e,
        "pipeline": lambda e: make_pipeline(StandardScaler(), e),
        "search": lambda e: GridSearchCV(e, {"gamma": ["scale"]}, cv=2),
    }[around]
    calibrator = ch.TemperatureScaling()
    with pytest.raises(ValueError, match=r"'ovo', which gives scores of pairs.*'ovr'"):
        ch.CalibratedClassifier(wrap(pairs), calibrator).fit(
            X, y, sample_domain=domains
        )
    model = ch.CalibratedClassifier(wrap(single), calibrator)
    model.fit(X, y, sample_domain=domains)
    assert (model.predict(X) == model.estimator_.predict(X)).mean() > 0.95


def test_a_threshold_of_its_own_is_no_mistake(rows):
    X, y, _, _ = rows
    two = np.where(y == "ant", "yes", "no")
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring="recall_macro")
    model = ch.CalibratedClassifier(tuned, ch.TemperatureScaling()).fit(X, two)
    assert model.predict_proba(X).shape == (300, 2)


class Careless(DummyClassifier):
    """Predicts another class than its scores say in some of the rows."""

    def predict(self, X):
        found = self.classes_[np.asarray(X)[:, :3].argmax(axis=1)]
        return np.where(np.asarray(X)[:, 3] < -1.2, "ant", found)

    def decision_function(self, X):
        return np.asarray(X)[:, :3]


def test_a_moderate_disagreement_is_warned_of(rows):
    X, y, _, _ = rows
    model = ch.CalibratedClassifier(Careless(), ch.TemperatureScaling(), cv=2)
    with pytest.warns(UserWarning, match=r"it predicts in 9\d% of 300 held-out rows"):
        model.fit(X, y)


def test_folds_that_share_rows_are_refused(rows):
    X, y, _, _ = rows
    every = np.arange(len(y))
    for cv in ([(every, every)], [(every[:200], every[199:])]):
        model = ch.CalibratedClassifier(LOGISTIC, ch.TemperatureScaling(), cv=cv)
        with pytest.raises(ValueError, match=r"calibration rows .* was not fitted on"):
            model.fit(X, y)


def test_folds_of_rows_that_are_not_there_are_refused(rows):
    X, y, _, domains = rows
    cv = [(np.arange(200), np.arange(200, 300))]
    model = ch.CalibratedClassifier(LOGISTIC, source=["a"], cv=cv)
    with pytest.raises(ValueError, match=r"cv names rows .* the 100 rows that are spl"):
        model.fit(X, y, sample_domain=domains)


@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_logits_of_pairs_of_classes_are_refused(rows, kind):
    """Three classes have as many pairs, so their number does not tell."""
    X, y, _, _ = rows
    for around in (lambda e: e, lambda e: make_pipeline(StandardScaler(), e)):
        pairs = around(kind(decision_function_shape="ovo")).fit(X, y)
        with pytest.raises(ValueError, match=r"decision_function_shape of .*'ovo'"):
            ch.logits_from(pairs, X)
    two = kind(decision_function_shape="ovo").fit(X, y == "ant")
    assert ch.logits_from(two, X).shape == (300, 2)


@pytest.mark.parametrize(
    "cv", [LeaveOneGroupOut(), GroupKFold(2), ch.calibrators.LeaveOneDomainOut()]
)
@pytest.mark.parametrize("source", [["a"], ["a", "b"]])
def test_folds_by_domain_beside_a_source(rows, cv, source):
    X, y, _, domains = rows
    model = ch.CalibratedClassifier(LOGISTIC, source=source, cv=cv)
    model.fit(X, y, sample_domain=domains)
    assert model.n_calibration_rows_ == 300


def test_folds_as_row_numbers_survive_rows_of_weight_zero(rows):
    X, y, weights, _ = rows
    folds = [(inside, outside) for inside, outside in StratifiedKFold(3).split(X, y)]
    more = np.r_[np.zeros(5), weights]
    junk = np.r_[np.full((5, 4), 9.0), X], np.r_[["ant"] * 5, y]
    moved = [(np.r_[inside + 5, 0, 1], outside + 5) for inside, outside in folds]
    want = ch.CalibratedClassifier(LOGISTIC, ch.TemperatureScaling(), cv=folds)
    found = ch.CalibratedClassifier(LOGISTIC, ch.TemperatureScaling(), cv=moved)
    want.fit(X, y, sample_weight=weights)
    found.fit(*junk, sample_weight=more)
    np.testing.assert_array_equal(found.predict_proba(X), want.predict_proba(X))
