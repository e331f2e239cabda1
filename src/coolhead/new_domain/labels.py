"""Which rows to label, and the weights of labelled rows.

Strata of equal total uncertainty by calibrated confidence; rows are taken where they
narrow the estimate most (Neyman). A stratum's labelled rows share its weight, so the
weights follow from which rows are labelled.
"""

import heapq
from typing import Any

import numpy as np
from scipy.special import expit

from coolhead.calibrators.evidence import logit
from coolhead.metrics.bins import Interval, check_count
from coolhead.new_domain.accuracy import NORMAL_90
from coolhead.new_domain.posterior import Belief

STRATA = 10
LEAST_UNCERTAINTY = 0.05


def uncertainty(confidence: np.ndarray) -> np.ndarray:
    """Return the standard deviation of a row's correctness, bounded from below."""
    return np.maximum(np.sqrt(confidence * (1 - confidence)), LEAST_UNCERTAINTY)


def find_strata(confidence: np.ndarray) -> np.ndarray:
    """Return the stratum of each row, by confidence, of equal total uncertainty."""
    order = np.argsort(confidence, kind="stable")
    summed = np.cumsum(uncertainty(confidence)[order])
    strata = np.empty(len(confidence), np.intp)
    share = (summed - summed[0] / 2) / summed[-1]
    strata[order] = np.minimum((share * STRATA).astype(np.intp), STRATA - 1)
    return strata


def asking_order(strata: np.ndarray, random_state: int) -> np.ndarray:
    """Return the position of each row in the queue of its stratum, 0 for the first."""
    shuffled = np.random.default_rng(random_state).permutation(len(strata))
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    sizes = np.bincount(strata, minlength=STRATA)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty(len(strata), np.intp)
    place[order] = np.arange(len(strata)) - starts
    return place


def choose_rows(
    confidence: np.ndarray,
    strata: np.ndarray,
    place: np.ndarray,
    labelled: np.ndarray,
    count: int,
) -> np.ndarray:
    """Choose the next unlabelled rows, from the most informative strata first.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples,)
    strata, place : ndarray of shape (n_samples,)
        Stratum of each row, and its position in the queue of the stratum.
    labelled : ndarray of bool of shape (n_samples,)
    count : int

    Returns
    -------
    rows : ndarray of shape (count,)
    """
    spread = np.bincount(strata, uncertainty(confidence), STRATA)
    taken = np.bincount(strata[labelled], minlength=STRATA)
    free = np.flatnonzero(~labelled)
    free = free[np.lexsort((place[free], strata[free]))]
    ends = np.searchsorted(strata[free], np.arange(STRATA + 1))
    queues = [list(free[ends[h] : ends[h + 1]][::-1]) for h in range(STRATA)]
    heap = [(-spread[h] / (taken[h] + 0.5), h) for h in range(STRATA) if queues[h]]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < count:
        _, stratum = heapq.heappop(heap)
        chosen.append(queues[stratum].pop())
        taken[stratum] += 1
        if queues[stratum]:
            cost = -spread[stratum] / (taken[stratum] + 0.5)
            heapq.heappush(heap, (cost, stratum))
    return np.array(chosen, np.intp)


def label_weights(strata: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the share of the batch that each labelled row represents.

    The nearest stratum with labels represents a stratum without. Shares sum to one.
    """
    sizes = np.bincount(strata, minlength=STRATA)
    taken = np.bincount(strata[rows], minlength=STRATA)
    known = np.flatnonzero(taken)
    distance = np.abs(np.arange(STRATA)[:, None] - known)
    mass = np.bincount(known[distance.argmin(axis=1)], sizes, STRATA)
    return (mass / np.maximum(taken, 1))[strata[rows]] / len(strata)


def check_row_numbers(numbers: Any, n_rows: int) -> np.ndarray:
    """Check the numbers of the rows of a batch; by default, 0, 1, 2, ..."""
    if numbers is None:
        return np.arange(n_rows)
    found = np.asarray(numbers)
    right = found.shape == (n_rows,) and found.dtype.kind in "iu"
    if not right or (n_rows and found[0] < 0) or not (found[1:] > found[:-1]).all():
        raise ValueError(
            f"row_numbers has shape {found.shape} and type {found.dtype}; wanted "
            f"({n_rows},) ascending integers, the number of each row"
        )
    return found.astype(np.intp)


def check_rows(rows: Any, numbers: np.ndarray) -> np.ndarray:
    """Check row numbers, all of them among those of the batch."""
    found = np.asarray(rows)
    if found.ndim == 1 and not len(found):
        raise ValueError("rows is empty; wanted at least one labelled row")
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(
            f"rows has shape {found.shape} and type {found.dtype}; wanted row numbers "
            "as given by rows_to_label, (m,) integers"
        )
    places = np.minimum(np.searchsorted(numbers, found), len(numbers) - 1)
    wrong = found[numbers[places] != found]
    if len(wrong):
        whole = numbers[-1] == len(numbers) - 1
        wanted = f"numbers from 0 to {numbers[-1]}" if whole else "rows of the sample"
        raise ValueError(
            f"rows holds {wrong[0]}, which is no row of this batch; wanted {wanted}"
        )
    return found.astype(np.intp)


def check_free(n: Any, labelled: np.ndarray) -> int:
    """Check that so many rows have no label yet."""
    free = int((~labelled).sum())
    if check_count(n, "n") > free:
        raise ValueError(
            f"n is {n} but only {free} of {len(labelled)} rows have no label yet; "
            f"wanted at most {free}"
        )
    return int(n)


def check_reachable(width: float, n: int, labelled: np.ndarray) -> None:
    """Refuse a width that needs more labels than there are rows."""
    free = int((~labelled).sum())
    if n > free:
        raise ValueError(
            f"width is {width}, which would take about {n:,} labels, but only {free} "
            "rows have none yet; wanted a wider interval, or more rows"
        )


def merge_labels(
    rows: np.ndarray, labels: np.ndarray, more_rows: np.ndarray, more: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Merge labelled rows, ascending, each once; their order does not matter."""
    every = np.concatenate([rows, more_rows])
    codes = np.concatenate([labels, more])
    merged, first = np.unique(every, return_index=True)
    kept = codes[first]
    clash = np.flatnonzero(kept[np.searchsorted(merged, every)] != codes)
    if len(clash):
        row = int(every[clash[0]])
        said = np.unique(codes[every == row])
        raise ValueError(
            f"labels contradict each other: row {row} is {said[0]} and {said[1]}; "
            "wanted one label per row"
        )
    return merged, kept


def labels_for_width(
    width: float, belief: Belief, now: Interval, confidence: np.ndarray
) -> int:
    """Return how many further labels should narrow the interval to a width."""
    if not 0 < width < 1:
        raise ValueError(f"width is {width}; wanted a share between 0 and 1")
    if now.high - now.low <= width:
        raise ValueError(
            f"width is {width} but the interval is {now.high - now.low:.3f} wide "
            "already; wanted a smaller width"
        )
    slope = max(now.estimate * (1 - now.estimate), 0.01)
    wanted = (width / (2 * NORMAL_90 * slope)) ** -2
    prior = belief.deviation**-2
    moved = belief.mean - float(logit(confidence.mean()))
    # Information about the logit of one label drawn by Neyman's allocation.
    sure = expit(logit(confidence) + moved)
    each = (slope / float(uncertainty(sure).mean())) ** 2
    return max(1, int(np.ceil((wanted - prior) / each)))
