"""The softmax of `logits_from` is what each real model says itself."""

import types

import catboost
import lightgbm
import numpy as np
import pytest
import torch
import transformers
import xgboost
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import coolhead as ch
from coolhead.models import leaves_of

X, Y = make_classification(
    240, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0
)


def light(**settings):
    return lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, **settings)


def extreme(**settings):
    return xgboost.XGBClassifier(n_estimators=5, **settings)


def cat(**settings):
    quiet = {"iterations": 5, "verbose": 0, "allow_writing_files": False}
    return catboost.CatBoostClassifier(**quiet, **settings)


FOREST = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
CLASSIFIERS = {
    "logistic": LogisticRegression(),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5),
    "naive Bayes": GaussianNB(),
    "search": GridSearchCV(LogisticRegression(), {"C": [1.0]}),
    "lightgbm": light(),
    "lightgbm, its own slope": light(sigmoid=2.0),
    "lightgbm forest": light(**FOREST),
    "lightgbm in a pipeline": make_pipeline(StandardScaler(), light()),
    "xgboost": extreme(),
    "catboost": cat(),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_softmax_gives_back_the_probabilities(name, n_classes):
    y = np.minimum(Y, n_classes - 1)
    model = CLASSIFIERS[name].fit(X, y)
    logits = ch.logits_from(model, X)
    assert logits.shape == (240, n_classes)
    np.testing.assert_allclose(
        softmax(logits, axis=1), model.predict_proba(X), atol=1e-6
    )
    if n_classes == 2 and "forest" not in name and "Bayes" not in name:
        assert not logits[:, 0].any()  # a margin m becomes [0, m]
    np.testing.assert_array_equal(ch.logits_from(FrozenEstimator(model), X), logits)


@pytest.mark.parametrize(
    "model", [light(objective="multiclassova"), cat(loss_function="MultiClassOneVsAll")]
)
def test_one_against_the_rest(model):
    p = model.fit(X, Y).predict_proba(X)  # sigmoids that do not sum to one
    found = softmax(ch.logits_from(model, X), axis=1)
    np.testing.assert_allclose(found, p / p.sum(axis=1, keepdims=True), atol=1e-9)


def test_boosters_without_an_estimator():
    for estimator, booster in (
        (light().fit(X, Y), lambda m: m.booster_),
        (extreme().fit(X, Y), lambda m: m.get_booster()),
    ):
        np.testing.assert_allclose(
            ch.logits_from(booster(estimator), X), ch.logits_from(estimator, X)
        )
        leaves = leaves_of(booster(estimator), X)
        assert leaves.shape == (240, 15)
        np.testing.assert_array_equal(leaves, leaves_of(estimator, X))
    plain = catboost.CatBoost(cat(loss_function="MultiClass").get_params())
    plain.fit(X, Y)
    assert ch.logits_from(plain, X).shape == (240, 3)
    matrix = xgboost.DMatrix(X)
    assert ch.logits_from(extreme().fit(X, Y).get_booster(), matrix).shape == (240, 3)


@pytest.mark.parametrize(
    "model, said",
    [
        (lightgbm.LGBMRegressor(n_estimators=2, verbose=-1), "model is regression"),
        (LinearRegression(), "wanted a classifier"),
        (SVC(decision_function_shape="ovo"), "one score per class"),
        (LogisticRegression, "wanted a fitted classifier"),
        (IsolationForest(n_estimators=2), "wanted a fitted classifier"),
        (3, "wanted a classifier"),
    ],
    ids=str,
)
def test_refusals(model, said):
    many = np.arange(240) % 4
    if hasattr(model, "fit") and not isinstance(model, type):
        model.fit(X, many)
    with pytest.raises((TypeError, ValueError), match=said):
        ch.logits_from(model, X)


@pytest.mark.parametrize(
    "booster",
    [
        lightgbm.train({"verbose": -1}, lightgbm.Dataset(X, Y), 2),
        xgboost.train({}, xgboost.DMatrix(X, Y), 2),
        catboost.CatBoost(
            {"iterations": 2, "verbose": 0, "allow_writing_files": False}
        ).fit(X, Y),
    ],
    ids=["lightgbm", "xgboost", "catboost"],
)
def test_boosters_of_another_task(booster):
    with pytest.raises((TypeError, ValueError), match=r"wanted .*classifi"):
        ch.logits_from(booster, X)


def test_probabilities_of_zero_are_cut_and_said():
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="gives probabilities only"):
        logits = ch.logits_from(forest, X)
    assert logits.min() == np.log(np.finfo(np.float64).eps)
    np.testing.assert_allclose(
        softmax(logits, axis=1), forest.predict_proba(X), atol=1e-15
    )


class Network(torch.nn.Module):
    def __init__(self, form=lambda scores: scores):
        super().__init__()
        self.layer, self.form = torch.nn.Linear(5, 3), form
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.form(self.drop(self.layer(x)))


@pytest.mark.parametrize(
    "form",
    [
        lambda z: z,
        lambda z: {"logits": z, "loss": 0},
        lambda z: (z, z),
        lambda z: types.SimpleNamespace(logits=z),
    ],
    ids=["tensor", "dictionary", "tuple", "object"],
)
def test_torch_networks(form):
    model = Network(form).train()
    inputs = torch.from_numpy(X.astype(np.float32))
    want = model.layer(inputs).detach().numpy()
    pairs = torch.utils.data.TensorDataset(inputs, torch.from_numpy(Y))
    for given in (X, inputs, torch.utils.data.DataLoader(pairs, batch_size=100)):
        np.testing.assert_allclose(ch.logits_from(model, given), want, atol=1e-6)
    assert model.training and model.drop.training


def test_tensors_as_they_come():
    z = torch.randn(40, 3, requires_grad=True)
    half = z.bfloat16()
    np.testing.assert_array_equal(ch.logits_from(half), half.detach().float())
    labels = torch.randint(0, 3, (40,))
    cal = ch.TemperatureScaling().fit(half, labels)
    np.testing.assert_array_equal(
        cal.predict_proba(half), cal.predict_proba(half.detach().float().numpy())
    )
    archive = ch.DomainArchive(logits=half, features=z, labels=labels)
    assert archive.logits.shape == (40, 3)


def tiny_bert():
    settings = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(
        vocab_size=8, intermediate_size=8, num_labels=12, **settings
    )
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(config).eval()


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    words = tmp_path_factory.mktemp("bert") / "vocab.txt"
    words.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\n")
    tokenizer = transformers.BertTokenizer(vocab=str(words))
    return transformers.pipeline(
        "text-classification", model=tiny_bert(), tokenizer=tokenizer
    )


def test_transformers(pipeline):
    texts = ["good film", "bad film", "bad"]
    batch = pipeline.tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        output = pipeline.model(**batch)
    want = output.logits.numpy()
    for model, given in (
        (output, None),
        (pipeline.model, batch),
        (pipeline, texts),
        (transformers.trainer_utils.PredictionOutput(want, None, {}), None),
    ):
        np.testing.assert_allclose(ch.logits_from(model, given), want, atol=1e-5)
    # What pipelines return is sorted by score; LABEL_10 comes after LABEL_9.
    found = softmax(ch.logits_from(pipeline(texts, top_k=None)), axis=1)
    np.testing.assert_allclose(found, softmax(want, axis=1), atol=1e-5)
    with pytest.raises(ValueError, match="top_k=None"):
        ch.logits_from(pipeline(texts))


def test_keras_says_by_its_last_layer_what_it_gives():
    z = np.random.default_rng(0).normal(size=(240, 3))

    class Model:
        def __init__(self, activation, output):
            self.layers = [types.SimpleNamespace(activation=activation)]
            self.output = output

        def predict(self, X, verbose):
            return self.output

    Model.__module__ = "keras.models"

    def linear(x): ...
    def sigmoid(x): ...

    np.testing.assert_array_equal(ch.logits_from(Model(linear, z), X), z)
    p = softmax(z, axis=1)
    found = ch.logits_from(Model(softmax, p), X)
    np.testing.assert_allclose(softmax(found, axis=1), p)
    one = 1 / (1 + np.exp(-z[:, :1]))
    found = ch.logits_from(Model(sigmoid, one), X)
    np.testing.assert_allclose(softmax(found, axis=1)[:, 1:], one)


def test_functions_and_lists():
    z = np.random.default_rng(0).normal(size=(240, 3))
    p = softmax(z, axis=1)
    np.testing.assert_array_equal(ch.logits_from(lambda X: z, X), z)
    found = ch.logits_from(lambda X: p, X, gives="probabilities")
    np.testing.assert_allclose(found, np.log(p))
    with pytest.raises(ValueError, match="gives='probabilities'"):
        ch.logits_from(lambda X: p, X)
    rows = [dict(zip("cab", row, strict=True)) for row in z]
    np.testing.assert_array_equal(ch.logits_from(rows), z[:, [1, 2, 0]])
    np.testing.assert_array_equal(ch.logits_from(rows, classes="cab"), z)
    with pytest.raises(ValueError, match="row 1 are of the classes"):
        ch.logits_from([{"a": 1, "b": 2}, {"a": 1}])
    with pytest.raises(ValueError, match="wanted 'logits' or 'probabilities'"):
        ch.logits_from(z, gives="odds")
    with pytest.raises(TypeError, match="dictionary of loss"):
        ch.logits_from({"loss": 3})


@pytest.mark.parametrize(
    "model", [light(), extreme(), cat()], ids=lambda m: type(m).__name__
)
@pytest.mark.filterwarnings("ignore:.*better off uncalibrated")
def test_the_wrapper_over_boosters_with_names_and_a_rare_class(model):
    names = np.array(["no", "perhaps", "yes"])[Y]
    site = np.array(["rome", "oslo", "kyiv"])[np.arange(240) % 3]
    names[(site == "rome") & (names == "perhaps")] = "no"
    wrapped = ch.CalibratedClassifier(model, ch.TemperatureScaling(), source=["rome"])
    with pytest.warns(UserWarning, match="left out of the calibration"):
        wrapped.fit(X, names, sample_domain=site)
    assert wrapped.predict_proba(X).shape == (240, 3)
    assert wrapped.estimator_classes_.tolist() == ["no", "yes"]
    whole = ch.CalibratedClassifier(model).fit(X, names, sample_domain=site)
    assert set(whole.predict(X)) <= set(names)
    raw = ch.logits_from(whole.estimator_, X)
    np.testing.assert_array_equal(whole.predict(X), whole.classes_[raw.argmax(axis=1)])


def test_a_frozen_estimator_of_other_labels():
    frozen = FrozenEstimator(extreme().fit(X, Y))
    with pytest.raises(ValueError, match="wanted the labels it was fitted with"):
        ch.CalibratedClassifier(frozen).fit(X, np.array(list("abc"))[Y])
