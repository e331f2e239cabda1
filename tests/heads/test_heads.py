"""Heads train on what they should, give back what they computed, and repeat."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from coolhead.io.archive import DomainArchive
from coolhead.lab.heads.classical import fit_mlp
from coolhead.lab.heads.head import hidden_and_logits, load_head
from coolhead.lab.heads.settings import MlpSettings
from coolhead.lab.heads.train import (
    balanced_batches,
    center_and_scale,
    domain_pools,
    train_head,
)

KINDS = ["logistic", "mlp", "erm", "mldg"]
QUICK = {
    "logistic": {},
    "mlp": {"epochs": 4, "hidden": 16, "learning_rate": 0.02},
    "erm": {"epochs": 4, "hidden": 16, "learning_rate": 0.02},
    "mldg": {"epochs": 4, "hidden": 16, "learning_rate": 0.02, "inner_step": 0.1},
}


@pytest.fixture
def archive():
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b", "c"], [240, 120, 90])
    labels = rng.integers(3, size=450)
    features = rng.normal(size=(450, 8)) + 2.5 * np.eye(3, 8)[labels]
    features += np.repeat([0.0, 0.5, 1.0], [240, 120, 90])[:, None]
    return DomainArchive(
        features=features.astype(np.float16),
        labels=labels,
        domains=domains,
        class_names=["x", "y", "z"],
    )


def numpy_state():
    return np.random.get_state()[1].tolist()  # noqa: NPY002


@pytest.fixture
def small():
    return np.random.default_rng(1).random(450) < 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_head_learns_and_returns_logits_and_features(archive, small, kind):
    head = train_head(archive, ["a", "b"], kind=kind, small=small, **QUICK[kind])
    result = head.apply(archive)
    unseen = result.select("c")
    assert result.logits.shape == (450, 3)
    assert result.features.shape == (450, 8 if kind == "logistic" else 16)
    assert np.mean(unseen.logits.argmax(1) == unseen.labels) > 0.8
    assert result.metadata["head"]["source"] == ["a", "b"]
    assert head.settings["n_train"] == np.sum(~small[:360])


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_head_and_global_seeds_untouched(archive, small, kind):
    torch = pytest.importorskip("torch")
    torch.manual_seed(5)
    before = torch.get_rng_state(), numpy_state()
    heads = [
        train_head(archive, ["a", "b"], kind=kind, small=small, **QUICK[kind])
        for _ in range(2)
    ]
    other = train_head(archive, ["a", "b"], kind=kind, random_state=1, **QUICK[kind])
    assert all(map(np.array_equal, heads[0].weights, heads[1].weights))
    assert kind == "logistic" or not np.array_equal(heads[0].weights, other.weights)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == numpy_state()


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_row_matters(archive, small, kind):
    """Rows of other domains and, without patience, Small rows change no weight."""
    unused = small | (archive.domains == "c")
    features = archive.features.copy()
    features[unused] += 3
    changed = archive.replace(features=features)
    heads = [
        train_head(data, ["a", "b"], kind=kind, small=small, **QUICK[kind])
        for data in (archive, changed)
    ]
    assert all(map(np.array_equal, heads[0].weights, heads[1].weights))


def test_logistic_agrees_with_scikit_learn(archive):
    head = train_head(archive, "a", kind="logistic")
    source = archive.select("a")
    inputs = (source.features.astype(np.float32) - head.center) / head.scale
    model = LogisticRegression(max_iter=1000).fit(inputs, source.labels)
    logits = head.outputs(source.features)[0]
    np.testing.assert_allclose(logits, model.decision_function(inputs), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mlp_hidden_activations_are_scikit_learns(n_classes):
    rng = np.random.default_rng(0)
    train = rng.normal(size=(200, 5)), rng.integers(n_classes, size=200)
    none = train[0][:0], train[1][:0]
    settings = MlpSettings(hidden=(7, 4), epochs=3)
    layers, curve = fit_mlp(train, none, n_classes, settings, 0)
    model = MLPClassifier((7, 4), batch_size=128, random_state=np.random.RandomState(0))
    for _ in range(3):
        model.partial_fit(*train, classes=np.arange(n_classes))
    hidden, logits = hidden_and_logits(layers, train[0])
    exponential = np.exp(logits)
    found = exponential / exponential.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, model.predict_proba(train[0]), atol=1e-12)
    assert hidden.shape == (200, 4) and hidden.min() >= 0 and len(curve) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [2, 4])
def test_class_absent_from_the_source_keeps_its_column(archive, small, kind, k):
    labels = np.minimum(archive.labels, 1)
    names = [str(i) for i in range(k)]
    data = archive.replace(labels=labels, class_names=names)
    head = train_head(data, ["a", "b"], kind=kind, small=small, **QUICK[kind])
    logits = head.outputs(data.features)[0]
    assert logits.shape == (450, k) and np.isfinite(logits).all()
    assert np.mean(logits.argmax(1) == labels) > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_saved_head_is_the_same(archive, small, kind, tmp_path):
    head = train_head(archive, ["a", "b"], kind=kind, small=small, **QUICK[kind])
    head.save(tmp_path / "head.safetensors")
    again = load_head(tmp_path / "head.safetensors")
    for one, other in zip(
        head.outputs(archive.features), again.outputs(archive.features), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert again.curve == head.curve and again.settings["kind"] == kind


@pytest.mark.parametrize("kind", ["mlp", "erm"])
def test_patience_returns_the_best_epoch(archive, small, kind):
    archive.labels[:] = np.random.default_rng(3).integers(3, size=450)
    head = train_head(
        archive, "a", kind=kind, small=small, epochs=60, hidden=64, patience=3
    )
    losses = [entry["small_loss"] for entry in head.curve]
    best = int(np.argmin(losses))
    assert len(losses) == best + 4 < 60
    watched = archive.rows(small & (archive.domains == "a"))
    logits = head.outputs(watched.features)[0].astype(float)
    logits -= logits.max(axis=1, keepdims=True)
    rows = logits[np.arange(len(watched)), watched.labels]
    loss = np.mean(np.log(np.exp(logits).sum(axis=1)) - rows)
    assert loss == pytest.approx(losses[best], rel=1e-4)


def test_scale_is_one_number_after_centring():
    features = np.random.default_rng(0).normal(3, [1, 10, 100], size=(70_000, 3))
    rows = np.arange(0, 70_000, 2)
    center, scale = center_and_scale(features, rows)
    np.testing.assert_allclose(center, features[rows].mean(axis=0), rtol=1e-6)
    centred = features[rows] - features[rows].mean(axis=0)
    assert scale == pytest.approx(np.std(centred), rel=1e-6)


def test_constant_features_do_not_divide_by_zero(archive):
    flat = archive.replace(features=np.ones((450, 2)))
    head = train_head(flat, "a", kind="mlp", **QUICK["mlp"])
    assert np.isfinite(head.outputs(flat.features)[0]).all()


def test_balanced_batches_give_every_domain_its_share():
    pools = domain_pools(np.arange(12), np.repeat(["b", "a"], [9, 3]))
    batches = balanced_batches(pools, 6, np.random.default_rng(0))
    drawn = [next(batches) for _ in range(3)]
    assert [[len(part) for part in batch] for batch in drawn] == [[3, 3]] * 3
    assert sorted(np.concatenate([batch[0] for batch in drawn])) == list(range(9))
    for batch in drawn:
        assert sorted(batch[1]) == [9, 10, 11]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "d"}, r"\['a', 'b', 'c'\].*found \['d'\]"),
        ({"source": []}, "source must name domains"),
        ({"kind": "svm"}, "kind must be one of"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"hiden": 3}, "no setting .*hiden"),
        ({"hidden": (0,)}, "positive layer widths"),
        ({"learning_rate": -1.0}, "learning_rate must be positive"),
        ({"kind": "erm", "dropout": 1.0}, r"dropout must lie in \[0, 1\)"),
        ({"kind": "mldg"}, "at least two source domains"),
        ({"kind": "mldg", "source": ["a", "b"]}, "give small= or an inner_step"),
        ({"patience": 2}, "give small="),
        ({"small": np.ones(450, bool)}, "has 0 rows to train on"),
        ({"small": np.ones(3, bool)}, r"mask of shape \(450,\)"),
    ],
)
def test_bad_arguments_are_named(archive, arguments, message):
    with pytest.raises(ValueError, match=message):
        train_head(archive, **({"source": "a"} | arguments))


def test_missing_columns_are_named(archive):
    with pytest.raises(ValueError, match="labels is None"):
        train_head(archive.replace(labels=None), "a")
    head = train_head(archive, "a", kind="logistic")
    only_logits = archive.replace(features=None, logits=np.eye(3)[archive.labels] * 3)
    with pytest.raises(ValueError, match="features is None"):
        head.apply(only_logits)
    with pytest.raises(ValueError, match="features"):
        head.outputs(np.zeros((4, 5)))


def test_scikit_learn_heads_never_import_torch():
    program = (
        "import sys, numpy as np\n"
        "from coolhead.io import DomainArchive\n"
        "from coolhead.lab.heads import train_head\n"
        "x = np.random.default_rng(0).normal(size=(60, 3))\n"
        "data = DomainArchive(features=x, labels=np.arange(60) % 3)\n"
        "for kind in ('mlp', 'logistic'):\n"
        "    train_head(data, 'all', kind=kind).apply(data)\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        "try:\n"
        "    train_head(data, 'all', kind='erm')\n"
        "except ModuleNotFoundError as error:\n"
        "    assert 'coolhead[torch]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error without torch')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_features_beyond_single_precision_are_named():
    features = np.array([[1e200, 0.0], [0.0, 1e200], [1.0, 1.0]])
    with pytest.raises(ValueError, match="features reaches beyond 3e38"):
        center_and_scale(features, np.arange(3))
    with pytest.raises(ValueError, match="features reaches beyond 3e38"):
        center_and_scale(np.full((3, 2), 1e39), np.arange(3))
