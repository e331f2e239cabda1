"""Labels of some rows: checked, merged, and how many would be needed."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.metrics.intervals import Interval, check_count
from coolhead.new_domain.accuracy import NORMAL_90
from coolhead.new_domain.labelling import uncertainty
from coolhead.new_domain.posterior import Belief, expit, logit


def check_row_numbers(numbers: Any, n_rows: int) -> np.ndarray:
    """What the rows of a batch are called: their own order, or where they came from."""
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
    """Numbers of rows, (m,), all of them among those of the batch."""
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
            f"rows holds {wrong[0]}, which was not asked for and is no row of this "
            f"batch; wanted {wanted}"
        )
    return found.astype(np.intp)


def check_free(n: Any, labelled: np.ndarray) -> int:
    """A number of rows that can still be asked for; labelled : (n,) who cannot."""
    free = int((~labelled).sum())
    if check_count(n, "n") > free:
        raise ValueError(
            f"n is {n} but only {free} of {len(labelled)} rows have no label yet; "
            f"wanted at most {free}"
        )
    return int(n)


def check_reachable(width: float, n: int, labelled: np.ndarray) -> None:
    """Refuse a width that more labels would be needed for than there are rows."""
    free = int((~labelled).sum())
    if n > free:
        raise ValueError(
            f"width is {width}, which would take about {n:,} labels, but only {free} "
            "rows have none yet; wanted a wider interval, or more rows"
        )


def check_new_labels(labels: ArrayLike, n_classes: int, rows: np.ndarray) -> np.ndarray:
    """One class per row, (m,)."""
    found = np.asarray(labels)
    if found.shape != rows.shape:
        raise ValueError(
            f"labels has shape {found.shape}; wanted one label for each of the "
            f"{len(rows)} rows"
        )
    if found.dtype.kind not in "iu":
        raise ValueError(
            f"labels has type {found.dtype}; wanted class numbers 0..{n_classes - 1}, "
            "columns of the logits; drop rows whose label is not known"
        )
    wrong = np.flatnonzero((found < 0) | (found >= n_classes))
    if len(wrong):
        raise ValueError(
            f"labels holds {found[wrong[0]]} for row {rows[wrong[0]]}, an unknown "
            f"class; wanted 0..{n_classes - 1}"
        )
    return found.astype(np.intp)


def merge_labels(
    rows: np.ndarray, labels: np.ndarray, more_rows: np.ndarray, more: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """All labelled rows once, ascending; the order they came in leaves no trace."""
    every = np.concatenate([rows, more_rows])
    classes = np.concatenate([labels, more])
    merged, first = np.unique(every, return_index=True)
    kept = classes[first]
    clash = np.flatnonzero(kept[np.searchsorted(merged, every)] != classes)
    if len(clash):
        row = int(every[clash[0]])
        said = np.unique(classes[every == row])
        raise ValueError(
            f"labels contradict each other: row {row} is {said[0]} and {said[1]}; "
            "wanted one label per row"
        )
    return merged, kept


def labels_for_width(
    width: float, belief: Belief, now: Interval, confidence: np.ndarray
) -> int:
    """How many further labels should narrow the interval to this width."""
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
    # One label drawn by Neyman's allocation tells this much of the logit.
    sure = expit(logit(confidence) + moved)
    each = (slope / float(uncertainty(sure).mean())) ** 2
    return max(1, int(np.ceil((wanted - prior) / each)))
