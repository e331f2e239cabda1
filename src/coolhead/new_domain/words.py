"""The answer as a sentence, a small table and a figure."""

from html import escape
from typing import Any

import numpy as np

from coolhead.metrics.intervals import Interval

MANY_OUTSIDE = 0.5


def percent(found: Interval) -> str:
    estimate, low, high = (100 * v for v in (found.estimate, found.low, found.high))
    return f"{estimate:.0f} % ({low:.0f} to {high:.0f})"


def as_sentence(there: Any) -> str:
    """What is to be said of a new domain, the worst first."""
    expected = f"expected accuracy {percent(there.accuracy)}"
    outside = there.outside
    if outside is None:
        where = "whether they lie outside what was calibrated cannot be told"
    else:
        share = f"{100 * outside.share_outside:.0f} %"
        where = f"{share} of the rows lie outside what was calibrated"
    if outside is not None and outside.share_outside > MANY_OUTSIDE:
        parts = [where, expected]
    else:
        parts = [expected, where]
    labels = f"{_n_used(there)} labels" if _n_used(there) else "no labels"
    drawn = there.drawn_from
    rows = f"{there.n_rows} rows" + (f" out of {drawn}" if drawn is not None else "")
    text = ", ".join([*parts, f"from {rows} and {labels}"])
    return "; ".join([text, *there.notes])


def find_notes(
    known: Any, strata: np.ndarray, place: np.ndarray, rows: np.ndarray
) -> list[str]:
    """What was missing or unusual, in sentences.

    known : the evidence or None; place : of each row in its stratum's queue; rows :
        those with labels.
    """
    found = []
    if known is None:
        found.append("fitted without evidence: the spread of domains is a default")
    elif len(known.domains) == 0:
        found.append(
            "fewer than two calibration domains: no spread could be measured, a "
            "default widens the interval"
        )
    taken = np.bincount(strata[rows], minlength=strata.max() + 1)
    strange = int((place[rows] >= taken[strata[rows]]).sum())
    if strange:
        found.append(
            f"{strange} labelled rows were not asked for by rows_to_label: they "
            "are taken as drawn at random among rows of like confidence"
        )
    return found


def steps(there: Any) -> list[tuple[str, Interval]]:
    """Expected accuracy as each kind of evidence is added."""
    found = [("left-out domains", there.without("batch", "labels").accuracy)]
    if len(there.witnesses) > 1:
        found.append(("+ unlabelled rows", there.without("labels").accuracy))
    if _n_used(there):
        found.append((f"+ {_n_used(there)} labels", there.accuracy))
    return found


def _n_used(there: Any) -> int:
    return there.n_labels if "labels" in there._known.use else 0


def as_html(there: Any) -> str:
    """The sentence and a table of the steps."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{percent(found)}</td></tr>"
        for name, found in steps(there)
    )
    return (
        f"<div><p>{escape(as_sentence(there))}</p><table><tr><th>evidence</th>"
        f"<th>expected accuracy (90 %)</th></tr>{rows}</table></div>"
    )


def draw(there: Any, ax: Any) -> Any:
    """Intervals, one line for each step."""
    import matplotlib.pyplot as plt

    if ax is None:
        ax = plt.subplots(figsize=(5, 1.8), layout="constrained")[1]
    found = steps(there)
    for height, (_, one) in enumerate(reversed(found)):
        ax.plot([100 * one.low, 100 * one.high], [height, height], color="0.5")
        ax.plot(100 * one.estimate, height, "o", color="black")
    ax.set_yticks(range(len(found)), [name for name, _ in reversed(found)])
    ax.set_xlabel("expected accuracy, % (90 % interval)")
    ax.set_ylim(-0.5, len(found) - 0.5)
    return ax
