"""Fit calibrators on Dask collections; what comes back is an ordinary calibrator."""

import warnings
from dataclasses import replace
from functools import partial, singledispatch
from typing import Any

import numpy as np

from coolhead.calibrators.clustered import (
    ClusterTemperatures,
    NearestClusterTemperature,
    RegressedTemperature,
    penalty_towards,
    with_fallback,
)
from coolhead.calibrators.data import CalibrationData, fit_with, fresh, refuse_source
from coolhead.calibrators.ensemble import TemperatureEnsemble
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.dask.blocks import (
    PER_BLOCK,
    Table,
    align,
    block_lengths,
    one_per_block,
    per_block,
    whole,
)
from coolhead.dask.evaluate import arguments, query
from coolhead.dask.solving import (
    count_codes,
    name_codes,
    small_integer,
    solve_blocks,
    without_masked,
)
from coolhead.models.outputs import check_calibrator
from coolhead.new_domain import NewDomain
from coolhead.numerics.checks import check_choice, check_features
from coolhead.numerics.classes import column_names, restore_columns
from coolhead.numerics.solver import strided_rows
from coolhead.shift.clusters import Partition, partition_features

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
    calibrator : `TemperatureScaling`, `NearestClusterTemperature`,
        `RegressedTemperature` and a `TemperatureEnsemble` of these are fitted on all
        rows, block by block; any other in memory, on a sample, and a warning says so.
    logits, labels, features, sample_domain, sample_weight : as in its own `fit`, with
        the rows in the same order.
    source_domain, reference_features : as in its own `fit`; the latter fit in memory.
    classes : names of the classes in the order of the columns, as in its own `fit`.
    sample_rows : k-means, and what is fitted in memory, sees this many rows, evenly
        spaced; all rows, if there are no more.

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
    if calibrator.uses_features and "features" not in table:
        raise ValueError("features is missing: this method uses features")
    parts = [calibrator, *(getattr(calibrator, "members", None) or ())]
    if all(fits_all_rows(type(part)) for part in parts):
        fit_rows = partial(_fit_table, calibrator, sample_rows=sample_rows)
        _, n_masked = without_masked(fit_rows, table)
        calibrator.class_names_ = names
        return calibrator.note_masked(n_masked)
    data = _sampled_data(table, sample_rows, source_domain, reference_features)
    return fit_with(calibrator, replace(data, classes=names))


def fits_all_rows(kind: type) -> bool:
    """Whether calibrators of this class are fitted block by block, on all rows."""
    return _fit_table.dispatch(kind) is not _fit_table.dispatch(object)


def _sampled_data(
    table: Table, sample_rows: int, source_domain: Any, reference_features: Any
) -> CalibrationData:
    """At most `sample_rows` rows of a table as one record in memory."""
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
    """About `n_rows` evenly spaced rows of each collection, as NumPy arrays.

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
    if found.pop("scores", None) is not None:  # a vector, which was taken for scores
        found["logits"] = found["logits"][:, 1]
    return tuple(found.values())


@singledispatch
def _fit_table(calibrator: Any, table: Table, sample_rows: int) -> Any:
    """Fit on all rows, block by block; registered for those that can."""
    raise TypeError(
        f"{type(calibrator).__name__} cannot be fitted block by block; wanted "
        "TemperatureScaling, NearestClusterTemperature, RegressedTemperature or "
        "TemperatureEnsemble of these"
    )


@_fit_table.register
def _(calibrator: TemperatureScaling, table: Table, sample_rows: int) -> Any:
    if calibrator.domain_weights != "pooled":
        table = _equal_domains(table, calibrator.domain_weights)
    _shaped(calibrator, table)._remember(solve_blocks(table))
    return calibrator


@_fit_table.register(NearestClusterTemperature)
@_fit_table.register(RegressedTemperature)
def _(calibrator: Any, table: Table, sample_rows: int) -> Any:
    return _remember(calibrator, table, _fit_clusters(calibrator, table, sample_rows))


@_fit_table.register
def _(calibrator: TemperatureEnsemble, table: Table, sample_rows: int) -> Any:
    _shaped(calibrator, table)
    if calibrator.members is not None:
        unfitted = [fresh(member) for member in calibrator._parts()]
        members = [_fit_table(member, table, sample_rows) for member in unfitted]
    else:
        constant, *clustered = members = calibrator.default_members()
        fitted = _fit_clusters(clustered[0], table, sample_rows)
        _shaped(constant, table)._remember(fitted.set_level)
        for member in clustered:
            _remember(member, table, fitted)
    calibrator._remember(list(members))
    return calibrator


def _fit_clusters(
    calibrator: Any, table: Table, sample_rows: int
) -> ClusterTemperatures:
    """k-means on a sample; temperatures of the clusters from all rows."""
    sample = sample_table(table, sample_rows, "features")["features"]
    partition = partition_features(
        check_features(sample, len(sample)),
        calibrator.n_clusters,
        **calibrator._of_k_means(),
    )
    count = len(partition.clusters.centers)
    codes = per_block(
        _nearest,
        {"features": table["features"]},
        dtype=small_integer(count),
        keep_rows=True,
        clusters=whole(partition.clusters),
    )
    # Features are wide and read once; their codes are one byte per row.
    grouped = {**table, "codes": codes.persist()}
    level = solve_blocks(table)
    sizes = count_codes(grouped, count).sum(axis=0)
    penalty = penalty_towards(level, sizes, calibrator.penalty)
    solved = solve_blocks(grouped, count, penalty)
    # The rows of the sample are not the rows of the fit; nobody needs their clusters.
    kept = Partition(partition.clusters, np.zeros(0, np.intp), partition.n_merged)
    return with_fallback(kept, level, solved, calibrator.min_cluster_size)


def _remember(calibrator: Any, table: Table, fitted: ClusterTemperatures) -> Any:
    _shaped(calibrator, table)._remember(fitted)
    if isinstance(calibrator, RegressedTemperature):
        columns = {n: table[n] for n in ("features", "weights") if n in table}
        counts = per_block(_clipped, columns, (2,), line=whole(calibrator))
        n_clipped, n_rows = counts.sum(axis=0).compute()
        calibrator.clipped_share_ = float(n_clipped / n_rows)
    return calibrator


def _shaped(calibrator: Any, table: Table) -> Any:
    return calibrator.note_shapes(table["logits"].shape[1], table.get("features"))


def _equal_domains(table: Table, domain_weights: str) -> Table:
    """Weights under which every domain counts the same."""
    check_choice(domain_weights, "domain_weights", "pooled", "equal")
    if "domains" not in table:
        raise ValueError("sample_domain is missing: domain_weights='equal' needs it")
    names, codes = name_codes(table["domains"])
    columns = {"codes": codes}
    if "weights" in table:
        columns["weights"] = table["weights"]
    mass = count_codes(columns, len(names), weighted=True).sum(axis=0)
    weights = per_block(_weigh, columns, keep_rows=True, mass=mass)
    return {**table, "weights": weights.persist()}


def _weigh(block: dict[str, np.ndarray], mass: np.ndarray) -> np.ndarray:
    weights = block.get("weights", np.ones(len(block["codes"])))
    return weights / np.where(mass > 0, mass, 1.0)[block["codes"]]


def _nearest(block: dict[str, np.ndarray], clusters: Any) -> np.ndarray:
    features = check_features(block["features"], len(block["features"]))
    return clusters.assign(features)[0].astype(small_integer(len(clusters.centers)))


def _clipped(block: dict[str, np.ndarray], line: RegressedTemperature) -> np.ndarray:
    clipped = line.clipped(check_features(block["features"], len(block["features"])))
    return np.array([[clipped.sum(), len(clipped)]], np.float64)


def sample_table(table: Table, n_rows: int, *names: str) -> dict[str, np.ndarray]:
    """Evenly spaced rows of the named columns, of all if none is named."""
    lengths = block_lengths(table)
    stride = np.array([max(1, -(-int(lengths.sum()) // n_rows))])
    before = (np.cumsum(lengths) - lengths)[:, None]
    wanted = names or tuple(table)
    columns = {n: table[n] for n in table if n in wanted or n == "weights"}
    columns[PER_BLOCK] = one_per_block(before)
    parts = per_block(_pick, columns, dtype=object, stride=stride).compute()
    return {name: np.concatenate([part[name] for part in parts]) for name in wanted}


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
    """`NewDomain` of Dask arrays or dataframes; its calibrator predicts on all rows.

    Parameters
    ----------
    calibrator : fitted, one that divides the logits by a temperature.
    logits, features : as in `NewDomain`, with the rows in the same order.
    sample_rows : so many rows, evenly spaced, are brought together; all, if there are
        no more. Rows keep the numbers they have among all.
    **settings : of `NewDomain`.

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
        # Even where it is not needed to predict, it tells what lies outside.
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
