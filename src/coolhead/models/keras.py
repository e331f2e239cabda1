"""Keras: the activation of the last layer says what a network gives."""

from typing import Any

from coolhead.models.outputs import Reading, read_output

PROBABILITIES = ("softmax", "sigmoid")


def logits(model: Any, X: Any) -> Reading:
    """Output of the network; its logarithm where the last layer is a softmax."""
    activation = getattr(model.layers[-1], "activation", None)
    name = getattr(activation, "__name__", type(model.layers[-1]).__name__).lower()
    gives = "probabilities" if name in PROBABILITIES else "logits"
    return read_output(model.predict(X, verbose=0), gives, None, "predict(X)")
