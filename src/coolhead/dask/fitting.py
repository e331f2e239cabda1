"""Fit calibrators on Dask collections; what comes back is an ordinary calibrator."""

import warnings
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np

from coolhead.calibrators.data import CalibrationData, fit_with, refuse_source
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.dask.blocks import (
    PER_BLOCK,
    Table,
    align,
    block_lengths,
    one_per_block,
    per_block,
)
from coolhead.dask.evaluate import arguments, query
from coolhead.dask.solving import name_codes, solve_blocks, unmasked_weights
from coolhead.models.outputs import check_calibrator
from coolhead.new_domain import NewDomain
from coolhead.numerics.checks import check_choice
from coolhead.numerics.classes import column_names, restore_columns
from coolhead.numerics.solver import Solution, strided_rows

SAMPLE_ROWS = 50_000


def fit(
    calibrator: Any,
    logits: Any,
    labels: Any,
    *,
    features: Any = None,
    sample_domain: Any = None,
    source_domain: Any = None,
    reference_features: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Any:
    """Fit a calibrator in place on Dask arrays or dataframes, and return it.

    Parameters
    ----------
    calibrator : Calibrator
        `TemperatureScaling` is fitted on all rows, block by block; any other in memory,
        on a sample, and a warning says so.
    logits : Dask collection of shape (n_samples, n_classes) or (n_samples,)
        Logits, or scores of a binary classifier.
    labels : Dask collection of shape (n_samples,)
        Labels. This and the other columns have the rows of `logits` in the same order.
    features : Dask collection of shape (n_samples, n_features), default=None
        As in the `fit` of the calibrator.
    sample_domain : Dask collection of shape (n_samples,), default=None
        As in the `fit` of the calibrator.
    source_domain : str, default=None
        As in the `fit` of the calibrator.
    reference_features : array-like of shape (n_reference, n_features), default=None
        As in the `fit` of the calibrator; they fit in memory.
    sample_weight : Dask collection of shape (n_samples,), default=None
        As in the `fit` of the calibrator.
    classes : sequence of str, default=None
        Names of the classes in the order of the columns.
    sample_rows : int, default=50_000
        Rows of a fit in memory, evenly spaced; all rows, if there are no more.

    Returns
    -------
    Calibrator
        The same object, fitted.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> logits = da.from_array(data.logits, chunks=(100, -1))
    >>> labels = da.from_array(data.labels, chunks=100)
    >>> round(ch.dask.fit(ch.TemperatureScaling(), logits, labels).temperature_, 1)
    2.1
    """
    refuse_source(check_calibrator(calibrator), source_domain)
    table, names = align(
        logits,
        classes=classes,
        labels=labels,
        features=features if "features" in calibrator.takes else None,
        domains=sample_domain,
        weights=sample_weight,
    )
    if fits_all_rows(type(calibrator)):
        solution, n_masked = _set_level(calibrator, table)
        calibrator.note_shapes(table["logits"].shape[1], None, names)
        calibrator._remember(solution)
        return calibrator.note_masked(n_masked)
    data = _sampled_data(table, sample_rows, source_domain, reference_features)
    return fit_with(calibrator, replace(data, classes=names))


def fits_all_rows(kind: type) -> bool:
    """Return whether calibrators of this class are fitted block by block."""
    return kind is TemperatureScaling


def _set_level(calibrator: TemperatureScaling, table: Table) -> tuple[Solution, int]:
    """Solve for one temperature; with equal domains, weigh the rows first."""
    check_choice(calibrator.domain_weights, "domain_weights", "pooled", "equal")
    if calibrator.domain_weights == "pooled":
        return solve_blocks(table)
    if "domains" not in table:
        raise ValueError("sample_domain is missing: domain_weights='equal' needs it")
    names, codes = name_codes(table["domains"])
    columns = {n: table[n] for n in ("logits", "labels", "weights") if n in table}
    weights = per_block(unmasked_weights, columns, keep_rows=True)
    mass = da.bincount(codes, weights, minlength=len(names)).compute()
    share = 1 / np.where(mass > 0, mass, 1.0)
    shares = codes.map_blocks(share.take, dtype=np.float64)
    weights = (table.get("weights", 1.0) * shares).persist()
    return solve_blocks({**table, "weights": weights})


def _sampled_data(
    table: Table, sample_rows: int, source_domain: Any, reference_features: Any
) -> CalibrationData:
    """Return at most `sample_rows` rows of a table as one record in memory."""
    columns = sample_table(table, sample_rows)
    n_rows, whole = len(columns["labels"]), int(block_lengths(table).sum())
    if n_rows < whole:
        warnings.warn(
            f"fitted in memory on {n_rows} of {whole} rows, evenly spaced; raise "
            "sample_rows to use more",
            stacklevel=3,
        )
    logits, features = arguments(columns)
    return CalibrationData.of(
        logits,
        columns["labels"],
        features=features,
        sample_domain=columns.get("domains"),
        source_domain=source_domain,
        reference_features=reference_features,
        sample_weight=columns.get("weights"),
    )


def take_sample(n_rows: int, *collections: Any) -> tuple[np.ndarray, ...]:
    """Return about `n_rows` evenly spaced rows of each collection, as NumPy arrays.

    All rows, if there are no more. The collections have the same rows in the same
    order; the first one sets the blocks.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> rows = da.arange(12, chunks=4).reshape(-1, 1)
    >>> ch.dask.take_sample(3, rows)
    (array([[0],
           [4],
           [8]]),)
    """
    first, *others = collections
    table, _ = align(first, **{f"column {i}": c for i, c in enumerate(others, 1)})
    found = sample_table(table, n_rows)
    if found.pop("scores", None) is not None:  # a vector, taken for scores
        found["logits"] = found["logits"][:, 1]
    return tuple(found.values())


def sample_table(table: Table, n_rows: int) -> dict[str, np.ndarray]:
    """Return evenly spaced rows of every column."""
    lengths = block_lengths(table)
    stride = np.array([max(1, -(-int(lengths.sum()) // n_rows))])
    before = (np.cumsum(lengths) - lengths)[:, None]
    columns = {**table, PER_BLOCK: one_per_block(before)}
    parts = per_block(_pick, columns, dtype=object, stride=stride).compute()
    return {name: np.concatenate([part[name] for part in parts]) for name in table}


def _pick(block: dict[str, np.ndarray], stride: np.ndarray) -> dict[str, np.ndarray]:
    before = block.pop(PER_BLOCK)[0]
    n_rows = len(next(iter(block.values())))
    picked = strided_rows(np.zeros(n_rows, np.uint8), stride, before)
    return {name: column[picked] for name, column in block.items()}


def new_domain(
    calibrator: Any,
    logits: Any,
    features: Any = None,
    *,
    sample_rows: int = SAMPLE_ROWS,
    **settings: Any,
) -> NewDomain:
    """Return `NewDomain` of Dask arrays; its calibrator predicts on all rows.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted, one that divides the logits by a temperature.
    logits : Dask collection of shape (n_samples, n_classes) or (n_samples,)
        As in `NewDomain`.
    features : Dask collection of shape (n_samples, n_features), default=None
        As in `NewDomain`, with the rows in the same order.
    sample_rows : int, default=50_000
        Rows, evenly spaced, that are brought together; all rows, if there are no more.
        Rows keep the numbers they have among all.
    **settings : dict
        Keyword arguments of `NewDomain`.

    Returns
    -------
    NewDomain
        Of the rows that were brought together.

    Examples
    --------
    >>> import coolhead as ch
    >>> import dask.array as da
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 1.5])
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, seen.logits, seen.labels, sample_domain=seen.domains
    ... )
    >>> logits = da.from_array(unseen.logits, chunks=(100, -1))
    >>> there = ch.dask.new_domain(cal, logits, evidence=known)
    >>> 0 < there.accuracy.low < there.accuracy.high < 1
    True
    """
    own = column_names(logits)
    table = query(calibrator, logits, features, extra=features)
    if "extra" in table:
        # Features that no prediction needs still show what is outside.
        table["features"] = table.pop("extra")
    logits, features = arguments(sample_table(table, sample_rows))
    logits = restore_columns(logits, own, getattr(calibrator, "class_names_", None))
    n_rows = int(block_lengths(table).sum())
    step = max(1, -(-n_rows // sample_rows))
    return NewDomain(
        calibrator,
        logits,
        features,
        row_numbers=np.arange(0, n_rows, step),
        drawn_from=n_rows if step > 1 else None,
        **settings,
    )
