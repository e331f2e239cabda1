"""T(x) as torch modules, built from fitted calibrators.

For a new calibrator, unless its T is constant, write a small module with
``forward(logits, features) -> (n,)`` and register a function that builds it.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from coolhead.baselines.density_aware import DensityAwareTemperature
from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.parametric import ParameterizedTemperature
from coolhead.baselines.transfer import WeightedClusterTemperature
from coolhead.calibrators.auto import AutoCalibrator
from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.clustered import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.descriptors import (
    DEFAULT,
    DESCRIPTORS,
    FURTHEST,
    SMALLEST_DISTANCE,
    Descriptor,
    TrainingReference,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.calibrators.select import SelectByDomain
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.numerics.moments import REACH
from coolhead.shift.clusters import Clusters


@singledispatch
def temperature_module(calibrator: Any) -> nn.Module:
    """Return the module ``forward(logits, features) -> T (n,)`` of a calibrator."""
    if is_constant(type(calibrator)):
        return Constant(calibrator)
    raise TypeError(
        f"calibrator is a {type(calibrator).__name__}, which torch does not know; "
        "wanted a calibrator of coolhead, or register yours with "
        "coolhead.torch.temperature.temperature_module.register"
    )


def is_constant(kind: type) -> bool:
    """Return whether calibrators of this class have one T for all rows."""
    base, asked = TemperatureCalibrator, ("temperature", "_temperature", "_predict")
    return issubclass(kind, base) and all(
        getattr(kind, name) is getattr(base, name) for name in asked
    )


class Exact(nn.Module):
    """A module whose numbers stay in double precision.

    A temperature may depend on which of two centres is nearer: the network around it
    may run in half precision, T(x) may not.
    """

    def keep(self, **values: Any) -> None:
        """Store arrays or numbers as buffers of double precision."""
        for name, value in values.items():
            self.register_buffer(name, torch.tensor(np.asarray(value, np.float64)))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        def move(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            same = moved.dtype == tensor.dtype
            return moved if same else tensor.to(moved.device)

        return super()._apply(move, recurse)


class Constant(Exact):
    """The same temperature for every row."""

    def __init__(self, calibrator: TemperatureCalibrator):
        super().__init__()
        self.keep(temperature=calibrator.temperature_)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        return self.temperature.expand(logits.shape[0])


class NearestCenter(Exact):
    """Index of the nearest centre of each row, and the squared distance to it."""

    def __init__(self, clusters: Clusters):
        super().__init__()
        self.scaled = Scaled(clusters)
        # Relative to their middle, as in `Clusters.assign`.
        middle = clusters.centers.mean(axis=0)
        centers = clusters.centers - middle
        norms = np.vecdot(centers, centers)
        self.keep(middle=middle, centers=centers, norms=norms)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.scaled(features) - self.middle
        squared = self.norms - 2 * rows @ self.centers.T
        smallest, nearest = squared.min(dim=1)
        return nearest, (smallest + rows.square().sum(dim=1)).clamp(min=0)


class Scaled(Exact):
    """Features in the space of the centres."""

    def __init__(self, clusters: Clusters):
        super().__init__()
        self.scaling = clusters.scaling
        if self.scaling == "standardize":
            self.keep(shift=clusters.shift, scale=clusters.scale)

    def forward(self, features: Tensor) -> Tensor:
        rows = features.double()
        if self.scaling == "standardize":
            return (rows - self.shift) / self.scale
        if self.scaling == "l2":
            return unit_length(rows)
        return rows


def possible(logits: Tensor) -> Tensor:
    """Return which classes are not masked, (n, k) bool: -inf has probability zero.

    Modules compute as if the masked classes did not exist.
    """
    return logits != -torch.inf


def unit_length(rows: Tensor) -> Tensor:
    """Return rows of length one; rows of zeros stay."""
    length = rows.square().sum(dim=1, keepdim=True).sqrt()
    return rows / torch.where(length > 0, length, 1.0)


@temperature_module.register(NearestClusterTemperature)
@temperature_module.register(WeightedClusterTemperature)
class OfNearestCluster(Exact):
    """The temperature of the nearest centre."""

    def __init__(
        self, calibrator: NearestClusterTemperature | WeightedClusterTemperature
    ):
        super().__init__()
        self.nearest = NearestCenter(calibrator.clusters_)
        self.keep(temperatures=calibrator.cluster_temperatures_)

    def forward(self, logits: Tensor, features: Tensor) -> Tensor:
        return self.temperatures[self.nearest(features)[0]]


@temperature_module.register(RegressedTemperature)
@temperature_module.register(MultiDomainTemperature)
class OnLine(Exact):
    """A line over the features, kept within bounds."""

    def __init__(self, calibrator: RegressedTemperature | MultiDomainTemperature):
        super().__init__()
        self.scaled, self.log = None, False
        if isinstance(calibrator, RegressedTemperature):
            self.scaled = Scaled(calibrator.clusters_)
            self.log = calibrator.target == "log"
        self.keep(
            slope=calibrator.coef_,
            intercept=calibrator.intercept_,
            bounds=calibrator.bounds_,
        )

    def forward(self, logits: Tensor, features: Tensor) -> Tensor:
        rows = features.double() if self.scaled is None else self.scaled(features)
        values = rows @ self.slope + self.intercept
        values = values.exp() if self.log else values
        return values.clamp(self.bounds[0], self.bounds[1])


@temperature_module.register(TemperatureEnsemble)
class HarmonicMean(nn.Module):
    """The temperature that equals the mean of the members' scaled logits."""

    def __init__(self, calibrator: TemperatureEnsemble):
        super().__init__()
        members = [temperature_module(member) for member in calibrator.members_]
        self.members = nn.ModuleList(members)

    def forward(self, logits: Tensor, features: Tensor) -> Tensor:
        inverses = [member(logits, features).reciprocal() for member in self.members]
        return len(inverses) / torch.stack(inverses).sum(dim=0)


@temperature_module.register(OffsetTemperature)
class Moved(Exact):
    """T(x) of another module, with log T shifted and scaled around its middle."""

    def __init__(self, calibrator: OffsetTemperature):
        super().__init__()
        self.base = temperature_module(calibrator.base)
        self.keep(
            offset=calibrator.offset, slope=calibrator.slope, middle=calibrator.middle
        )

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        line = self.base(logits, features).log() - self.middle
        return (self.middle + self.offset + self.slope * line).exp()


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
        columns: dict[str, Tensor] = {}
        if "neighbour_distance" in self.names:
            columns["neighbour_distance"] = self._neighbour_distance(features)
        if {"feature_length", "principal_components"} & set(self.names):
            apart = (features.double() - self.center) / self.scale
            apart = apart.clamp(-FURTHEST, FURTHEST)
            squares = apart.square().sum(dim=1, keepdim=True)
            columns["feature_length"] = 0.5 * squares.clamp(min=TINIEST).log()
            columns["principal_components"] = apart @ self.components.T
        if {"logit_peak", "logit_margin"} & set(self.names):
            height, margin = _peaks(logits, self.reach)
            columns["logit_peak"] = height.log()
            columns["logit_margin"] = margin / height
        return torch.cat([columns[name] for name in self.names], dim=1)

    def _neighbour_distance(self, features: Tensor) -> Tensor:
        size = features.abs().amax(dim=1, keepdim=True)
        directions = unit_length((features / torch.where(size > 0, size, 1.0)).float())
        order = (directions @ self.points.T).topk(self.n_neighbours, dim=1).indices
        found = self.points[order[:, -1]]
        # As `descriptors._cosine_distance` does, for the same digits.
        apart = directions.double() - found.double()
        squares = apart.square().sum(dim=1, keepdim=True) + (size == 0).double()
        zeros = (found == 0).all(dim=1, keepdim=True).double()
        return (0.5 * (squares + zeros)).clamp(min=SMALLEST_DISTANCE).log()


@temperature_module.register(ShiftAwareTemperature)
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


@temperature_module.register(SelectByDomain)
class LogMean(Exact):
    """The weighted mean of several temperatures, taken and bounded in log T."""

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


def _peaks(logits: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Return largest minus mean and minus second largest logit, (n, 1) each.

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


@temperature_module.register
def _(calibrator: AutoCalibrator) -> nn.Module:
    return temperature_module(calibrator.selection_)


@temperature_module.register(ParameterizedTemperature)
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


@temperature_module.register(DensityAwareTemperature)
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
