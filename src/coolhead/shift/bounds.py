"""How far the loss can move from the calibration domains to a target.

With w = dP_T/dP_C and supp(P_T) inside supp(P_C), the gap is

    |E_C L - E_T L| = |E_C (1 - w) L|
                    <= sqrt(E_C (1 - w)² · E_C L²)      Cauchy-Schwarz
                    <= (E_C (1 - w)² + E_C L²) / 2      arithmetic mean

and E_C (1 - w)² = Var_C(w) = d₂(P_T‖P_C) - 1. Because E_C (1 - w) = 0 the loss may
be centred first, which never loosens the bound. All of it concerns the loss at one
fixed temperature, not the calibration error after a temperature was chosen.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TransferBounds:
    """The gap estimated by the weights, and three upper bounds on it.

    Attributes
    ----------
    gap : |E_C (1 - w) L|.
    centred : sqrt(Var(w) Var(L)), the tightest of the three.
    cauchy_schwarz : sqrt(E(1 - w)² E L²).
    arithmetic_mean : (E(1 - w)² + E L²)/2. It depends on the unit of the loss.
    mean_weight : E_C w. Below one, that much of the target mass lies where the
        calibration domains have none, and no bound speaks about it.

    Examples
    --------
    >>> from coolhead.shift import transfer_bounds
    >>> bounds = transfer_bounds([0.5, 1.5], [1.0, 3.0])
    >>> bounds.gap <= bounds.centred <= bounds.cauchy_schwarz <= bounds.arithmetic_mean
    True
    """

    gap: float
    centred: float
    cauchy_schwarz: float
    arithmetic_mean: float
    mean_weight: float


def transfer_bounds(
    weights: np.ndarray, losses: np.ndarray, *, mass: np.ndarray | None = None
) -> TransferBounds:
    """Bound the change of the mean loss from the calibration domains to the target.

    Parameters
    ----------
    weights : (n,) ratios dP_T/dP_C at the calibration rows.
    losses : (n,) losses of the calibration rows at one fixed temperature.
    mass : (n,) probability of each row under P_C, equal by default.

    Returns
    -------
    TransferBounds

    Examples
    --------
    >>> from coolhead.shift import transfer_bounds
    >>> bounds = transfer_bounds([0.5, 1.5], [1.0, 3.0])
    >>> bounds.gap, bounds.centred
    (0.5, 0.5)
    """
    weights, losses = np.asarray(weights, float), np.asarray(losses, float)
    if weights.ndim != 1 or weights.shape != losses.shape:
        raise ValueError(
            f"losses has shape {losses.shape}, weights {weights.shape}; wanted one "
            "loss per weight, (n,)"
        )

    def mean(values: np.ndarray) -> float:
        return float(np.average(values, weights=mass))

    shift, square = mean((1 - weights) ** 2), mean(losses**2)
    # The centred form needs E w = 1; without it, what is missing stays in the bound.
    spread = mean((losses - mean(losses)) ** 2)
    missing = abs(1 - mean(weights)) * abs(mean(losses))
    return TransferBounds(
        gap=abs(mean((1 - weights) * losses)),
        centred=float(np.sqrt(shift * spread)) + missing,
        cauchy_schwarz=float(np.sqrt(shift * square)),
        arithmetic_mean=(shift + square) / 2,
        mean_weight=mean(weights),
    )
