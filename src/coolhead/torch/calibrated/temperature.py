"""T(x) as torch modules, built from fitted calibrators.

To teach a new calibrator, unless its T is constant, to torch, write a small module with
``forward(logits, features) -> (n,)`` and register a function that builds it.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from coolhead.baselines.multidomain import MultiDomainTemperature
from coolhead.baselines.transfer.weighted import WeightedClusterTemperature
from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.clustered.calibrators import (
    NearestClusterTemperature,
    RegressedTemperature,
)
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.shift.clusters import Clusters


@singledispatch
def temperature_module(calibrator: Any) -> nn.Module:
    """The module ``forward(logits, features) -> T (n,)`` of a fitted calibrator."""
    if is_constant(type(calibrator)):
        return Constant(calibrator)
    raise TypeError(
        f"calibrator is a {type(calibrator).__name__}, which torch does not know; "
        "wanted a calibrator of coolhead, or register yours with "
        "coolhead.torch.calibrated.temperature.temperature_module.register"
    )


def is_constant(kind: type) -> bool:
    """Whether calibrators of this class have one T for all rows: needs no teaching."""
    base, asked = TemperatureCalibrator, ("temperature", "_temperature", "_predict")
    return issubclass(kind, base) and all(
        getattr(kind, name) is getattr(base, name) for name in asked
    )


class Exact(nn.Module):
    """A module whose numbers stay in double precision.

    A temperature may hang on which of two centres is nearer: the network around it
    may be halved, T(x) may not.
    """

    def keep(self, **values: Any) -> None:
        """Remember arrays or numbers as buffers of double precision."""
        for name, value in values.items():
            tensor = torch.tensor(np.asarray(value, np.float64))
            self.register_buffer(name, tensor)

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
        # Seen from their middle, as in `Clusters.assign`.
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
    """Features in the space that the centres live in."""

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


def unit_length(rows: Tensor) -> Tensor:
    """Rows of length one; those of zeros stay."""
    length = rows.square().sum(dim=1, keepdim=True).sqrt()
    return rows / torch.where(length > 0, length, 1.0)


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


class HarmonicMean(nn.Module):
    """The temperature that the mean of the members' scaled logits amounts to."""

    def __init__(self, calibrator: TemperatureEnsemble):
        super().__init__()
        members = [temperature_module(member) for member in calibrator.members_]
        self.members = nn.ModuleList(members)

    def forward(self, logits: Tensor, features: Tensor) -> Tensor:
        inverses = [member(logits, features).reciprocal() for member in self.members]
        return len(inverses) / torch.stack(inverses).sum(dim=0)


for nearest in (NearestClusterTemperature, WeightedClusterTemperature):
    temperature_module.register(nearest, OfNearestCluster)
for line in (RegressedTemperature, MultiDomainTemperature):
    temperature_module.register(line, OnLine)
temperature_module.register(TemperatureEnsemble, HarmonicMean)
