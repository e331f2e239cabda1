"""Calibrated probabilities as torch modules, built from fitted calibrators.

A calibrator with a temperature gets its module from `temperature_module`. To teach one
that changes the class scores to torch, write a small module with
``forward(logits, features) -> (n, k)`` and register a function that builds it.
"""

from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coolhead.baselines.classwise.affine import AffineCalibrator
from coolhead.baselines.classwise.base import ScoreCalibrator
from coolhead.baselines.classwise.ets import EnsembleTemperatureScaling
from coolhead.baselines.outside import OutsideCalibrator
from coolhead.baselines.two_stage import TwoStageCalibration
from coolhead.calibrators.classifier.classifier import CalibratedClassifier
from coolhead.torch.calibrated.masked import possible
from coolhead.torch.calibrated.temperature import Exact, is_constant, temperature_module


@singledispatch
def probabilities_module(calibrator: Any) -> nn.Module:
    """The module ``forward(logits, features) -> (n, k)`` of a fitted calibrator."""
    return Cooled(temperature_module(calibrator))


def exports(kind: type) -> bool:
    """Whether calibrators of this class have a module."""
    if kind in (OutsideCalibrator, CalibratedClassifier):
        return False
    makers = (probabilities_module, temperature_module)
    known = any(make.dispatch(kind) is not make.dispatch(object) for make in makers)
    return known or is_constant(kind)


def with_masks(calibrator: Any) -> nn.Module:
    """`probabilities_module`, for which masked classes are -inf, as in NumPy."""
    module = probabilities_module(calibrator)
    if not isinstance(calibrator, ScoreCalibrator) or np.isinf(calibrator.reach_):
        return module
    return Masked(module, calibrator.reach_)


class Masked(nn.Module):
    """Logits further than `reach` below the largest of their row count as -inf."""

    def __init__(self, module: nn.Module, reach: float):
        super().__init__()
        self.module, self.reach = module, reach

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        drops = logits.amax(dim=1, keepdim=True).double() - logits.double()
        return self.module(
            torch.where(drops > self.reach, -torch.inf, logits), features
        )


class Cooled(nn.Module):
    """softmax(z / T(x))."""

    def __init__(self, temperature: nn.Module):
        super().__init__()
        self.temperature = temperature

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        return softmax(logits, self.temperature(logits, features))


class Affine(Exact):
    """softmax(W z + c); a vector of scales stands for a diagonal W."""

    def __init__(self, calibrator: AffineCalibrator):
        super().__init__()
        self.mixes_classes = calibrator.slope_.ndim == 2
        self.keep(slope=calibrator.slope_.T, bias=calibrator.bias_)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        # A class that cannot be adds nothing to the others.
        exact = torch.where(possible(logits), logits.double(), 0.0)
        scaled = exact @ self.slope if self.mixes_classes else exact * self.slope
        scores = torch.where(possible(logits), scaled + self.bias, -torch.inf)
        return torch.softmax(scores, dim=1)


class Mixture(Exact):
    """A mixture of the cooled, the original and the uniform distribution."""

    def __init__(self, calibrator: EnsembleTemperatureScaling):
        super().__init__()
        self.keep(temperature=calibrator.temperature_, shares=calibrator.mixture_)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        allowed = possible(logits).double()
        even = allowed / allowed.sum(dim=1, keepdim=True)
        plain = softmax(logits, torch.ones_like(even[:, 0]))
        cooled = softmax(logits, self.temperature.expand(logits.shape[0]))
        mixed = self.shares[0] * cooled + self.shares[1] * plain
        return normalised(mixed + self.shares[2] * even)


class TwoStages(nn.Module):
    """base(z / T(x))."""

    def __init__(self, calibrator: TwoStageCalibration):
        super().__init__()
        self.first = temperature_module(calibrator.first_)
        self.base = with_masks(calibrator.base_)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        temperature = self.first(logits, features)
        exact = logits.double()
        shifted = exact - exact.amax(dim=1, keepdim=True)
        return self.base(shifted / temperature[:, None], features)


def softmax(logits: Tensor, temperature: Tensor) -> Tensor:
    """softmax(z / T), (n, k), in single precision unless the logits are double."""
    exact = logits if logits.dtype == torch.float64 else logits.float()
    # The maximum goes first: large logits over a small T would lose their difference.
    shifted = exact - exact.amax(dim=1, keepdim=True)
    inverse = temperature.reciprocal().to(exact.dtype)
    return torch.softmax(shifted * inverse[:, None], dim=1)


def normalised(weights: Tensor) -> Tensor:
    """Rows that sum to one."""
    return weights / weights.sum(dim=1, keepdim=True)


probabilities_module.register(AffineCalibrator, Affine)
probabilities_module.register(EnsembleTemperatureScaling, Mixture)
probabilities_module.register(TwoStageCalibration, TwoStages)


@probabilities_module.register
def _(calibrator: OutsideCalibrator) -> nn.Module:
    raise TypeError(
        "calibrator is an OutsideCalibrator, whose "
        f"{type(calibrator.calibrator_).__name__} belongs to another library that "
        "torch cannot read; wanted a calibrator of coolhead, or that library's own "
        "export"
    )


@probabilities_module.register
def _(calibrator: CalibratedClassifier) -> nn.Module:
    raise TypeError(
        "calibrator is a CalibratedClassifier, whose "
        f"{type(calibrator.estimator_).__name__} torch cannot run; wanted its "
        "calibrator_, on logits that the estimator gave"
    )
