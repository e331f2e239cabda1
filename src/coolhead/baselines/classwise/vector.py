"""Vector scaling and bias-corrected temperature: one number or two per class."""

from dataclasses import KW_ONLY

import numpy as np

from coolhead.baselines.classwise.affine import (
    AffineCalibrator,
    Gradient,
    Start,
    centred_bias,
    descend,
    mean_loss,
)
from coolhead.baselines.classwise.base import ScoreData
from coolhead.calibrators.parameters import NotNegative, parameters
from coolhead.numerics.solving import BOUND


@parameters
class VectorScaling(AffineCalibrator):
    """softmax(v∘z + c), with a scale and, if wanted, a bias for every class.

    Parameters
    ----------
    bias : False fits the scales alone ("no-bias vector scaling").
    penalty : L2 penalty on biases and on the scales' relative distance from the
        set-level inverse temperature.

    Attributes
    ----------
    scale_ : (k,) v; bias_ : (k,) c. Classes without rows keep the set-level scale
        and no bias.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.VectorScaling().fit(data.logits, data.labels)
    >>> cal.scale_.round(1), cal.nll_ < cal.nll_uncalibrated_
    (array([0.4, 0.5, 0.5]), True)
    """

    _: KW_ONLY
    bias: bool = True
    penalty: NotNegative = 1e-3

    def _descend(self, data: ScoreData, start: Start) -> None:
        n_classes, present = data.logits.shape[1], start.present
        bend = [start.square * start.spread + 2 * self.penalty]
        if self.bias:
            bend.append(start.spread + 2 * self.penalty)

        def split(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            stretch = np.where(present, parameters[:n_classes], 0.0)
            if not self.bias:
                return stretch, np.zeros(n_classes)
            return stretch, centred_bias(parameters[n_classes:], present)

        def objective(parameters: np.ndarray) -> Gradient:
            stretch, bias = split(parameters)
            scale = start.inverse * (1 + stretch)
            loss, by_scale, by_bias = mean_loss(data, scale, bias)
            loss += self.penalty * (np.sum(stretch**2) + np.sum(bias**2))
            by_stretch = start.inverse * by_scale + 2 * self.penalty * stretch
            gradient = [np.where(present, by_stretch, 0.0)]
            if self.bias:
                by_penalty = by_bias + 2 * self.penalty * bias
                gradient.append(centred_bias(by_penalty, present))
            return loss, np.concatenate(gradient)

        bend = np.concatenate(bend)
        stretch, self.bias_ = split(descend(objective, np.zeros(len(bend)), bend))
        self.slope_ = self.scale_ = start.inverse * (1 + stretch)


@parameters
class BiasCorrectedTemperature(AffineCalibrator):
    """softmax(z/T + c): temperature scaling with a bias for every class (BCTS).

    Parameters
    ----------
    penalty : L2 penalty on the biases.

    Attributes
    ----------
    temperature_ : float; bias_ : (k,), zero for classes without rows.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> tilted = data.logits + [1.0, 0.0, 0.0]    # too fond of the first class
    >>> cal = ch.baselines.BiasCorrectedTemperature().fit(tilted, data.labels)
    >>> int(cal.bias_.argmin()), cal.accuracy_change_ > 0
    (0, True)
    """

    penalty: NotNegative = 1e-3

    def _descend(self, data: ScoreData, start: Start) -> None:
        n_classes = data.logits.shape[1]

        def split(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            # In log b the inverse temperature is positive and steps are relative.
            inverse = start.inverse * float(np.exp(parameters[0]))
            return inverse, centred_bias(parameters[1:], start.present)

        def objective(parameters: np.ndarray) -> Gradient:
            inverse, bias = split(parameters)
            loss, by_scale, by_bias = mean_loss(data, np.full(n_classes, inverse), bias)
            by_penalty = centred_bias(by_bias + 2 * self.penalty * bias, start.present)
            loss += self.penalty * float(np.sum(bias**2))
            return loss, np.r_[inverse * by_scale.sum(), by_penalty]

        bend = np.r_[start.square @ start.spread, start.spread + 2 * self.penalty]
        # Without a minimum the temperature would run away; the biases have a penalty.
        limits = np.r_[2 * np.log(BOUND), np.full(n_classes, np.inf)]
        found = descend(objective, np.zeros(1 + n_classes), bend, limits=limits)
        inverse, self.bias_ = split(found)
        self.temperature_ = 1 / inverse
        self.slope_ = np.full(n_classes, 1 / self.temperature_)
