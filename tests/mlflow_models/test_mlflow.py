"""A calibrated classifier in MLflow: logged, loaded by MLflow alone, scored."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

import coolhead as ch
import coolhead.mlflow
from coolhead.evaluate import evaluate_domains
from simulate import shifted_domains

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read while it is imported
with warnings.catch_warnings():
    # mlflow's own type hints make it warn of itself.
    warnings.simplefilter("ignore")
    import mlflow
    import mlflow.pyfunc

LOGITS, CODES, FEATURES, DOMAINS = shifted_domains(n=200)
LABELS = np.array(["no", "so", "yes", "never"])[CODES % 4]
TREES = [
    "collections.OrderedDict",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A tracking store in a folder; no server."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(None)


@pytest.mark.parametrize(
    "estimator, trusted",
    [
        (LogisticRegression(max_iter=500), ()),
        (LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1), TREES),
    ],
    ids=["logistic", "lightgbm"],
)
@pytest.mark.filterwarnings("ignore::UserWarning:mlflow")
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_a_logged_model_says_the_same(store, estimator, trusted):
    X = pd.DataFrame(FEATURES, columns=[f"x{i}" for i in range(FEATURES.shape[1])])
    model = ch.CalibratedClassifier(estimator, ch.TemperatureEnsemble(n_clusters=2))
    model.fit(X, LABELS, sample_domain=DOMAINS)
    with mlflow.start_run():
        info = coolhead.mlflow.log_model(model, trusted=trusted)
    found = mlflow.pyfunc.load_model(info.model_uri).predict(X[5:9])
    wanted = model.predict_proba(X[5:9])
    np.testing.assert_array_equal(found.filter(like="prob_").to_numpy(), wanted)
    assert list(found.columns[:-2]) == [f"prob_{name}" for name in model.classes_]
    assert found["predicted"].to_list() == model.predict(X[5:9]).tolist()
    assert found["confidence"].to_list() == wanted.max(axis=1).tolist()
    assert list(found.index) == [5, 6, 7, 8]
    packages = {line.partition("==")[0] for line in coolhead.mlflow.requirements(model)}
    assert ("lightgbm" in packages) == bool(trusted)


def test_metrics_and_report_of_every_domain(store):
    model = ch.CalibratedClassifier(
        LogisticRegression(max_iter=500), ch.TemperatureScaling()
    ).fit(FEATURES, LABELS)
    with mlflow.start_run() as run:
        lines = coolhead.mlflow.log_evaluation(
            model, FEATURES, LABELS, sample_domain=DOMAINS, n_draws=20
        )
    logged = store.get_run(run.info.run_id).data.metrics
    own = DOMAINS[0] == DOMAINS
    ece = ch.expected_calibration_error(
        np.searchsorted(model.classes_, LABELS[own]), model.predict_proba(FEATURES[own])
    )
    right = accuracy_score(LABELS[own], model.predict(FEATURES[own]))
    assert logged[f"ece_after/{DOMAINS[0]}"] == pytest.approx(ece)
    assert logged[f"accuracy/{DOMAINS[0]}"] == pytest.approx(right)
    assert logged["ece_after_low/all"] <= logged["ece_after_high/all"]
    assert {line.domain for line in lines} == {*DOMAINS, "all"}
    path = store.download_artifacts(run.info.run_id, "calibration.html")
    assert DOMAINS[0] in Path(path).read_text()


def test_names_that_mlflow_does_not_know(store):
    archive = ch.DomainArchive(
        LOGITS, labels=CODES, domains=np.where(CODES == 0, "a→b", "ü(1)")
    )
    calibrator = ch.TemperatureScaling().fit(LOGITS, CODES)
    lines = evaluate_domains(calibrator, archive, n_draws=10)
    names = {name.partition("/")[2] for name in coolhead.mlflow.metrics_of(lines)}
    assert names == {"a_b", "ü_1_", "all"}
    again = [*lines, lines[0]._replace(domain="a(b")]
    with pytest.raises(ValueError, match="two domains become 'a_b'"):
        coolhead.mlflow.metrics_of(again)


def test_what_is_refused(store):
    with pytest.raises(TypeError, match="model is a TemperatureScaling; wanted a"):
        coolhead.mlflow.log_model(ch.TemperatureScaling())
    model = ch.CalibratedClassifier(LogisticRegression(), ch.TemperatureScaling())
    with pytest.raises(ValueError, match="y is missing; wanted the labels"):
        coolhead.mlflow.log_evaluation(model.fit(FEATURES, LABELS), FEATURES)


def test_classes_in_the_order_of_the_estimator(store):
    """Columns are those of the estimator; rows of a class it never saw are counted."""
    frozen = LogisticRegression(max_iter=500).fit(FEATURES, LABELS)
    order = np.roll(np.arange(len(frozen.classes_)), 1)
    frozen.classes_, frozen.coef_ = frozen.classes_[order], frozen.coef_[order]
    frozen.intercept_ = frozen.intercept_[order]
    model = ch.CalibratedClassifier(FrozenEstimator(frozen), ch.TemperatureScaling())
    model.fit(FEATURES, LABELS)
    with mlflow.start_run():
        (line,) = coolhead.mlflow.log_evaluation(model, FEATURES, LABELS, n_draws=10)
    right = accuracy_score(LABELS, model.predict(FEATURES))
    assert line.accuracy == pytest.approx(right)
    other = np.array(LABELS, object)
    other[:3] = "okapi"
    with pytest.warns(UserWarning, match="3 of .* not fitted on their class"):
        rows = coolhead.mlflow._archive(model, FEATURES, other, None)
    assert len(rows) == len(LABELS) - 3
    with pytest.raises(ValueError, match="y holds no class that the classifier"):
        coolhead.mlflow._archive(model, FEATURES, np.full(len(LABELS), "okapi"), None)


@pytest.mark.parametrize("form", ["int64", "float64", "object"])
def test_nullable_integers_are_classes(store, form):
    """scikit-learn makes floats of them, and 1.0 is the class 1."""
    y = pd.Series(pd.factorize(np.asarray(LABELS))[0] + 1)
    model = ch.CalibratedClassifier(
        LogisticRegression(max_iter=500), ch.TemperatureScaling()
    ).fit(FEATURES, y.astype("Int64"))
    archive = coolhead.mlflow._archive(model, FEATURES, y.astype(form), None)
    assert archive.labels.tolist() == (y - 1).tolist()
