"""Methods that adapt to the target: what they receive of it, and how they adapt."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from coolhead.calibrators.data import CalibrationData, fit_with
from coolhead.calibrators.evidence import Evidence, gather_evidence
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.new_domain import NewDomain


class Base(NamedTuple):
    """A calibrator fitted without the target, and evidence of left-out domains."""

    calibrator: Any
    evidence: Evidence


class TargetBatch(NamedTuple):
    """Unlabelled rows of the target; features None where there are none."""

    logits: np.ndarray
    features: np.ndarray | None


class LabelBudget:
    """Labels of single rows of the batch, and of no more rows than were declared."""

    def __init__(self, labels: np.ndarray, most: int):
        self._labels, self._most = labels, most
        self._asked: set[int] = set()

    def ask(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """The labels of these rows."""
        self._asked |= {int(row) for row in rows}
        if len(self._asked) > self._most:
            raise PermissionError(
                f"labels of {len(self._asked)} target rows were asked for; the method "
                f"declares {self._most}"
            )
        return self._labels[rows]

    def random_rows(self, seed: list[int]) -> np.ndarray:
        """As many rows as may be asked for, drawn at random."""
        if self._most > len(self._labels):
            raise ValueError(
                f"{self._most} labels were asked for, the target has "
                f"{len(self._labels)} Small rows; wanted at most as many"
            )
        return np.random.default_rng(seed).permutation(len(self._labels))[: self._most]


def learn_base(calibrator: Any, data: CalibrationData) -> Base:
    """Fit on the calibration domains, then leave each out once."""
    fitted = fit_with(calibrator, data)
    return Base(fitted, gather_evidence(fitted, data))


def adapt(
    base: Base,
    batch: TargetBatch,
    budget: LabelBudget,
    n_labels: int,
    *,
    use_batch: bool,
    draw: int,
) -> NewDomain:
    """Adapt a fitted calibrator to the target.

    Parameters
    ----------
    base : Base
    batch : TargetBatch
    budget : LabelBudget
    n_labels : int
        Labels to ask for.
    use_batch : bool
        Whether the unlabelled rows may change the calibrator.
    draw : int
        Seed that decides between rows of equal merit.

    Returns
    -------
    NewDomain
    """
    there = NewDomain(
        base.calibrator, *batch, evidence=base.evidence, random_state=draw
    )
    if not use_batch:
        there = there.without("batch")
    if not n_labels:
        return there
    rows = there.rows_to_label(n_labels)
    return there.with_labels(rows, budget.ask(rows))


def scale_plainly(batch: TargetBatch, budget: LabelBudget, seed: list[int]) -> Any:
    """One temperature from labels of random rows and nothing else."""
    rows = budget.random_rows(seed)
    return TemperatureScaling().fit(batch.logits[rows], budget.ask(rows))
