"""Matrix scaling, never without its off-diagonal and bias penalties (ODIR)."""

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


@parameters
class MatrixScaling(AffineCalibrator):
    """softmax(W z + c) with penalties on what lies off the diagonal and on c.

    Parameters
    ----------
    off_diagonal_penalty : L2 penalty on the off-diagonal entries, relative to the
        set-level inverse temperature; positive.
    bias_penalty : L2 penalty on the biases; positive.
    diagonal_penalty : L2 penalty on the diagonal's relative distance from the
        set-level inverse temperature.

    Attributes
    ----------
    matrix_ : (k, k) W; bias_ : (k,) c. Rows of classes that never occur keep the
        set-level scale and no bias.
    accuracy_change_, absent_classes_, status_, nll_, nll_uncalibrated_

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.baselines.MatrixScaling().fit(data.logits, data.labels)
    >>> cal.matrix_.diagonal().round(1), cal.nll_ < cal.nll_uncalibrated_
    (array([0.4, 0.5, 0.5]), True)
    """

    _: KW_ONLY
    off_diagonal_penalty: NotNegative = 1.0
    bias_penalty: NotNegative = 1e-2
    diagonal_penalty: NotNegative = 1e-2

    def _descend(self, data: ScoreData, start: Start) -> None:
        k, present = data.logits.shape[1], start.present
        penalties = self._penalties(k)

        def split(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            change = parameters[: k * k].reshape(k, k) * present[:, None]
            return change, centred_bias(parameters[k * k :], present)

        def objective(parameters: np.ndarray) -> Gradient:
            change, bias = split(parameters)
            loss, by_matrix, by_bias = mean_loss(
                data, start.inverse * (np.eye(k) + change), bias
            )
            loss += float(np.sum(penalties * change**2))
            loss += self.bias_penalty * float(np.sum(bias**2))
            by_change = start.inverse * by_matrix + 2 * penalties * change
            by_change *= present[:, None]
            by_penalty = centred_bias(by_bias + 2 * self.bias_penalty * bias, present)
            return loss, np.concatenate([by_change.ravel(), by_penalty])

        by_matrix = np.outer(start.spread, start.square) + 2 * penalties
        by_bias = start.spread + 2 * self.bias_penalty
        bend = np.concatenate([by_matrix.ravel(), by_bias])
        found = descend(objective, np.zeros(k * k + k), bend, tolerance=1e-8)
        change, self.bias_ = split(found)
        self.slope_ = self.matrix_ = start.inverse * (np.eye(k) + change)

    def _penalties(self, n_classes: int) -> np.ndarray:
        """Penalty of every entry of the matrix, (k, k)."""
        if not min(self.off_diagonal_penalty, self.bias_penalty) > 0:
            raise ValueError(
                "off_diagonal_penalty and bias_penalty must be positive, found "
                f"{self.off_diagonal_penalty} and {self.bias_penalty}"
            )
        penalties = np.full((n_classes, n_classes), float(self.off_diagonal_penalty))
        np.fill_diagonal(penalties, self.diagonal_penalty)
        return penalties
