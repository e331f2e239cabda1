"""Temperatures that other work learns from the logits (PTS) or distances (DAC)."""

import numpy as np
import torch
from torch import Tensor

from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.baselines.parametric.calibrator import ParameterizedTemperature
from coolhead.torch.calibrated.temperature import Exact, temperature_module, unit_length


class OfLargestLogits(Exact):
    """A small network of ReLU units on the largest logits."""

    def __init__(self, calibrator: ParameterizedTemperature):
        super().__init__()
        self.n_layers = len(calibrator.layers_)
        self.n_top = len(calibrator.shift_)
        self.reach = calibrator.reach_
        self.keep(
            shift=calibrator.shift_,
            scale=calibrator.scale_,
            temperature=calibrator.temperature_,
            bounds=np.log(np.divide(calibrator.bounds_, calibrator.temperature_)),
        )
        for index, (weights, biases) in enumerate(calibrator.layers_):
            self.keep(**{f"weights_{index}": weights, f"biases_{index}": biases})

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        exact = logits.double()
        top = exact.topk(self.n_top, dim=1).values
        drops, top = top[:, :1] - exact, top[:, :1] - top
        useful = drops <= self.reach  # masked classes as in `largest_logits`
        total = torch.where(useful, drops, 0.0).sum(dim=1, keepdim=True)
        mean = total / useful.sum(dim=1, keepdim=True)
        top = torch.where(top <= self.reach, mean - top, 0.0)
        value = (top - self.shift) / self.scale
        for index in range(self.n_layers):
            weights = self.get_buffer(f"weights_{index}")
            value = value @ weights + self.get_buffer(f"biases_{index}")
            value = value.relu() if index < self.n_layers - 1 else value
        bounded = value[:, 0].clamp(self.bounds[0], self.bounds[1])
        return self.temperature * bounded.exp()


class OfNeighborDistance(Exact):
    """A line over the distances to a neighbour among reference rows, per layer."""

    def __init__(self, calibrator: DensityAwareTemperature):
        super().__init__()
        self.layers = calibrator._layers()
        wanted = 1 if calibrator.neighbor == "nearest" else calibrator.n_neighbors
        self.n_neighbors = min(wanted, len(calibrator.reference_))
        self.keep(
            slope=calibrator.coef_,
            intercept=calibrator.intercept_,
            floor=calibrator.floor_,
        )
        # Single precision, as in the calibrator: it is by far the largest buffer.
        for index, layer in enumerate(self.layers):
            rows = torch.tensor(calibrator.reference_[:, layer])
            self.register_buffer(f"reference_{index}", unit_length(rows))

    def forward(self, logits: Tensor, features: Tensor) -> Tensor:
        values = self.intercept
        for index, layer in enumerate(self.layers):
            rows = unit_length(features[:, layer].float())
            reference = self.get_buffer(f"reference_{index}")
            # Single precision finds the neighbour; its distance is taken exactly.
            squared = reference.square().sum(dim=1) - 2 * rows @ reference.T
            order = squared.topk(self.n_neighbors, dim=1, largest=False).indices
            apart = rows.double() - reference[order[:, -1]].double()
            values = values + self.slope[index] * apart.square().sum(dim=1)
        return values.clamp(min=self.floor)


temperature_module.register(ParameterizedTemperature, OfLargestLogits)
temperature_module.register(DensityAwareTemperature, OfNeighborDistance)
