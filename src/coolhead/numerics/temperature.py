"""The temperature of any number of groups, in the same passes over the logits."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.checks import as_logits, check_domains
from coolhead.numerics.classes import match_rows
from coolhead.numerics.moments import summarise_rows
from coolhead.numerics.solver import TemperatureFit, as_fit, solve_temperatures
from coolhead.numerics.weights import check_weights, counted_rows, masked_message


def fit_temperature(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Any = None,
) -> TemperatureFit:
    """Temperature that minimises the negative log-likelihood of softmax(logits / T).

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes) or (n_samples,)
        Scores of a binary classifier, (n_samples,), are taken as [0, s].
    labels : array-like of shape (n_samples,)
        Column numbers, or names of the classes.
    groups : array-like of shape (n_samples,), default=None
        Each distinct value gets its own temperature; all are solved together.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0; rows of weight zero are as good as absent.
    classes : sequence, default=None
        Names of the classes in the order of the columns. By default the names of the
        columns of a frame or, of an array, the sorted labels.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.array([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
    >>> fit = fit_temperature(logits, [0, 0, 0, 1])     # 75 % right: 4 / log 3
    >>> round(fit.temperature, 6), fit.status
    (3.640957, 'converged')
    """
    array, labels, _ = match_rows(logits, labels, classes, as_logits)
    weights = check_weights(sample_weight, len(array))
    names, codes = _group_codes(groups, len(array))
    n_groups = 1 if names is None else len(names)
    kept, n_masked = counted_rows(array, labels, weights)
    if n_masked:
        warnings.warn(masked_message(n_masked, len(array)), stacklevel=2)
    if kept is not None:
        array, labels, codes = array[kept], labels[kept], codes[kept]
        weights = None if weights is None else weights[kept]
    rows = summarise_rows(array, labels, scores=np.ndim(logits) == 1)
    return as_fit(solve_temperatures(rows, codes, weights, n_groups), names)


def _group_codes(groups: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray]:
    if groups is None:
        return None, np.zeros(n_rows, np.intp)
    array = check_domains(groups, n_rows, "groups")
    names, codes = np.unique(array, return_inverse=True)
    return names, codes
