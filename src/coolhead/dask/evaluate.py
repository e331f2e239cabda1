"""Scores of Dask collections from counts and sums that add up over blocks."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coolhead.dask.blocks import align, per_block, whole
from coolhead.dask.prediction import query
from coolhead.dask.solving import name_codes
from coolhead.metrics.bins import equal_width_index, gap_sums
from coolhead.metrics.intervals import check_count
from coolhead.metrics.scores import score_calibrated
from coolhead.metrics.vectors import correctness_and_confidence
from coolhead.numerics.checks import as_logits, check_labels

SUMS = ("n_samples", "correct", "confidence", "log_loss", "brier")


@dataclass(frozen=True)
class Evaluation:
    """Scores of all rows, and of each domain if domains were given.

    bin_counts, bin_gaps : (bins,) rows of each confidence bin, and the sum of
    correctness minus confidence in it: what a reliability diagram needs.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> found = ch.dask.evaluate(None, logits, da.from_array(data.labels, chunks=100))
    >>> found.n_samples, found.mean_confidence > found.accuracy    # too sure
    (300, True)
    """

    n_samples: int
    accuracy: float
    mean_confidence: float
    expected_calibration_error: float
    negative_log_likelihood: float
    brier_score: float
    bin_counts: np.ndarray = field(repr=False)
    bin_gaps: np.ndarray = field(repr=False)
    by_domain: dict[Any, "Evaluation"] = field(default_factory=dict)


def evaluate(
    calibrator: Any,
    logits: Any,
    labels: Any,
    *,
    features: Any = None,
    sample_domain: Any = None,
    n_bins: int = 15,
) -> Evaluation:
    """Score a fitted calibrator in one pass over Dask arrays or dataframes.

    Parameters
    ----------
    calibrator : fitted. None scores the logits as they are.
    logits, labels, features, sample_domain : the rows, in the same order.
    n_bins : bins of equal width for the calibration error.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> labels = da.from_array(data.labels, chunks=100)
    >>> before = ch.dask.evaluate(None, logits, labels)
    >>> after = ch.dask.evaluate(cal, logits, labels)
    >>> after.negative_log_likelihood < before.negative_log_likelihood
    True
    """
    n_bins = check_count(n_bins, "n_bins")
    others = {"labels": labels, "domains": sample_domain}
    if calibrator is None:
        table = align(logits, **others)
    else:
        table = query(calibrator, logits, features, **others)
    names = [None]
    if "domains" in table:
        distinct, table["codes"] = name_codes(table.pop("domains"))
        names = distinct.tolist()
    states = per_block(
        _states,
        table,
        (len(names), len(SUMS) + 2 * n_bins),
        calibrator=whole(calibrator),
        n_groups=len(names),
        n_bins=n_bins,
    )
    state = np.asarray(states.sum(axis=0).compute())
    named = zip(names, state, strict=True) if sample_domain is not None else ()
    each = {name: _score(own, n_bins) for name, own in named}
    return _score(state.sum(axis=0), n_bins, each)


def expected_calibration_error(
    labels: Any, probabilities: Any, *, n_bins: int = 15
) -> float:
    """`coolhead.expected_calibration_error` of Dask collections, bins of equal width.

    Takes labels with probabilities (n, k), or correctness with confidence (n,).
    """
    # `align` would take (n,) for binary scores: give it a column of its own.
    table = align(probabilities, labels=labels)
    flat = table.pop("scores", None) is not None
    n_bins = check_count(n_bins, "n_bins")
    sums = per_block(_gaps, table, (n_bins + 1,), n_bins=n_bins, flat=flat)
    *gaps, n_rows = np.asarray(sums.sum(axis=0).compute())
    return float(np.abs(gaps).sum() / n_rows)


def _gaps(block: dict[str, np.ndarray], n_bins: int, flat: bool) -> np.ndarray:
    found = block["logits"][:, 1] if flat else block["logits"]
    correct, sure = correctness_and_confidence(block["labels"], found)
    return np.append(gap_sums(correct, sure, n_bins, "width"), len(sure))[None]


def _states(
    block: dict[str, np.ndarray], calibrator: Any, n_groups: int, n_bins: int
) -> np.ndarray:
    """Sums of one block, (1, groups, SUMS and bins)."""
    logits = as_logits(block["logits"])
    labels = check_labels(block["labels"], logits.shape[1], len(logits))
    found = score_calibrated(calibrator, logits, labels, block.get("features"))
    sure, predicted, losses, briers = found.rows
    correct = predicted == labels
    codes = block.get("codes", np.zeros(len(labels), np.uint8)).astype(np.intp)
    rows = (np.ones(len(labels)), correct, sure, losses, briers)
    sums = [np.bincount(codes, values, n_groups) for values in rows]
    place = codes * n_bins + equal_width_index(sure, n_bins)
    bins = [
        np.bincount(place, values, n_groups * n_bins).reshape(n_groups, n_bins)
        for values in (None, correct - sure)
    ]
    return np.concatenate([np.transpose(sums), *bins], axis=1)[None]


def _score(
    state: np.ndarray, n_bins: int, by_domain: dict[Any, Evaluation] | None = None
) -> Evaluation:
    n_rows = state[0]
    accuracy, sure, loss, brier = (state[1 : len(SUMS)] / n_rows).tolist()
    counts, gaps = state[len(SUMS) :].reshape(2, n_bins)
    return Evaluation(
        n_samples=int(n_rows),
        accuracy=accuracy,
        mean_confidence=sure,
        expected_calibration_error=float(np.abs(gaps).sum() / n_rows),
        negative_log_likelihood=loss,
        brier_score=brier,
        bin_counts=counts.astype(np.intp),
        bin_gaps=gaps,
        by_domain=by_domain or {},
    )
