"""A multilayer perceptron as plain torch functions of a list of parameters.

Functions instead of a module, because MLDG differentiates through an update of the
parameters, and because dropout and initial values must come from a generator of our
own: torch's layers draw from the global one. NumPy's generator is also the faster.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from coolhead.numerics.blocks import row_blocks

Parameters = list[torch.Tensor]


def initial_parameters(sizes: Sequence[int], rng: np.random.Generator) -> Parameters:
    """Return [weight, bias, weight, bias, …]; weights are (out, in).

    Uniform within 1/sqrt(in), the range torch's own linear layer starts from.
    """
    parameters = []
    for n_in, n_out in pairwise(sizes):
        for shape in ((n_out, n_in), (n_out,)):
            values = (2 * rng.random(shape, np.float32) - 1) / np.float32(n_in**0.5)
            parameters.append(torch.from_numpy(values).requires_grad_())
    return parameters


def forward(
    parameters: Sequence[torch.Tensor],
    inputs: torch.Tensor,
    dropout: float = 0.0,
    rng: np.random.Generator | None = None,
) -> torch.Tensor:
    """Return the logits (n, k) of standardised inputs (n, d).

    Hidden units are dropped only when `rng` is given, as in training.
    """
    hidden = inputs
    last = len(parameters) - 2
    for layer in range(0, last, 2):
        hidden = torch.nn.functional.linear(
            hidden, parameters[layer], parameters[layer + 1]
        ).relu()
        if dropout and rng is not None:
            kept = rng.random(hidden.shape, np.float32) >= dropout
            hidden = hidden * torch.from_numpy(kept) / (1 - dropout)
    return torch.nn.functional.linear(hidden, parameters[last], parameters[last + 1])


def loss_and_accuracy(
    parameters: Sequence[torch.Tensor],
    inputs: "StandardisedRows",
    rows: np.ndarray,
) -> tuple[float, float]:
    """Return mean log-loss and accuracy over `rows`, in blocks."""
    total, correct = 0.0, 0
    with torch.no_grad():
        for block in row_blocks(rows.size, inputs.features.shape[1]):
            x, y = inputs.batch(rows[block])
            logits = forward(parameters, x)
            loss = torch.nn.functional.cross_entropy(logits, y, reduction="sum")
            total += float(loss)
            correct += int((logits.argmax(1) == y).sum())
    return total / rows.size, correct / rows.size


class StandardisedRows(NamedTuple):
    """Rows of an archive as tensors, standardised batch by batch.

    The features stay where they are (perhaps float16 in a mapped file), so training
    needs memory for one batch only.
    """

    features: np.ndarray
    labels: np.ndarray
    center: np.ndarray
    scale: np.float32

    def batch(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs (b, d) float32 and labels (b,) int64."""
        x = (self.features[rows] - self.center) / self.scale
        x = torch.from_numpy(np.asarray(x, dtype=np.float32))
        return x, torch.from_numpy(np.asarray(self.labels[rows], dtype=np.int64))
