"""What each calibration domain meets when it is the one nobody has seen."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.domains import leave_one_out
from coolhead.calibrators.select.calibrator import fit_candidate
from coolhead.calibrators.select.stacking import loss_change, warn_of_harm
from coolhead.metrics.scores import score_calibrated
from coolhead.numerics.softmax import log_loss_rows


class LeftOutFit(NamedTuple):
    """A copy of a calibrator that some domains were kept from.

    fitted : on the rows `inside`; outside : name → rows of each domain left out.
    """

    fitted: Any
    inside: CalibrationData
    outside: dict[str, CalibrationData]


def left_out_fits(calibrator: Any, data: CalibrationData) -> Iterator[LeftOutFit]:
    """Copies fitted on all but one domain, or one of ten groups of many domains."""
    for fold in leave_one_out(data.domains):
        inside, rest = data.take(fold.inside), data.take(fold.outside)
        with warnings.catch_warnings():
            # What the fit on all rows had to say was said.
            warnings.simplefilter("ignore", UserWarning)
            fitted = fit_candidate(type(calibrator).__name__, calibrator, inside)
        outside = {
            str(name): rest.take(rest.domains.codes == code)
            for code, name in enumerate(rest.domains.names)
        }
        yield LeftOutFit(fitted, inside, outside)


def left_out_changes(
    calibrator: Any, data: CalibrationData
) -> tuple[np.ndarray, np.ndarray]:
    """Names (m,) of the domains that were left out, and `loss_change` (m, 3) of each.

    Costs as many fits as there are domains, ten at most.
    """
    found = {
        name: domain_change(rows, _losses(fitted, rows))
        for fitted, _, outside in left_out_fits(calibrator, data)
        for name, rows in outside.items()
    }
    return np.array(list(found)), np.reshape(list(found.values()), (-1, 3))


def domain_change(data: CalibrationData, after: np.ndarray) -> np.ndarray:
    """`loss_change` of one domain, whose calibrated rows have the losses `after`."""
    before = log_loss_rows(data.logits, data.labels, 1.0)
    return loss_change(before, after, data.row_shares)


def warn_where_worse(calibrator: Any, data: CalibrationData) -> None:
    """Leave out each domain, and tell which were better off uncalibrated.

    A calibrator that leaves domains out in its own fit has said so there.
    """
    if not hasattr(calibrator, "harmed_"):
        warn_of_harm(*left_out_changes(calibrator, data), stacklevel=4)


def _losses(fitted: Any, data: CalibrationData) -> np.ndarray:
    """(n,) negative log-likelihood of each row, with a temperature or without."""
    found = score_calibrated(fitted, data.logits, data.labels, data.features)
    return found.rows.log_loss
