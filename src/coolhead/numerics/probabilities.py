"""Probabilities: told from logits, checked, turned into logits."""

import numpy as np
from numpy.typing import ArrayLike

from coolhead.numerics.arrays import real_array
from coolhead.numerics.blocks import row_blocks

# Rows are taken for probabilities where nearly all are: one bad row proves nothing.
MOST_ROWS = 0.95
# However coarsely probabilities are rounded, their sum is not further from one.
LOOSEST_SUM = 0.25
# So few rows may sum to one by chance, if "one" is taken generously.
FEW_ROWS = 4


def sum_tolerance(dtype: np.dtype) -> float:
    """How far a row of unrounded probabilities may miss a sum of one."""
    return 5e-3 if dtype == np.float16 else 1e-4


def rounded_sum_tolerance(values: np.ndarray) -> float:
    """How far rows (n, k) of probabilities, rounded like these, may miss a sum of 1.

    Half precision, also the one with eight bits, shows in the last bits of single
    precision; decimals show as whole numbers of hundredths, thousandths, ...
    """
    exact = sum_tolerance(values.dtype)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, np.float32)
    is_single = bool((single == values).all())
    if is_single:
        used = np.bitwise_or.reduce(single.view(np.uint32), axis=None)
        if not used & 0xFFFF:
            exact = 8e-3  # eight bits were kept, the others perhaps just cut off
        elif not used & 0x1FFF:
            exact = 5e-3  # eleven bits were kept
    noise = np.finfo(np.float32 if is_single else np.float64).eps
    for decimals in range(2, 7):
        steps = values.astype(np.float64) * 10**decimals
        with np.errstate(invalid="ignore"):
            apart = np.abs(steps - np.rint(steps))
        if (apart <= noise * 10**decimals).all():
            worst = values.shape[1] * 0.5 / 10**decimals
            return min(max(exact, 1.001 * worst), LOOSEST_SUM)
    return exact


def refuse_probabilities(array: np.ndarray, name: str) -> None:
    """Refuse arrays nearly all of whose rows lie in [0, 1] and sum to one.

    The sum is judged by the rounding that the values themselves show. This is for rows
    that come together: any single row of logits may sum to one.
    """
    n_rows = len(array)
    if n_rows == 1:
        return
    excess, first, others = np.full(n_rows, np.inf), None, 0
    for block in row_blocks(*array.shape):
        part = array[block]
        alike, distance = _like_probabilities(part)
        excess[block] = np.where(alike, distance, np.inf)
        others += int((~alike).sum())
        if others > (1 - MOST_ROWS) * n_rows:
            return
        if first is None and alike.any():
            first = part[alike]
    if first is None:
        return
    few = n_rows < FEW_ROWS
    slack = sum_tolerance(array.dtype) if few else rounded_sum_tolerance(first)
    if (excess <= slack).mean() >= MOST_ROWS:
        raise ValueError(probabilities_message(name))


def _like_probabilities(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows of a block may be probabilities, and how far their sum is from one."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(part.sum(axis=1, dtype=np.float64) - 1)
        # Written so that NaN, which no comparison holds for, is no probability.
        alike = (part.min(axis=1) >= 0) & (part.max(axis=1) <= 1 + LOOSEST_SUM)
        return alike & (distance <= LOOSEST_SUM), distance


def probabilities_message(name: str) -> str:
    return (
        f"{name} holds probabilities: the rows lie in [0, 1] and sum to 1; wanted "
        "logits (scores before the softmax). Where only probabilities exist, pass "
        "coolhead.logits_from_probabilities(p)"
    )


def check_probabilities(
    probabilities: ArrayLike, name: str = "probabilities", first_row: int = 0
) -> np.ndarray:
    """A finite (n, k) array of rows in [0, 1] that sum to one.

    Rounded probabilities may miss one by as much as their own rounding explains.
    first_row : number of the first row, where the array is a piece of something longer.
    """
    array = real_array(probabilities, name)
    if array.ndim != 2 or 0 in array.shape or array.shape[1] < 2:
        dense = ", one row per pixel or token: coolhead.models.dense_rows makes them"
        raise ValueError(
            f"{name} has shape {array.shape}; wanted (n, k) with k >= 2"
            + (dense if array.ndim > 2 else "")
        )
    for block in row_blocks(*array.shape):
        part = array[block].astype(np.float64)
        wrong = _wrong_probabilities(part, sum_tolerance(array.dtype))
        if wrong.any():
            alike = _like_probabilities(part)[0]
            slack = rounded_sum_tolerance(array[block][alike])
            wrong = _wrong_probabilities(part, slack)
        if wrong.any():
            row = int(np.argmax(wrong))
            number = row + block.start + first_row
            raise ValueError(
                f"{name} row {number} is no probability vector (smallest "
                f"{part[row].min():.4g}, sum {part[row].sum():.6g}); wanted values in "
                "[0, 1] that sum to 1"
            )
    return array


def _wrong_probabilities(part: np.ndarray, slack: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return ~(
            (part >= 0).all(axis=1)
            & (part <= 1 + slack).all(axis=1)
            & (np.abs(part.sum(axis=1) - 1) <= slack)
        )


def logits_from_probabilities(probabilities: ArrayLike) -> np.ndarray:
    """Logits whose softmax gives back `probabilities`: their logarithms.

    Parameters
    ----------
    probabilities : (n, k) rows that sum to one, or (n,) probabilities of class 1.
        Zeros are taken as the smallest normal number, so that every logit is finite.
        Rounded rows may miss a sum of one by their rounding; the softmax makes up for
        it.

    Returns
    -------
    (n, k) array of log-probabilities, which temperature scaling can use as logits:
    the softmax forgets an additive constant per row, and so does every temperature.

    Examples
    --------
    >>> import coolhead as ch
    >>> ch.logits_from_probabilities([[0.5, 0.5], [0.8, 0.2]]).round(2)
    array([[-0.69, -0.69],
           [-0.22, -1.61]])
    """
    array = real_array(probabilities, "probabilities")
    if array.ndim == 1:
        array = np.column_stack([1 - array, array])
    array = check_probabilities(array)
    dtype = np.float64 if array.dtype == np.float64 else np.float32
    logits = array.astype(dtype)
    np.maximum(logits, np.finfo(dtype).tiny, out=logits)
    return np.log(logits, out=logits)
