"""Calibrated probabilities as torch modules, built from fitted calibrators.

A calibrator with a temperature gets its module from `temperature_module`. For one that
changes the class scores, write a small module with
``forward(logits, features) -> (n, k)`` and register a function that builds it.
"""

from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from coolhead.baselines.binning import (
    BLEND,
    TIE,
    BayesianBinning,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
)
from coolhead.baselines.classwise import (
    AffineCalibrator,
    EnsembleTemperatureScaling,
    ScoreCalibrator,
)
from coolhead.baselines.two_stage import TwoStageCalibration
from coolhead.calibrators.class_offsets import used_offsets
from coolhead.torch.temperature import Exact, possible, temperature_module


@singledispatch
def probabilities_module(calibrator: Any) -> nn.Module:
    """Return the module ``forward(logits, features) -> (n, k)`` of a calibrator."""
    return Cooled(temperature_module(calibrator), used_offsets(calibrator))


def with_masks(calibrator: Any) -> nn.Module:
    """Return `probabilities_module` with masked classes as -inf, as in NumPy."""
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


class Cooled(Exact):
    """softmax(z / T(x) + b), with class offsets b or without."""

    def __init__(self, temperature: nn.Module, offsets: np.ndarray | None = None):
        super().__init__()
        self.temperature = temperature
        self.register_buffer("offsets", None)
        if offsets is not None:
            self.keep(offsets=offsets)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        return self.probabilities(logits, self.temperature(logits, features))

    def probabilities(self, logits: Tensor, temperature: Tensor) -> Tensor:
        """Probabilities (n, k) at known temperatures (n,)."""
        return softmax(logits, temperature, self.offsets)


@probabilities_module.register(AffineCalibrator)
class Affine(Exact):
    """softmax(W z + c); a vector of scales stands for a diagonal W."""

    def __init__(self, calibrator: AffineCalibrator):
        super().__init__()
        self.mixes_classes = calibrator.slope_.ndim == 2
        self.keep(slope=calibrator.slope_.T, bias=calibrator.bias_)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        # A masked class adds nothing to the others.
        exact = torch.where(possible(logits), logits.double(), 0.0)
        scaled = exact @ self.slope if self.mixes_classes else exact * self.slope
        scores = torch.where(possible(logits), scaled + self.bias, -torch.inf)
        return torch.softmax(scores, dim=1)


@probabilities_module.register(EnsembleTemperatureScaling)
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


@probabilities_module.register(TwoStageCalibration)
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


def softmax(
    logits: Tensor, temperature: Tensor, offsets: Tensor | None = None
) -> Tensor:
    """Return softmax(z / T + b), in single precision unless the logits are double."""
    exact = logits if logits.dtype == torch.float64 else logits.float()
    # The maximum goes first: large logits over a small T would lose their difference.
    shifted = exact - exact.amax(dim=1, keepdim=True)
    inverse = temperature.reciprocal().to(exact.dtype)
    scores = shifted * inverse[:, None]
    if offsets is not None:
        scores = scores + offsets.to(exact.dtype)
    return torch.softmax(scores, dim=1)


def normalised(weights: Tensor) -> Tensor:
    """Return rows that sum to one."""
    return weights / weights.sum(dim=1, keepdim=True)


TINIEST = float(np.finfo(np.float64).tiny)

Piece = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Curves(Exact):
    """Piecewise linear curves, one for every column of scores, or one for all.

    Piece j of a curve holds between its edges j - 1 and j, the right one included, and
    is base + slope · (score - start). Pieces are found by binary search: a table of
    (rows, classes, edges) would not fit.
    """

    def __init__(self, curves: list[Piece]):
        super().__init__()
        longest = max(len(edges) for edges, *_ in curves)
        self.n_steps = longest.bit_length()
        self.n_curves, size = len(curves), 2**self.n_steps
        fills = {"edges": np.inf, "start": 0.0, "base": 0.0, "slope": 0.0}
        for part, (name, fill) in enumerate(fills.items()):
            table = np.full((self.n_curves, size), fill)
            for row, curve in zip(table, curves, strict=True):
                row[: len(curve[part])] = curve[part]
            self.keep(**{name: table.ravel()})

    def read(self, scores: Tensor) -> Tensor:
        """Return the values of the curves at scores (n, curves)."""
        first = torch.arange(self.n_curves, device=scores.device) * 2**self.n_steps
        piece = torch.zeros_like(scores, dtype=torch.long) + first
        for step in reversed(range(self.n_steps)):
            probe = piece + 2**step
            piece = torch.where(self.edges[probe - 1] < scores, probe, piece)
        apart = scores.double() - self.start[piece]
        return self.base[piece] + self.slope[piece] * apart


class OfTopLabel(Curves):
    """A curve of the confidence; the other classes share the rest."""

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        exact = logits.double()
        peak, top = exact.max(dim=1, keepdim=True)
        confidence = (exact - peak).exp().sum(dim=1, keepdim=True).reciprocal()
        return replace_top(logits, top, self.read(confidence))


class OfEveryClass(Curves):
    """A curve of each class's probability; the results are scaled to sum to one."""

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        plain = torch.softmax(logits.double(), dim=1)
        mapped = self.read(plain) + BLEND * plain
        return normalised(torch.where(possible(logits), mapped, 0.0))


@probabilities_module.register(PlattScaling)
class Logistic(Exact):
    """A logistic curve of the confidence, or of the difference of two classes."""

    def __init__(self, calibrator: PlattScaling):
        super().__init__()
        self.n_classes = calibrator.n_classes_
        self.keep(slope=calibrator.slope_, intercept=calibrator.intercept_)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        exact = logits.double()
        if self.n_classes == 2:
            second = self._wanted(exact[:, 1:] - exact[:, :1])
            return torch.cat([1 - second, second], dim=1)
        peak, top = exact.max(dim=1, keepdim=True)
        others = torch.where(_is_column(top, self.n_classes), -torch.inf, exact - peak)
        return replace_top(logits, top, self._wanted(-log_sum_exp(others)))

    def _wanted(self, scores: Tensor) -> Tensor:
        scores = torch.where(scores.isinf(), 0.0, scores)
        return torch.sigmoid(self.slope * scores + self.intercept)


def replace_top(logits: Tensor, top: Tensor, wanted: Tensor) -> Tensor:
    """Return probabilities with the wanted one (n, 1) for class `top` (n, 1).

    As `coolhead.baselines.binning.replace_top`, which explains the steps.
    """
    n_classes = logits.shape[1]
    is_top = _is_column(top, n_classes)
    rivals = (possible(logits) & ~is_top).double()
    n_rivals = rivals.sum(dim=1, keepdim=True)
    wanted = torch.maximum(wanted, (1 + 10 * TIE) / (n_rivals + 1))
    wanted = wanted.clamp(max=1 - BLEND)
    others = torch.where(is_top, -torch.inf, logits.double())
    others = (others - log_sum_exp(others)).exp()
    even = rivals / n_rivals.clamp(min=1)
    largest = others.amax(dim=1, keepdim=True)
    allowed = (1 - TIE) * wanted / (1 - wanted)
    evenly = even.amax(dim=1, keepdim=True)
    span = torch.maximum(largest - evenly, TIE * evenly)
    blend = ((largest - allowed) / span).clamp(0, 1)
    shared = ((1 - blend) * others + blend * even) * (1 - wanted)
    return normalised(torch.where(is_top, wanted, shared))


def log_sum_exp(scores: Tensor) -> Tensor:
    """Return the log of the sum of exponentials, (n, 1); finite if all are masked."""
    peak = scores.amax(dim=1, keepdim=True)
    peak = torch.where(possible(peak), peak, 0.0)
    total = (scores - peak).exp().sum(dim=1, keepdim=True)
    return peak + total.clamp(min=TINIEST).log()


def _is_column(column: Tensor, n_columns: int) -> Tensor:
    return torch.arange(n_columns, device=column.device) == column


def _steps(curve: tuple[np.ndarray, np.ndarray]) -> Piece:
    inner, values = curve
    return inner, np.zeros_like(values), values, np.zeros_like(values)


def _points(curve: tuple[np.ndarray, np.ndarray]) -> Piece:
    """Between corner points a line, beyond them constant."""
    scores, values = (np.asarray(part, np.float64) for part in curve)
    rise = np.diff(values) / np.diff(scores)
    return (
        scores,
        np.concatenate([scores[:1], scores]),
        np.concatenate([values[:1], values]),
        np.concatenate([[0.0], rise, [0.0]]),
    )


def _unchanged() -> Piece:
    return np.empty(0), np.zeros(1), np.zeros(1), np.ones(1)


@probabilities_module.register(HistogramBinning)
@probabilities_module.register(BayesianBinning)
@probabilities_module.register(IsotonicCalibration)
def _(calibrator: Any) -> nn.Module:
    read = _points if isinstance(calibrator, IsotonicCalibration) else _steps
    curves = (
        calibrator.curves_[:1] if calibrator.scheme == "pooled" else calibrator.curves_
    )
    pieces = [_unchanged() if curve is None else read(curve) for curve in curves]
    kind = OfTopLabel if calibrator.scheme == "top_label" else OfEveryClass
    return kind(pieces)
