"""What left-out domains say about candidates: scores, a choice, or weights."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from coolhead.metrics import expected_calibration_error
from coolhead.numerics.moments import Rows, row_moments
from coolhead.numerics.softmax import (
    brier_rows,
    confidence,
    log_loss_rows,
    softmax,
)


class LeftOutRows(NamedTuple):
    """What the candidates, fitted elsewhere, say about the rows of one domain.

    log_temperatures : (n, m), one column per candidate; row_weights : (n,) that sum to
    one.
    """

    rows: Rows
    labels: np.ndarray
    log_temperatures: np.ndarray
    row_weights: np.ndarray

    def change(self, weights: np.ndarray) -> np.ndarray:
        """`loss_change` that candidates with these weights (m,) make together."""
        temperature = np.exp(self.log_temperatures @ weights)
        logits, labels = self.rows.logits, self.labels
        before, after = (log_loss_rows(logits, labels, t) for t in (1.0, temperature))
        return loss_change(before, after, self.row_weights)


Metric = str | Callable[[np.ndarray, np.ndarray], float]


def scores_by_domain(folds: list[LeftOutRows], metric: Metric) -> np.ndarray:
    """Score of every candidate on every left-out domain, (m, domains)."""
    return np.array(
        [
            [score(fold, np.exp(column), metric) for column in fold.log_temperatures.T]
            for fold in folds
        ]
    ).T


def score(fold: LeftOutRows, temperature: np.ndarray, metric: Metric) -> float:
    """The metric on the rows of one domain; smaller is better."""
    logits, labels = fold.rows.logits, fold.labels
    if callable(metric):
        return float(metric(labels, softmax(logits, temperature)))
    if metric == "nll":
        return float(fold.row_weights @ log_loss_rows(logits, labels, temperature))
    if metric == "brier":
        return float(fold.row_weights @ brier_rows(logits, labels, temperature))
    sure, predicted = confidence(logits, temperature)
    if metric == "top_label_brier":
        return float(fold.row_weights @ np.square(sure - (predicted == labels)))
    if metric == "ece":
        return float(expected_calibration_error(predicted == labels, sure))
    raise ValueError(
        f"metric is {metric!r}; wanted 'nll', 'brier', 'top_label_brier', 'ece' or a "
        "function (labels, probabilities) -> float"
    )


def pick(scores: np.ndarray) -> np.ndarray:
    """All weight on the first row within one standard error of the best, (m,).

    scores : (candidates from simple to rich, domains). What counts is the difference
        to the best in each domain, not how hard the domains are.
    """
    best = scores[scores.mean(axis=1).argmin()]
    apart = scores - best
    error = apart.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    chosen = int(np.argmax(apart.mean(axis=1) <= error))
    return np.eye(len(scores))[chosen]


def stack(folds: list[LeftOutRows], prior: np.ndarray, penalty: float) -> np.ndarray:
    """Weights (m,) >= 0 that sum to one, of smallest loss on the left-out domains.

    `penalty` / number of domains weighs the squared distance to `prior`: two domains
    say little about a third, so they must disagree loudly to move the weights.
    """
    strength = penalty / len(folds)

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        apart = weights - prior
        loss, slope = strength * apart @ apart, 2 * strength * apart
        for fold in folds:
            line = fold.log_temperatures @ weights
            moments = row_moments(fold.rows, np.exp(-line))
            loss = loss + fold.row_weights @ moments.loss / len(folds)
            gradient = (fold.row_weights * moments.score) @ fold.log_temperatures
            slope = slope - gradient / len(folds)
        return float(loss), slope

    found = minimize(
        objective,
        prior,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(prior),
        constraints={
            "type": "eq",
            "fun": lambda weights: weights.sum() - 1,
            "jac": lambda weights: np.ones(len(weights)),
        },
        options={"maxiter": 50},
    )
    if not np.isfinite(found.x).all():
        return prior
    weights = np.clip(found.x, 0.0, 1.0)
    return weights / weights.sum()


def loss_change(
    before: np.ndarray, after: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """(3,) mean loss uncalibrated, calibrated, and the error of their difference.

    before, after : (n,) losses of the rows; weights : (n,) that sum to one.
    """
    gain = before - after
    with np.errstate(over="ignore"):
        error = np.linalg.norm(weights * (gain - weights @ gain))
    return np.array([weights @ before, weights @ after, error])


def warn_of_harm(
    names: np.ndarray, changes: np.ndarray, *, stacklevel: int = 6
) -> list[str]:
    """Names of the left-out domains that were better off uncalibrated.

    changes : (domains, 3), see `loss_change`. Better means a loss lower by more than
        two standard errors of the paired difference.
    """
    harmed = {
        name: f"{before:.3f} → {after:.3f}"
        for name, (before, after, error) in zip(names.tolist(), changes, strict=True)
        if before - after < -2 * error
    }
    if harmed:
        listed = ", ".join(f"{name} (NLL {change})" for name, change in harmed.items())
        warnings.warn(
            f"{len(harmed)} of {len(names)} domains, left out of the fit, were better "
            f"off uncalibrated: {listed}; a new domain may be, too",
            stacklevel=stacklevel,
        )
    return list(harmed)
