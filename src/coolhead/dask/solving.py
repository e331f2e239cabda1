"""The temperature solver on blocks that never meet: sums travel, rows do not.

Each Newton step sends one number per group to the blocks and adds up four from each.
Before it, one pass checks the rows and brings back the few thousand from which the
search starts: the same rows as in memory, so the same steps follow.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

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
from coolhead.numerics.moments import Rows, peak_rows, summarise_rows
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
    strided_rows,
    warm_start_strides,
)
from coolhead.numerics.temperature import solving_dtype
from coolhead.numerics.weights import check_weights, masked_message, masked_rows

Found = TypeVar("Found")


class MaskedLabels(Exception):
    """Labels of masked classes, in data that were taken to have none."""


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
    logits : (n, k), or (n,) scores of a binary classifier.
    labels, groups, sample_weight : (n,), in the same order.
    classes : names of the classes in the order of the columns.

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
    solution, _ = without_masked(partial(solve_blocks, n_groups=n_groups), table)
    return as_fit(solution, names)


def without_masked(fit: Callable[[Table], Found], table: Table) -> tuple[Found, int]:
    """Fit on the rows whose class is not masked; return how many were left out.

    Such rows are rare: only a fit that meets one pays for the passes that find all.
    """
    try:
        return fit(table), 0
    except MaskedLabels:
        pass
    names = ("logits", "labels", "weights")
    columns = {name: table[name] for name in names if name in table}
    weights = per_block(_unmasked_weights, columns, keep_rows=True).persist()
    kept = {**table, "weights": weights}
    n_rows, n_kept = (int(block_lengths(each).sum()) for each in (table, kept))
    if not n_kept:
        raise ValueError(
            "labels holds a masked class in every row that counts; wanted a row whose "
            "class has a probability above zero"
        )
    warnings.warn(masked_message(n_rows - n_kept, n_rows), stacklevel=4)
    return fit(kept), n_rows - n_kept


def solve_blocks(table: Table, n_groups: int = 1) -> Solution:
    """Temperatures of the groups `codes` (all rows, if absent) of a table."""
    table = {name: table[name] for name in _COLUMNS if name in table}
    counts = _group_counts(table, n_groups)
    strides = warm_start_strides(counts.sum(axis=0))
    totals, sample = _look(table, counts, strides)
    if not totals.mass.any():
        raise ValueError("sample_weight is zero in every row; wanted one weight > 0")
    if not 1e-150 < totals.mass.max() < 1e150:
        # Only proportions count, and sums of such numbers would be no numbers.
        scaled = table["weights"].astype(np.float64) / totals.mass.max()
        return solve_blocks({**table, "weights": scaled}, n_groups)
    rough = None if strides is None else _rough(sample, totals.mass)
    evaluate = partial(_evaluate, table, totals.mass)
    dtype = solving_dtype(table["logits"], int(totals.n_samples.sum()))
    return solve(TemperatureProblem(totals, rough, evaluate, dtype))


def _unmasked_weights(block: dict[str, np.ndarray]) -> np.ndarray:
    weights = block.get("weights", np.ones(len(block["labels"])))
    masked = masked_rows(as_logits(block["logits"]), block["labels"])
    return np.where(masked, 0.0, weights)


def name_codes(column: Any) -> tuple[np.ndarray, Any]:
    """Distinct values of a column, and the column with their numbers instead."""
    found = per_block(_distinct, {"names": column}, dtype=object).compute()
    names = np.unique(np.concatenate(list(found)))
    codes = per_block(
        _codes,
        {"names": column},
        dtype=np.min_scalar_type(len(names)),
        keep_rows=True,
        names_in_order=names,
    )
    return names, codes


_COLUMNS = ("logits", "labels", "codes", "weights", "scores")


def _distinct(block: dict[str, np.ndarray]) -> np.ndarray:
    return np.unique(_names(block))


def _names(block: dict[str, np.ndarray]) -> np.ndarray:
    return check_domains(block["names"], len(block["names"]), "groups")


def _codes(block: dict[str, np.ndarray], names_in_order: np.ndarray) -> np.ndarray:
    codes = np.searchsorted(names_in_order, _names(block))
    return codes.astype(np.min_scalar_type(len(names_in_order)))


def _group_counts(table: Table, n_groups: int) -> np.ndarray:
    """Rows of every block in every group, (blocks, groups)."""
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
    """Check every row; totals of the groups, and the rows to start from."""
    before = np.cumsum(counts, axis=0) - counts
    columns = {**table, PER_BLOCK: one_per_block(before)}
    parts = per_block(_look_at_block, columns, dtype=object, strides=strides)
    found = list(parts.compute())
    sums = np.sum([totals for totals, _ in found], axis=0)
    mass = sums[1]
    means = sums[2:] / np.where(mass > 0, mass, 1.0)
    totals = Totals(counts.sum(axis=0), mass, *means)
    return totals, [sample for _, sample in found if sample is not None]


def _look_at_block(
    block: dict[str, np.ndarray], strides: np.ndarray | None
) -> tuple[np.ndarray, tuple | None]:
    before = block.pop(PER_BLOCK)[0]
    if not len(block["logits"]):
        return np.zeros((len(Totals._fields), len(before))), None
    rows, groups, labels = _open(block, int(before.sum()), len(before))
    picked = np.zeros(0, np.intp)
    if strides is not None:
        picked = strided_rows(groups.codes, strides, before)
    columns = (rows.logits, labels, groups.codes, groups.share)
    sample = tuple(column[picked] for column in columns)
    return np.array(group_totals(rows, groups)), sample


def _open(
    block: dict[str, np.ndarray], first_row: int, n_groups: int
) -> tuple[Rows, Groups, np.ndarray]:
    """Rows with their groups; the weights stand in for shares until mass is known."""
    labels = block["labels"]
    try:
        logits = as_logits(block["logits"])
        weights = block.get("weights", np.ones(len(logits)))
        check_weights(weights, len(logits))
        if masked_rows(logits, labels).any():
            raise MaskedLabels("labels holds a masked class")
        rows = summarise_rows(logits, labels, scores="scores" in block)
    except ValueError as error:
        raise ValueError(f"block from row {first_row} on: {error}") from None
    codes = block.get("codes", np.zeros(len(logits), np.uint8))
    return rows, Groups(codes, np.asarray(weights), n_groups), labels


def _rough(sample: list[tuple], mass: np.ndarray) -> Evaluate:
    """The search's cheap beginning, in memory, on the rows that were brought back."""
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
    logits, labels = as_logits(block["logits"]), block["labels"]
    codes = block.get("codes", np.zeros(len(logits), np.uint8))
    weights = block.get("weights", np.ones(len(logits)))
    groups = Groups(codes, weights, len(log_inverse))
    rows = peak_rows(logits, labels)
    sums = group_sums(rows, groups, log_inverse, active, precision)
    return np.array(sums)[None]
