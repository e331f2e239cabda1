"""Calibrated predictions of Dask collections, lazily, block by block."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coolhead.dask.blocks import Table, align, per_block, whole
from coolhead.dask.solving import name_codes
from coolhead.metrics.bins import (
    N_BINS,
    check_count,
    correctness_and_confidence,
    gap_sums,
)
from coolhead.metrics.scored import ScoreSums, score_calibrated
from coolhead.models.outputs import check_calibrator
from coolhead.numerics.blocks import computing_dtype
from coolhead.numerics.checks import as_logits


def temperature(calibrator: Any, logits: Any, features: Any = None) -> Any:
    """Return the temperature of each row, a Dask array (n,).

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> cal = ch.TemperatureScaling().fit([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> ch.dask.temperature(cal, da.zeros((4, 2), chunks=2))[:2].compute().round(1)
    array([1.8, 1.8])
    """
    check_calibrator(calibrator, temperature=True)
    return _ask(calibrator, "temperature", query(calibrator, logits, features))


def predict_proba(calibrator: Any, logits: Any, features: Any = None) -> Any:
    """Return calibrated probabilities, a Dask array (n, k) with the logits' row blocks.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> ch.dask.predict_proba(cal, logits).numblocks
    (3, 1)
    """
    table = query(calibrator, logits, features)
    dtype, width = computing_dtype(table["logits"]), table["logits"].shape[1]
    return _ask(calibrator, "predict_proba", table, (width,), dtype)


def confidence(calibrator: Any, logits: Any, features: Any = None) -> tuple[Any, Any]:
    """Return calibrated confidence and predicted class, Dask arrays (n,) each.

    Compute both in one call, ``dask.compute(confidence, predicted)``, to read the data
    once.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask
    >>> cal = ch.TemperatureScaling().fit([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> lazily = ch.dask.confidence(cal, dask.array.ones((4, 2), chunks=2))
    >>> [found.shape for found in dask.compute(*lazily)]
    [(4,), (4,)]
    """
    table = query(calibrator, logits, features)
    both = _ask(calibrator, "confidence", table, (2,))
    dtype = computing_dtype(table["logits"])
    return both[:, 0].astype(dtype), both[:, 1].astype(np.intp)


def query(
    calibrator: Any, logits: Any, features: Any, *, classes: Any = None, **others: Any
) -> Table:
    """Return a table of the columns that the calibrator needs, and of others."""
    check_is_fitted(check_calibrator(calibrator))
    uses = calibrator.uses_features
    if uses and features is None:
        raise ValueError(
            f"features is missing: {type(calibrator).__name__} uses features"
        )
    columns = {"features": features if uses else None, **others}
    names = getattr(calibrator, "class_names_", None) or classes
    table, _ = align(logits, classes=names, **columns)
    found = table["logits"].shape[1]
    if found != calibrator.n_classes_:
        raise ValueError(
            f"logits has {found} columns; wanted {calibrator.n_classes_}, as in fit"
        )
    return table


def arguments(block: dict[str, np.ndarray]) -> tuple[np.ndarray, Any]:
    """Return the arguments of a calibrator's methods; scores are given as scores."""
    logits = block["logits"]
    return logits[:, 1] if "scores" in block else logits, block.get("features")


def _ask(
    calibrator: Any,
    method: str,
    table: Table,
    shape: tuple[int, ...] = (),
    dtype: Any = np.float64,
) -> Any:
    """Call a method of the calibrator on every block, lazily."""
    calibrator = whole(calibrator)
    settings = {"keep_rows": True, "calibrator": calibrator, "method": method}
    return per_block(_answers, table, shape, dtype=dtype, **settings)


def _answers(block: dict[str, np.ndarray], calibrator: Any, method: str) -> np.ndarray:
    found = getattr(calibrator, method)(*arguments(block))
    return np.column_stack(found) if isinstance(found, tuple) else found


@dataclass(frozen=True)
class Evaluation:
    """Scores of all rows, and of each domain if domains were given.

    Attributes
    ----------
    n_samples : int
        Number of rows.
    accuracy : float
        Share of rows whose predicted class is right.
    mean_confidence : float
        Mean calibrated confidence.
    expected_calibration_error : float
        Of the confidence, with bins of equal width.
    negative_log_likelihood : float
        Mean log loss of the rows whose class is not masked.
    brier_score : float
        Mean Brier score.
    bin_counts : ndarray of shape (n_bins,)
        Rows of each confidence bin.
    bin_gaps : ndarray of shape (n_bins,)
        Sum of correctness minus confidence in each bin, for a reliability diagram.
    by_domain : dict, default={}
        The same for each domain.
    n_masked : int, default=0
        Rows whose true class has probability zero; their log loss is infinite.
    classwise_calibration_error : float, default=nan
        Mean over the classes.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> found = ch.dask.evaluate(None, logits, da.from_array(data.labels, chunks=100))
    >>> found.n_samples, found.mean_confidence > found.accuracy    # overconfident
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
    n_masked: int = 0
    classwise_calibration_error: float = float("nan")


def evaluate(
    calibrator: Any,
    logits: Any,
    labels: Any,
    *,
    features: Any = None,
    sample_domain: Any = None,
    n_bins: int = N_BINS,
    classes: Any = None,
) -> Evaluation:
    """Score a fitted calibrator in one pass over Dask arrays or dataframes.

    Parameters
    ----------
    calibrator : Calibrator or None
        Fitted. None scores the uncalibrated logits.
    logits : Dask collection of shape (n_samples, n_classes) or (n_samples,)
        Logits, or scores of a binary classifier.
    labels : Dask collection of shape (n_samples,)
        Labels. This and the other columns have the rows of `logits` in the same order.
    features : Dask collection of shape (n_samples, n_features), default=None
        If the calibrator uses features.
    sample_domain : Dask collection of shape (n_samples,), default=None
        Domains to score one by one.
    n_bins : int, default=15
        Bins of equal width for the calibration errors.
    classes : sequence of str, default=None
        Names of the classes in the order of the columns, if calibrator and columns
        have none.

    Returns
    -------
    Evaluation
        Scores of all rows and of each domain.

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
        table, _ = align(logits, classes=classes, **others)
    else:
        table = query(calibrator, logits, features, classes=classes, **others)
    names = [None]
    if "domains" in table:
        distinct, table["codes"] = name_codes(table.pop("domains"))
        names = distinct.tolist()
    n_classes = table["logits"].shape[1]
    states = per_block(
        _states,
        table,
        (len(names), 5 + (4 + n_classes) * n_bins),
        calibrator=whole(calibrator),
        n_domains=len(names),
        n_bins=n_bins,
    )
    state = np.asarray(states.sum(axis=0).compute())
    named = zip(names, state, strict=True) if sample_domain is not None else ()
    each = {name: _evaluation(own, n_bins) for name, own in named}
    return _evaluation(state.sum(axis=0), n_bins, each)


def expected_calibration_error(
    labels: Any, probabilities: Any, *, n_bins: int = N_BINS, classes: Any = None
) -> float:
    """`coolhead.expected_calibration_error` of Dask collections, bins of equal width.

    Takes labels with probabilities (n, k), or correctness with confidence (n,).
    """
    flat = probabilities.ndim == 1
    # Beside a vector of confidences stands correctness, which is no class.
    beside = {"correct" if flat else "labels": labels}
    table, _ = align(probabilities, classes=classes, **beside)
    n_bins = check_count(n_bins, "n_bins")
    sums = per_block(_gaps, table, (n_bins + 1,), n_bins=n_bins, flat=flat)
    *gaps, n_rows = np.asarray(sums.sum(axis=0).compute())
    return float(np.abs(gaps).sum() / n_rows)


def _gaps(block: dict[str, np.ndarray], n_bins: int, flat: bool) -> np.ndarray:
    found = block["logits"][:, 1] if flat else block["logits"]
    known = block["correct" if flat else "labels"]
    correct, sure = correctness_and_confidence(known, found)
    return np.append(gap_sums(correct, sure, n_bins, "width"), len(sure))[None]


def _states(
    block: dict[str, np.ndarray], calibrator: Any, n_domains: int, n_bins: int
) -> np.ndarray:
    """Return the sums of one block, (1, domains, sums)."""
    codes = block.get("codes")
    scored = score_calibrated(
        calibrator,
        as_logits(block["logits"]),
        block["labels"],
        block.get("features"),
        n_bins=n_bins,
        codes=None if codes is None else codes.astype(np.intp),
        n_domains=n_domains,
    )
    return scored.sums(n_bins, n_domains)[None]


def _evaluation(
    line: np.ndarray, n_bins: int, by_domain: dict[Any, Evaluation] | None = None
) -> Evaluation:
    sums = ScoreSums(line, n_bins)
    scores = sums.scores()
    return Evaluation(
        n_samples=sums.n_rows,
        accuracy=scores["accuracy"],
        mean_confidence=scores["confidence"],
        expected_calibration_error=scores["ece"],
        negative_log_likelihood=scores["nll"],
        brier_score=scores["brier"],
        bin_counts=sums.bins.count.astype(np.intp),
        bin_gaps=sums.bins.gap,
        by_domain=by_domain or {},
        n_masked=sums.n_masked,
        classwise_calibration_error=scores["ece_classwise"],
    )
