"""The temperature solver on blocks that are never joined: sums travel, rows do not.

Each Newton step sends one number per group to the blocks and adds up four from each.
Before it, one pass checks the rows and brings back the few thousand from which the
search starts: the same rows as in memory, so the same steps follow.
"""

import warnings
from functools import partial
from typing import Any

import numpy as np

from coolhead.dask.blocks import (
    PER_BLOCK,
    Table,
    align,
    block_lengths,
    one_per_block,
    per_block,
)
from coolhead.numerics.checks import as_logits, check_domains
from coolhead.numerics.moments import peak_rows, summarise_rows
from coolhead.numerics.solver import (
    Evaluate,
    Groups,
    Solution,
    Sums,
    TemperatureFit,
    TemperatureProblem,
    Totals,
    as_fit,
    group_sums,
    group_totals,
    solve,
    solving_dtype,
    strided_rows,
    warm_start_strides,
)
from coolhead.numerics.weights import check_weights, masked_message, masked_rows

_COLUMNS = ("logits", "labels", "codes", "weights", "scores")


def fit_temperature(
    logits: Any,
    labels: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
) -> TemperatureFit:
    """`coolhead.fit_temperature` of Dask arrays or dataframes.

    Parameters
    ----------
    logits : Dask collection of shape (n_samples, n_classes) or (n_samples,)
        Logits, or scores of a binary classifier.
    labels : Dask collection of shape (n_samples,)
        Labels, in the same order.
    groups : Dask collection of shape (n_samples,), default=None
        One temperature is fitted for each value.
    sample_weight : Dask collection of shape (n_samples,), default=None
        Weights of the rows.
    classes : sequence of str, default=None
        Names of the classes in the order of the columns.

    Returns
    -------
    TemperatureFit
        As in memory.

    Notes
    -----
    The data are read about four times; `persist` them first if they fit in the
    cluster's memory.
    """
    columns = {"labels": labels, "groups": groups, "weights": sample_weight}
    table, _ = align(logits, classes=classes, **columns)
    names = None
    if groups is not None:
        names, codes = name_codes(table.pop("groups"))
        table["codes"] = codes.persist()
    n_groups = 1 if names is None else len(names)
    solution, _ = solve_blocks(table, n_groups)
    return as_fit(solution, names)


def solve_blocks(table: Table, n_groups: int = 1) -> tuple[Solution, int]:
    """Find the temperatures of the groups `codes` (all rows, if absent) of a table.

    Rows whose class is masked are left out, with a warning; returns how many.
    """
    table = {name: table[name] for name in _COLUMNS if name in table}
    counts = _group_counts(table, n_groups)
    strides = warm_start_strides(counts.sum(axis=0))
    totals, sample = _look(table, counts, strides)
    n_rows, n_kept = int(counts.sum()), int(totals.n_samples.sum())
    if n_rows and not n_kept:
        raise ValueError(
            "labels holds a masked class in every row that counts; wanted a row whose "
            "class has a probability above zero"
        )
    if not totals.mass.any():
        raise ValueError("sample_weight is zero in every row; wanted one weight > 0")
    if not 1e-150 < totals.mass.max() < 1e150:
        # Only proportions count, and sums of such numbers would be no numbers.
        scaled = table["weights"].astype(np.float64) / totals.mass.max()
        return solve_blocks({**table, "weights": scaled}, n_groups)
    if n_kept < n_rows:
        warnings.warn(masked_message(n_rows - n_kept, n_rows), stacklevel=3)
    rough = None if strides is None else _rough(sample, totals.mass)
    evaluate = partial(_evaluate, table, totals.mass)
    dtype = solving_dtype(table["logits"], n_kept)
    problem = TemperatureProblem(totals, rough, evaluate, dtype)
    return solve(problem), n_rows - n_kept


def name_codes(column: Any) -> tuple[np.ndarray, Any]:
    """Return distinct values of a column, and the column with their numbers instead."""
    table = {"names": column}
    found = per_block(_distinct, table, dtype=object).compute()
    names = np.unique(np.concatenate(list(found)))
    dtype = np.min_scalar_type(len(names))
    codes = per_block(_codes, table, dtype=dtype, keep_rows=True, order=names)
    return names, codes


def _distinct(block: dict[str, np.ndarray]) -> np.ndarray:
    return np.unique(check_domains(block["names"], len(block["names"]), "groups"))


def _codes(block: dict[str, np.ndarray], order: np.ndarray) -> np.ndarray:
    names = check_domains(block["names"], len(block["names"]), "groups")
    return np.searchsorted(order, names).astype(np.min_scalar_type(len(order)))


def unmasked_weights(block: dict[str, np.ndarray]) -> np.ndarray:
    """Return the weights of a block, zero where the class of a row is masked."""
    weights = block.get("weights", np.ones(len(block["labels"])))
    masked = masked_rows(as_logits(block["logits"]), block["labels"])
    return np.where(masked, 0.0, weights)


def _group_counts(table: Table, n_groups: int) -> np.ndarray:
    """Count the rows of every block in every group, (blocks, groups)."""
    if "codes" not in table:
        return block_lengths(table)[:, None]
    columns = {name: table[name] for name in ("codes", "weights") if name in table}
    settings = {"dtype": np.intp, "n_groups": n_groups}
    return per_block(_count, columns, (n_groups,), **settings).compute()


def _count(block: dict[str, np.ndarray], n_groups: int) -> np.ndarray:
    return np.bincount(block["codes"], minlength=n_groups)[None]


def _look(
    table: Table, counts: np.ndarray, strides: np.ndarray | None
) -> tuple[Totals, list[tuple]]:
    """Check every row; return totals of the groups, and the rows to start from."""
    before = np.cumsum(counts, axis=0) - counts
    columns = {**table, PER_BLOCK: one_per_block(before)}
    parts = per_block(_look_at_block, columns, dtype=object, strides=strides)
    found = list(parts.compute())
    n_samples, mass, *sums = np.sum([totals for totals, _ in found], axis=0)
    means = np.array(sums) / np.where(mass > 0, mass, 1.0)
    totals = Totals(n_samples.astype(np.intp), mass, *means)
    return totals, [sample for _, sample in found if sample is not None]


def _look_at_block(
    block: dict[str, np.ndarray], strides: np.ndarray | None
) -> tuple[np.ndarray, tuple | None]:
    before = block.pop(PER_BLOCK)[0]
    nothing = np.zeros((len(Totals._fields), len(before))), None
    if not len(block["logits"]):
        return nothing
    try:
        if "weights" in block:
            check_weights(block["weights"], len(block["logits"]))
        logits, labels, groups = _unmasked(block, len(before))
        if not len(logits):
            return nothing
        rows = summarise_rows(logits, labels, scores="scores" in block)
    except ValueError as error:
        first = int(before.sum())
        raise ValueError(f"block from row {first} on: {error}") from None
    picked = np.zeros(0, np.intp)
    if strides is not None:
        picked = strided_rows(groups.codes, strides, before)
    columns = (logits, labels, groups.codes, groups.share)
    sample = tuple(column[picked] for column in columns)
    return np.array(group_totals(rows, groups)), sample


def _unmasked(
    block: dict[str, np.ndarray], n_groups: int
) -> tuple[np.ndarray, np.ndarray, Groups]:
    """Return logits, labels and groups of the rows whose class is not masked.

    The weights take the place of shares until the mass of the groups is known.
    """
    logits, labels = as_logits(block["logits"]), block["labels"]
    codes = block.get("codes", np.zeros(len(logits), np.uint8))
    weights = np.asarray(block.get("weights", np.ones(len(logits))))
    masked = masked_rows(logits, labels)
    if masked.any():
        kept = ~masked
        logits, labels, codes, weights = (
            column[kept] for column in (logits, labels, codes, weights)
        )
    return logits, labels, Groups(codes, weights, n_groups)


def _rough(sample: list[tuple], mass: np.ndarray) -> Evaluate:
    """Return the cheap start of the search, in memory, on the rows brought back."""
    logits, labels, codes, weights = (
        np.concatenate(part) for part in zip(*sample, strict=True)
    )
    share = weights / np.where(mass > 0, mass, 1.0)[codes]
    groups = Groups(codes, share, len(mass))
    rows = peak_rows(logits, labels)
    return partial(group_sums, rows, groups, dtype=np.float32)


def _evaluate(
    table: Table,
    mass: np.ndarray,
    log_inverse: np.ndarray,
    active: np.ndarray,
    *,
    dtype: type[np.floating],
) -> Sums:
    """One pass over all blocks."""
    parts = per_block(
        _sums_of_block,
        table,
        (len(Sums._fields), len(mass)),
        log_inverse=log_inverse.copy(),  # the solver goes on writing in its own
        active=active.copy(),
        precision=dtype,
    )
    sums = np.asarray(parts.sum(axis=0).compute())
    divisor = np.where(mass > 0, mass, 1.0)
    loss, score, curvature = sums[:3] / divisor
    return Sums(loss, score, curvature, sums[3] / np.square(divisor))


def _sums_of_block(
    block: dict[str, np.ndarray],
    log_inverse: np.ndarray,
    active: np.ndarray,
    precision: type[np.floating],
) -> np.ndarray:
    logits, labels, groups = _unmasked(block, len(log_inverse))
    if not len(logits):
        return np.zeros((1, len(Sums._fields), len(log_inverse)))
    rows = peak_rows(logits, labels)
    sums = group_sums(rows, groups, log_inverse, active, precision)
    return np.array(sums)[None]
