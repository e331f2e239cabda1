"""Heads trained by scikit-learn alone: logistic regression and a small MLP."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from coolhead.lab.heads.head import Layers, hidden_and_logits
from coolhead.lab.heads.settings import BestEpoch, LogisticSettings, MlpSettings
from coolhead.numerics.softmax import log_loss_rows


def fit_logistic(
    inputs: np.ndarray, labels: np.ndarray, n_classes: int, settings: LogisticSettings
) -> Layers:
    """Return one layer (d, k), (k,) fitted on standardised inputs (n, d).

    A class absent from the data still needs finite logits: it is given half a row at
    the centre of the inputs, as in additive smoothing.
    """
    absent = np.flatnonzero(np.bincount(labels, minlength=n_classes) == 0)
    inputs = np.concatenate([inputs, np.zeros((absent.size, inputs.shape[1]), "f4")])
    weight = np.concatenate([np.ones(labels.size), np.full(absent.size, 0.5)])
    labels = np.concatenate([labels, absent])
    model = LogisticRegression(C=settings.C, max_iter=settings.max_iter)
    model.fit(inputs, labels, sample_weight=weight)
    return [_two_columns(model.coef_.T, np.asarray(model.intercept_))]


def fit_mlp(
    train: tuple[np.ndarray, np.ndarray],
    small: tuple[np.ndarray, np.ndarray],
    n_classes: int,
    settings: MlpSettings,
    random_state: int,
) -> tuple[Layers, list[dict[str, float]]]:
    """Return the layers and the learning curve of scikit-learn's MLP.

    Parameters
    ----------
    train, small : (inputs (n, d), labels (n,)) pairs
        `small` may have no rows; with patience it decides when to stop.
    """
    model = MLPClassifier(
        settings.hidden,
        alpha=settings.alpha,
        learning_rate_init=settings.learning_rate,
        batch_size=min(settings.batch_size, len(train[1])),  # pyright: ignore[reportArgumentType]
        # An instance, since a number would repeat the same shuffle every epoch.
        random_state=np.random.RandomState(random_state),
    )
    watch = BestEpoch(settings.patience)
    layers: Layers = []
    for epoch in range(1, settings.epochs + 1):
        model.partial_fit(*train, classes=np.arange(n_classes))
        layers = _layers(model)
        record = {"epoch": epoch, "loss": float(model.loss_)}
        if len(small[1]):
            record |= _small_scores(layers, *small)
        if watch.is_over(record, layers):
            break
    return watch.result(layers), watch.curve


def _small_scores(
    layers: Layers, inputs: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    _, logits = hidden_and_logits(layers, inputs)
    return {
        "small_loss": float(log_loss_rows(logits, labels, 1.0).mean()),
        "small_accuracy": float((logits.argmax(1) == labels).mean()),
    }


def _layers(model: MLPClassifier) -> Layers:
    pairs = zip(model.coefs_, model.intercepts_, strict=True)
    layers = [(weight.copy(), bias.copy()) for weight, bias in pairs]
    return [*layers[:-1], _two_columns(*layers[-1])]


def _two_columns(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Write a binary model's single score s as the logits [0, s]."""
    if weight.shape[1] > 1:
        return weight, bias
    return np.hstack([0 * weight, weight]), np.concatenate([0 * bias, bias])
