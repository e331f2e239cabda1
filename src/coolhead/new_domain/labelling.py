"""Which rows to label, and what each labelled row then stands for.

Strata of equal total uncertainty by calibrated confidence; rows are taken where they
narrow the estimate most (Neyman). A stratum's labelled rows share its weight, so the
weights follow from which rows are labelled, however they came to be.
"""

import heapq

import numpy as np

STRATA = 10
LEAST_UNCERTAINTY = 0.05


def uncertainty(confidence: np.ndarray) -> np.ndarray:
    """Standard deviation of a row's correctness, never quite zero."""
    return np.maximum(np.sqrt(confidence * (1 - confidence)), LEAST_UNCERTAINTY)


def find_strata(confidence: np.ndarray) -> np.ndarray:
    """(n,) stratum of each row, by confidence, of about equal total uncertainty."""
    order = np.argsort(confidence, kind="stable")
    summed = np.cumsum(uncertainty(confidence)[order])
    strata = np.empty(len(confidence), np.intp)
    share = (summed - summed[0] / 2) / summed[-1]
    strata[order] = np.minimum((share * STRATA).astype(np.intp), STRATA - 1)
    return strata


def asking_order(strata: np.ndarray, random_state: int) -> np.ndarray:
    """(n,) place of each row in the queue of its stratum, 0 for the first."""
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
    """The next rows to label, the most telling strata first; none is asked for twice.

    labelled : (n,) True for rows whose label is known.
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
    """Share of the batch each labelled row stands for; the shares sum to one.

    A stratum without labels is told by the nearest one with some.
    """
    sizes = np.bincount(strata, minlength=STRATA)
    taken = np.bincount(strata[rows], minlength=STRATA)
    told = np.flatnonzero(taken)
    distance = np.abs(np.arange(STRATA)[:, None] - told)
    mass = np.bincount(told[distance.argmin(axis=1)], sizes, STRATA)
    return (mass / np.maximum(taken, 1))[strata[rows]] / len(strata)
