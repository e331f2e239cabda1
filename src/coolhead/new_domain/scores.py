"""Conformal scores of labelled rows, and the sets they lead to, block by block."""

import numpy as np

from coolhead.numerics.blocks import row_blocks
from coolhead.numerics.softmax import softmax

SCORES = ("lac", "aps")


def class_scores(logits: np.ndarray, temperature: np.ndarray, kind: str) -> np.ndarray:
    """Score of every class in every row, (n, k); small where a class is likely.

    "lac" : one minus its probability. "aps" : probability of all likelier classes and
    its own (without randomisation, so sets are never empty and a little wide).
    """
    scores = softmax(logits, temperature).astype(np.float64)
    if kind == "lac":
        return 1 - scores
    order = np.argsort(-scores, axis=1, kind="stable")
    summed = np.cumsum(np.take_along_axis(scores, order, axis=1), axis=1)
    np.put_along_axis(scores, order, summed, axis=1)
    return scores


def conformal_scores(
    logits: np.ndarray, labels: np.ndarray, temperature: np.ndarray
) -> dict[str, np.ndarray]:
    """Scores of the true classes, (n,) float64 for each kind."""
    found = {kind: np.empty(len(labels)) for kind in SCORES}
    for rows in row_blocks(*logits.shape):
        own = np.arange(rows.stop - rows.start), labels[rows]
        for kind, out in found.items():
            out[rows] = class_scores(logits[rows], temperature[rows], kind)[own]
    return found


def members(
    logits: np.ndarray, temperature: np.ndarray, kind: str, limit: float
) -> np.ndarray:
    """(n, k) True for the classes of each row's set; the likeliest is always in."""
    found = np.empty(logits.shape, bool)
    for rows in row_blocks(*logits.shape):
        scores = class_scores(logits[rows], temperature[rows], kind)
        np.less_equal(scores, limit, out=found[rows])
        found[rows][np.arange(len(scores)), scores.argmin(axis=1)] = True
    return found
