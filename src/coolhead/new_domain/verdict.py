"""Whether a classifier is accurate enough in a new domain."""

from typing import Any, NamedTuple

import numpy as np

from coolhead.metrics.bins import Interval
from coolhead.new_domain.labels import labels_for_width

# Labels to ask for where most rows are unlike the calibration data.
FIRST_LABELS = 20
MANY_OUTSIDE = 0.5


def percent(found: Interval) -> str:
    """Return an estimate with its limits, in per cent."""
    estimate, low, high = (100 * v for v in (found.estimate, found.low, found.high))
    return f"{estimate:.0f} % ({low:.0f} to {high:.0f})"


class Verdict(NamedTuple):
    """What to do with a classifier whose accuracy must not be lower than `need`.

    Attributes
    ----------
    answer : str
        "use it", "label N more rows first" or "do not use it here".
    need : float
        The accuracy asked for.
    accuracy : Interval
        Expected accuracy with its 90 % limits. "use it" if both limits reach `need`,
        "do not use it here" if none does.
    n_labels : int
        Rows to label first, about as many as move the interval to one side of `need`;
        else 0.
    n_rows, n_used : int
        Rows, and labels, that the interval rests on.
    share_outside : float or None
        Share of the rows that lie outside the calibration data.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 1.5])
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.AutoCalibrator()
    >>> cal = cal.fit(seen.logits, seen.labels, sample_domain=seen.domains)
    >>> there = cal.new_domain(unseen.logits)
    >>> there.verdict(need=0.4).answer, there.verdict(need=0.95).answer
    ('use it', 'do not use it here')
    """

    answer: str
    need: float
    accuracy: Interval
    n_labels: int
    n_rows: int
    n_used: int
    share_outside: float | None

    def __str__(self) -> str:
        text = (
            f"{self.answer}: expected accuracy {percent(self.accuracy)}, needed "
            f"{100 * self.need:.4g} %, from {self.n_rows} rows and "
            f"{self.n_used or 'no'} labels"
        )
        if self.share_outside is not None and self.share_outside > MANY_OUTSIDE:
            text += f"; {self.share_outside:.0%} of them outside the calibration data"
        return text


def reach_verdict(there: Any, need: float, n_used: int) -> Verdict:
    """Compare the expected accuracy of a `NewDomain` with what is needed."""
    if not 0 < need < 1:
        raise ValueError(f"need is {need}; wanted an accuracy between 0 and 1, as 0.8")
    found, free = there.accuracy, there.n_rows - there.n_labels
    outside = None if there.outside is None else float(there.outside.share_outside)
    # Without labels, nothing is known of rows that are like none that were calibrated.
    unknown = outside is not None and outside > MANY_OUTSIDE and not n_used
    figures = there.n_rows, n_used, outside
    if found.low >= need and not unknown:
        return Verdict("use it", need, found, 0, *figures)
    if found.high < need or not free:
        return Verdict("do not use it here", need, found, 0, *figures)
    n = FIRST_LABELS
    if found.low < need:
        gap = max(2 * abs(found.estimate - need), 0.01)
        width = min(gap, 0.99 * (found.high - found.low))
        state = there._state
        n = labels_for_width(width, state.belief, found, state.seen.confidence)
    n = min(10 * int(np.ceil(n / 10)), free)
    return Verdict(f"label {n} more rows first", need, found, n, *figures)
