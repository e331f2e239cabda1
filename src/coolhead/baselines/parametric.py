"""A network of ReLU units with one output, and its gradient."""

from dataclasses import KW_ONLY
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize

from coolhead.calibrators.base import TemperatureCalibrator, remember_beyond
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Count, NotNegative, Seed, parameters
from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.checks import check_choice
from coolhead.numerics.moments import distances, hide_masked, useful_drops
from coolhead.numerics.search import temperature_slopes
from coolhead.numerics.solver import BOUND

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


@parameters
class ParameterizedTemperature(TemperatureCalibrator):
    """T(z) from a network of ReLU units on the sorted largest logits (PTS).

    The network predicts log T relative to the set-level temperature, where it also
    starts: T is positive without a kink, and the fit cannot do worse than its start.

    Parameters
    ----------
    n_top : int, default=10
        Largest logits that enter; all, if there are fewer classes.
    hidden : tuple of int, default=(5, 5)
        Units of the hidden layers.
    loss : {"brier", "nll"}, default="brier"
        "brier" is the published squared error.
    penalty : float, default=1e-4
        L2 penalty of the network's weights.
    max_iter : int, default=200
        Of the full-batch L-BFGS.
    random_state : int, default=0
        Seed of the initial weights.

    Attributes
    ----------
    layers_ : list of (weights, biases)
    shift_, scale_ : ndarray of shape (n_top,)
        Of the network's inputs.
    reach_ : float
        How far below its row's largest a logit may lie and not count as masked.
    temperature_ : float
        The set-level temperature.
    status_, nll_, nll_uncalibrated_
        Of the fit set.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.ParameterizedTemperature().fit(data.logits, data.labels)
    >>> bool((cal.temperature(data.logits) > 0).all()), round(cal.temperature_, 1)
    (True, 2.1)
    """

    _: KW_ONLY
    n_top: Count = 10
    hidden: tuple[Count, ...] = (5, 5)
    loss: str = "brier"
    penalty: NotNegative = 1e-4
    max_iter: Count = 200
    random_state: Seed = 0

    def _learn(self, data: CalibrationData) -> None:
        check_choice(self.loss, "loss", "brier", "nll")
        common = data.set_temperature()
        self.temperature_ = float(common.temperature[0])
        spread = data.rows.typical_spread()
        self.reach_ = data.rows.reach
        self.bounds_ = (spread / BOUND, spread * BOUND) if spread > 0 else (1.0, 1.0)
        inputs = largest_logits(data.logits, self.n_top, self.reach_)
        self.shift_ = inputs.mean(axis=0)
        # In units of the largest: squares of huge logits would overflow.
        unit = float(np.abs(inputs).max()) or 1.0
        deviation = unit * (inputs / unit).std(axis=0)
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        self._train(data, (inputs - self.shift_) / self.scale_)
        temperature = self._temperature(data.logits, None)
        remember_beyond(self, data, temperature, common)

    def _train(self, data: CalibrationData, inputs: np.ndarray) -> None:
        rng = np.random.default_rng(self.random_state)
        layers = initial_layers((inputs.shape[1], *self.hidden), rng)
        shapes = [weights.shape for weights, _ in layers]
        shares = data.row_shares
        # On its way the search may try a T at which a mask of -1e4 is none.
        logits = hide_masked(data.rows.logits, self.reach_, data.labels)

        def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            layers = unpack(parameters, shapes)
            output, memory = forward(inputs, layers)
            temperature, free = self._bounded(output)
            losses, slopes = temperature_slopes(
                logits, data.labels, temperature, self.loss
            )
            gradients = backward(shares * slopes * free, layers, memory)
            norm = sum(float(np.sum(w**2)) for w, _ in layers)
            with_penalty = [
                (dw + 2 * self.penalty * w, db)
                for (dw, db), (w, _) in zip(gradients, layers, strict=True)
            ]
            return float(shares @ losses) + self.penalty * norm, pack(with_penalty)

        found: Any = minimize(
            objective,
            pack(layers),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "ftol": 1e-10, "gtol": 1e-7},
        )
        self.n_iter_ = int(found.nit)
        self.layers_ = unpack(found.x, shapes)

    def _bounded(self, output: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T of the network's output, and which rows are not stuck at a bound."""
        low, high = np.log(np.divide(self.bounds_, self.temperature_))
        free = (output > low) & (output < high)
        return self.temperature_ * np.exp(np.clip(output, low, high)), free

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        largest = largest_logits(logits, self.n_top, self.reach_)
        inputs = (largest - self.shift_) / self.scale_
        return self._bounded(forward(inputs, self.layers_)[0])[0]


def largest_logits(logits: np.ndarray, n_top: int, reach: float) -> np.ndarray:
    """The largest logits of each row, descending, minus the row's mean.

    Masked classes, further than `reach` below the largest, have no part in the mean and
    stand at it.
    """
    n_rows, n_classes = logits.shape
    n_top = min(n_top, n_classes)
    largest = np.empty((n_rows, n_top))
    for rows in row_blocks(n_rows, n_classes):
        peak = logits[rows].max(axis=1)
        mean = useful_drops(logits[rows], peak, reach)
        drops = distances(logits[rows], peak)
        top = np.sort(np.partition(drops, n_top - 1, axis=1)[:, :n_top], axis=1)
        largest[rows] = np.where(top <= reach, mean[:, None] - top, 0.0)
    return largest
