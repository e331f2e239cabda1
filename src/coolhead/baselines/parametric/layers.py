"""A network of ReLU units with one output, and its gradient."""

from itertools import pairwise

import numpy as np

Layers = list[tuple[np.ndarray, np.ndarray]]


def initial_layers(sizes: tuple[int, ...], rng: np.random.Generator) -> Layers:
    """Random hidden layers of the given sizes; the output starts at zero everywhere."""
    layers = []
    for n_in, n_out in pairwise(sizes):
        weights = rng.normal(scale=np.sqrt(2 / n_in), size=(n_in, n_out))
        # Small biases spread the kinks over the data.
        layers.append((weights, rng.uniform(-0.5, 0.5, size=n_out)))
    layers.append((np.zeros((sizes[-1], 1)), np.zeros(1)))
    return layers


def forward(inputs: np.ndarray, layers: Layers) -> tuple[np.ndarray, list[np.ndarray]]:
    """Output (n,), and the inputs of every layer for the way back."""
    memory, value = [], inputs
    for index, (weights, biases) in enumerate(layers):
        memory.append(value)
        value = value @ weights + biases
        if index < len(layers) - 1:
            value = np.maximum(value, 0)
    return value[:, 0], memory


def backward(slopes: np.ndarray, layers: Layers, memory: list[np.ndarray]) -> Layers:
    """Gradient by every layer, given the derivatives (n,) by the output."""
    gradients: Layers = []
    flow = slopes[:, None]
    for (weights, _), value in zip(reversed(layers), reversed(memory), strict=True):
        gradients.append((value.T @ flow, flow.sum(axis=0)))
        flow = (flow @ weights.T) * (value > 0)
    return gradients[::-1]


def pack(layers: Layers) -> np.ndarray:
    """All parameters in one vector."""
    return np.concatenate([part.ravel() for layer in layers for part in layer])


def unpack(parameters: np.ndarray, shapes: list[tuple[int, int]]) -> Layers:
    """The inverse of `pack` for weight matrices of these shapes."""
    layers, start = [], 0
    for n_in, n_out in shapes:
        weights = parameters[start : start + n_in * n_out].reshape(n_in, n_out)
        start += n_in * n_out
        layers.append((weights, parameters[start : start + n_out]))
        start += n_out
    return layers
