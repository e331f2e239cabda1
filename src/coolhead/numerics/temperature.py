"""The temperature of any number of groups, in the same passes over the logits."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.blocks import ELEMENTS_PER_BLOCK, computing_dtype
from coolhead.numerics.checks import as_logits, check_domains
from coolhead.numerics.classes import match_rows
from coolhead.numerics.moments import Rows, summarise_rows
from coolhead.numerics.solver import (
    Groups,
    Penalty,
    Solution,
    TemperatureFit,
    TemperatureProblem,
    as_fit,
    group_sums,
    group_totals,
    positive,
    solve,
    strided_rows,
    warm_start_strides,
)
from coolhead.numerics.weights import check_weights, counted_rows, masked_message

# More logits than this are read in single precision, whatever they are given in.
MANY = 2**22


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


def solve_temperatures(
    rows: Rows,
    codes: np.ndarray,
    weights: np.ndarray | None = None,
    n_groups: int | None = None,
    penalty: Penalty | None = None,
    start: np.ndarray | None = None,
) -> Solution:
    """`fit_temperature` on checked arrays, optionally penalised to a common value.

    start : (g,) log temperatures that the search begins with, if they are known.
    """
    count = int(codes.max()) + 1 if n_groups is None else n_groups
    mass = np.bincount(codes, weights, minlength=count).astype(np.float64)
    share = np.where(mass > 0, 1 / positive(mass), 0.0)[codes]
    groups = Groups(codes, share if weights is None else weights * share, count)
    totals = group_totals(rows, groups)
    strides = warm_start_strides(totals.n_samples)
    rough = None
    if strides is not None and start is None:
        some = strided_rows(codes, strides)
        part = Groups(codes[some], groups.share[some], count)
        rough = partial(group_sums, rows.take(some), part, dtype=np.float32)
    evaluate = partial(group_sums, rows, groups)
    dtype = solving_dtype(rows.whole, len(rows))
    return solve(TemperatureProblem(totals, rough, evaluate, dtype), penalty, start)


def solving_dtype(logits: Any, n_rows: int) -> type[np.floating]:
    """What T is wanted in.

    Few numbers cost next to nothing in double precision. Of many, single precision
    finds nine digits of T, where chance leaves three or four.
    """
    size = n_rows * logits.shape[1]
    if size <= ELEMENTS_PER_BLOCK:
        return np.float64
    return np.float32 if size > MANY else computing_dtype(logits)


def _group_codes(groups: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray]:
    if groups is None:
        return None, np.zeros(n_rows, np.intp)
    array = check_domains(groups, n_rows, "groups")
    names, codes = np.unique(array, return_inverse=True)
    return names, codes
