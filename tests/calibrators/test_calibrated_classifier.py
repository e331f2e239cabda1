"""CalibratedClassifier as a scikit-learn citizen, and its one promise."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import coolhead as ch


@pytest.fixture(scope="module")
def sites():
    X, y = make_classification(
        600, 8, n_informative=5, n_classes=3, flip_y=0.2, random_state=0
    )
    site = np.array(["rome", "oslo", "kyiv"])[np.arange(600) % 3]
    X = X + 0.7 * (site == "oslo")[:, None]
    return X, np.array(["no", "perhaps", "yes"])[y], site


class Memory(ClassifierMixin, BaseEstimator):
    """Right on every row it was fitted on, and remembers which rows were asked for."""

    asked: list

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.rows_ = {row.tobytes() for row in X}
        return self

    def decision_function(self, X):
        known = np.array([row.tobytes() in self.rows_ for row in X])
        Memory.asked.append(known)
        return np.random.default_rng(0).normal(size=(len(X), len(self.classes_)))


@pytest.mark.parametrize("how", ["cv", "domains", "source"])
def test_never_calibrates_on_rows_the_estimator_was_fitted_on(sites, how):
    X, y, site = sites
    Memory.asked = []
    model = ch.CalibratedClassifier(
        Memory(),
        ch.TemperatureScaling(),
        source=["rome"] if how == "source" else None,
    )
    model.fit(X, y, sample_domain=None if how == "cv" else site)
    assert sum(len(known) for known in Memory.asked) == model.n_calibration_rows_
    assert not np.concatenate(Memory.asked).any()
    assert model.n_calibration_rows_ == (400 if how == "source" else 600)


def test_source_fits_the_estimator_on_those_domains_alone(sites):
    X, y, site = sites
    model = ch.CalibratedClassifier(
        LogisticRegression(), ch.TemperatureScaling(), source=["rome", "oslo"]
    )
    model.fit(X, y, sample_domain=site)
    inside = site != "kyiv"
    alone = LogisticRegression().fit(X[inside], y[inside])
    np.testing.assert_allclose(model.estimator_.coef_, alone.coef_)
    assert model.n_calibration_rows_ == 200


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_the_default_gets_the_source_and_its_training_rows(sites):
    X, y, site = sites
    Memory.asked = []
    model = ch.CalibratedClassifier(Memory(), source=["rome"])
    model.fit(X, y, sample_domain=site)
    assert isinstance(model.calibrator_, ch.AutoCalibrator)
    # Out-of-fold logits of the source are rows no estimator had seen either.
    assert not np.concatenate(Memory.asked).any()
    assert model.n_calibration_rows_ == 600
    assert "source-only" in model.calibrator_.names_
    assert "no source_domain" not in model.calibrator_.status_
    assert "no reference_features" not in model.calibrator_.status_


def test_a_frozen_source_gives_training_rows_but_no_source(sites):
    X, y, site = sites
    inside = site == "rome"
    frozen = FrozenEstimator(LogisticRegression().fit(X[inside], y[inside]))
    model = ch.CalibratedClassifier(frozen, source=["rome"])
    model.fit(X, y, sample_domain=site)
    assert model.n_calibration_rows_ == 400
    assert "no reference_features" not in model.calibrator_.status_
    assert "source-only" not in model.calibrator_.names_


def test_frozen_is_never_refitted(sites):
    X, y, _ = sites
    inner = LogisticRegression().fit(X[:300], y[:300])
    model = ch.CalibratedClassifier(FrozenEstimator(inner)).fit(X[300:], y[300:])
    np.testing.assert_array_equal(model.estimator_.coef_, inner.coef_)
    logits = inner.decision_function(X[300:])
    codes = np.searchsorted(model.classes_, y[300:])
    want = ch.fit_temperature(logits, codes).temperature
    assert model.calibrator_.temperature_ == pytest.approx(want)
    np.testing.assert_array_equal(model.predict(X), inner.predict(X))


# A forest of twenty trees is often entirely sure.
@pytest.mark.filterwarnings("ignore:RandomForestClassifier gives probabilities only")
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        RandomForestClassifier(20, random_state=0),
        SVC(random_state=0),
        make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_binary_and_multiclass_with_string_labels(sites, estimator, binary):
    X, y, site = sites
    keep = y != "perhaps" if binary else np.full(len(y), True)
    features = "pca" if hasattr(estimator, "steps") else None
    model = ch.CalibratedClassifier(
        estimator, ch.NearestClusterTemperature(3), features=features
    ).fit(X[keep], y[keep], sample_domain=site[keep])
    p = model.predict_proba(X[keep])
    assert p.shape == (keep.sum(), 2 if binary else 3)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(
        model.classes_[p.argmax(axis=1)], model.predict(X[keep])
    )
    assert (model.temperature(X[keep]) > 0).all()
    assert model.score(X[keep], y[keep]) > 0.6
    width = 3 if features else 8
    assert model.calibrator_.cluster_centers_.shape[1] == width


def test_cross_validate_with_metadata_routing(sites):
    X, y, site = sites
    model = ch.CalibratedClassifier(LogisticRegression())
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_validate(
            model,
            X,
            y,
            cv=LeaveOneGroupOut(),
            params={"sample_domain": site, "groups": site},
            scoring="neg_log_loss",
            error_score="raise",
            return_estimator=True,
        )
    assert len(scores["test_score"]) == 3
    plain = cross_validate(model, X, y, error_score="raise")
    assert plain["test_score"].mean() > 0.5


def test_inside_a_pipeline(sites):
    X, y, site = sites
    model = make_pipeline(
        StandardScaler(), ch.CalibratedClassifier(LogisticRegression())
    ).fit(X, y, calibratedclassifier__sample_domain=site)
    assert model.predict_proba(X).shape == (600, 3)


def test_frames_keep_their_column_names(sites):
    pd = pytest.importorskip("pandas")
    X, y, site = sites
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = ch.CalibratedClassifier(
        LogisticRegression(), ch.NearestClusterTemperature(3)
    )
    model.fit(frame, pd.Series(y), sample_domain=pd.Series(site))
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    assert model.predict(frame).shape == (600,)


@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_a_class_that_only_one_domain_has(sites):
    X, y, site = sites
    y = np.where((site != "rome") & (y == "yes"), "no", y)
    model = ch.CalibratedClassifier(LogisticRegression(), ch.TemperatureScaling())
    with pytest.warns(UserWarning, match="left out of the calibration"):
        model.fit(X, y, sample_domain=site)
    assert model.predict_proba(X).shape == (600, 3)
    assert model.n_calibration_rows_ < 600


def test_bad_arguments(sites):
    X, y, site = sites

    def fit(**options):
        domains = options.pop("sample_domain", site)
        ch.CalibratedClassifier(LogisticRegression(), **options).fit(
            X, y, sample_domain=domains
        )

    with pytest.raises(ValueError, match="source_domain names paris, which"):
        fit(source=["paris"])
    with pytest.raises(ValueError, match="every domain"):
        fit(source=["rome", "oslo", "kyiv"])
    with pytest.raises(ValueError, match="sample_domain is missing"):
        fit(source=["rome"], sample_domain=None)
    with pytest.raises(ValueError, match="one domain per row"):
        fit(sample_domain=site[:-1])
    with pytest.raises(ValueError, match="there is no pipeline"):
        fit(features="pca", calibrator=ch.NearestClusterTemperature(2))
    with pytest.raises(ValueError, match="y has no name in row 2"):
        gaps = y.astype(object)
        gaps[2] = None
        ch.CalibratedClassifier(LogisticRegression()).fit(X, gaps)
    with pytest.raises(ValueError, match="mixes names and numbers"):
        fit(sample_domain=np.where(site == "oslo", 3, site.astype(object)))
    with pytest.raises(NotFittedError):
        ch.CalibratedClassifier(LogisticRegression()).predict(X)
