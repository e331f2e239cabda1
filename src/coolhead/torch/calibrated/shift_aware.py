"""Shift-aware temperatures, and calibrators that weigh several candidates."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.select.calibrator import SelectByDomain
from coolhead.calibrators.shift_aware.calibrator import ShiftAwareTemperature
from coolhead.calibrators.shift_aware.descriptors import (
    DEFAULT,
    DESCRIPTORS,
    FURTHEST,
    SMALLEST_DISTANCE,
    Descriptor,
)
from coolhead.calibrators.shift_aware.training import TrainingReference
from coolhead.numerics.masks import REACH
from coolhead.torch.calibrated.temperature import Exact, temperature_module, unit_length

TINY = float(np.finfo(np.float32).tiny)
TINIEST = float(np.finfo(np.float64).tiny)


class Descriptors(Exact):
    """Columns (n, p) of named shift descriptors."""

    def __init__(self, names: Sequence[str | Descriptor], reference: TrainingReference):
        super().__init__()
        unknown = [name for name in names if name not in DESCRIPTORS]
        if unknown:
            raise TypeError(
                f"descriptors holds {unknown[0]!r}, which only NumPy can run; wanted "
                f"names out of {', '.join(DESCRIPTORS)}"
            )
        self.names = [str(name) for name in names]
        self.n_neighbours = reference.n_neighbours
        self.reach = min(reference.reach, 1e149)
        # Single precision, as in the calibrator: a distance is rounded there too.
        self.register_buffer("points", torch.tensor(reference.points))
        self.keep(
            components=reference.components,
            center=reference.center,
            scale=reference.scale,
        )

    def forward(self, logits: Tensor, features: Tensor) -> Tensor:
        columns = [getattr(self, name)(logits, features) for name in self.names]
        return torch.cat(columns, dim=1)

    def neighbour_distance(self, logits: Tensor, features: Tensor) -> Tensor:
        directions = _unit_rows(features)
        order = (directions @ self.points.T).topk(self.n_neighbours, dim=1).indices
        found = self.points[order[:, -1]]
        # As `descriptors._cosine_distance` does, for the same digits.
        apart = directions.double() - found.double()
        zeros = [(part == 0).all(dim=1, keepdim=True) for part in (directions, found)]
        squares = apart.square().sum(dim=1, keepdim=True) + zeros[0].double()
        distance = 0.5 * (squares + zeros[1].double())
        return distance.clamp(min=SMALLEST_DISTANCE).log()

    def feature_length(self, logits: Tensor, features: Tensor) -> Tensor:
        squares = self._from_center(features).square().sum(dim=1, keepdim=True)
        return 0.5 * squares.clamp(min=TINIEST).log()

    def principal_components(self, logits: Tensor, features: Tensor) -> Tensor:
        return self._from_center(features) @ self.components.T

    def logit_peak(self, logits: Tensor, features: Tensor) -> Tensor:
        return _peaks(logits, self.reach)[0].log()

    def logit_margin(self, logits: Tensor, features: Tensor) -> Tensor:
        height, margin = _peaks(logits, self.reach)
        return margin / height

    def _from_center(self, features: Tensor) -> Tensor:
        apart = (features.double() - self.center) / self.scale
        return apart.clamp(-FURTHEST, FURTHEST)


class LogLinear(Exact):
    """T = exp of a line over standardised descriptors."""

    def __init__(self, calibrator: ShiftAwareTemperature):
        super().__init__()
        chosen = calibrator.descriptors
        names = DEFAULT if chosen is None else chosen
        self.describe = Descriptors(names, calibrator.training_reference_)
        middle, spread, lower, upper = calibrator.standard_
        self.keep(middle=middle, spread=spread, lower=lower, upper=upper)
        self.keep(
            slope=calibrator.coef_,
            intercept=calibrator.intercept_,
            bounds=calibrator.bounds_,
        )

    def forward(self, logits: Tensor, features: Tensor) -> Tensor:
        columns = (self.describe(logits, features) - self.middle) / self.spread
        clamped = torch.minimum(torch.maximum(columns, self.lower), self.upper)
        line = clamped @ self.slope + self.intercept
        return line.clamp(self.bounds[0], self.bounds[1]).exp()


class LogMean(Exact):
    """The weighted mean of several temperatures, taken and kept in bounds in log T."""

    def __init__(self, calibrator: SelectByDomain):
        super().__init__()
        used = np.flatnonzero(calibrator.weights_)
        members = [temperature_module(calibrator.candidates_[index]) for index in used]
        self.members = nn.ModuleList(members)
        self.keep(weights=calibrator.weights_[used], bounds=calibrator.bounds_)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        logs = [member(logits, features).log() for member in self.members]
        mean = torch.stack(logs, dim=1) @ self.weights
        return mean.clamp(self.bounds[0], self.bounds[1]).exp()


def _unit_rows(features: Tensor) -> Tensor:
    size = features.abs().amax(dim=1, keepdim=True)
    scaled = (features / torch.where(size > 0, size, 1.0)).float()
    return unit_length(scaled)


def _peaks(logits: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Largest minus mean and largest minus second largest logit, (n, 1) each.

    Masked classes as in `descriptors._peaks`.
    """
    exact = logits.double()
    two = exact.topk(2, dim=1).values
    margin = two[:, :1] - two[:, 1:]
    drops = two[:, :1] - exact
    useful = drops <= reach
    total = torch.where(useful, drops, 0.0).sum(dim=1, keepdim=True)
    height = (total / useful.sum(dim=1, keepdim=True)).clamp(min=TINY)
    alone, usual = margin > reach, reach / REACH
    return torch.where(alone, usual, height), torch.where(alone, usual, margin)


temperature_module.register(ShiftAwareTemperature, LogLinear)
temperature_module.register(SelectByDomain, LogMean)


@temperature_module.register
def _(calibrator: AutoCalibrator) -> nn.Module:
    return temperature_module(calibrator.selection_)
