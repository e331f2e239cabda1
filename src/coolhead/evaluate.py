"""How well a calibrator serves each domain of labelled predictions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from coolhead.io.archive import DomainArchive
from coolhead.metrics.bins import Interval
from coolhead.metrics.bootstrap import paired_bootstrap
from coolhead.metrics.calibration_error import expected_calibration_error_null
from coolhead.metrics.scores import score_calibrated
from coolhead.models.outputs import check_calibrator
from coolhead.numerics import softmax
from coolhead.numerics.softmax import RowScores
from coolhead.numerics.weights import finite_mean


class DomainScores(NamedTuple):
    """One line of an evaluation.

    Attributes
    ----------
    domain : name, or "all" for all rows together.
    n_rows, accuracy : of the domain; the accuracy after calibration.
    ece_before, ece_after : expected calibration error with 95 % interval.
    ece_change : after minus before, of the same resamples; below zero is better.
    ece_noise : ECE a perfectly calibrated model would show on as many rows.
    nll_before, nll_after : mean negative log-likelihood of the rows whose class has a
        probability above zero.
    n_masked : rows whose class has probability zero; their log loss is infinite.
    confidence : mean confidence after calibration.
    role : "source" of the classifier's training domain, "calibration" of one the
        calibrator was fitted on, "unseen" of others, "" if not known.
    seen : whether classifier or calibrator learned from this domain, None if not known.
    """

    domain: str
    n_rows: int
    accuracy: float
    confidence: float
    ece_before: Interval
    ece_after: Interval
    ece_change: Interval
    ece_noise: float
    nll_before: float
    nll_after: float
    role: str
    seen: bool | None
    n_masked: int = 0


def evaluate_domains(
    calibrator: Any,
    archive: DomainArchive,
    *,
    fitted_on: Iterable[str] | None = None,
    source: Iterable[str] = (),
    n_draws: int = 1000,
    random_state: int = 0,
) -> list[DomainScores]:
    """Scores of every domain, and of all together where there are several.

    Parameters
    ----------
    calibrator : fitted.
    archive : labelled predictions; where both have names of classes, its columns are
        brought into the order of the calibrator's.
    fitted_on : names of the domains the calibrator has seen, if known.
    source : names of the domains the classifier was trained on, as far as known.
    n_draws, random_state : of the bootstrap.
    """
    if archive.logits is None or archive.labels is None:
        raise ValueError("the archive has no logits or no labels; wanted both")
    check_calibrator(calibrator)
    archive = archive.in_class_order(getattr(calibrator, "class_names_", None))
    logits, labels = np.asarray(archive.logits), np.asarray(archive.labels)
    codes = archive.domain_codes
    # The logits are read twice, whatever the number of domains; the rest is of vectors.
    before = softmax.score_rows(logits, labels, 1.0)
    after = score_calibrated(calibrator, logits, labels, archive.features).rows
    scored = _ScoredRows(before, after, labels)
    draws, lines = (n_draws, random_state), []
    for code, name in enumerate(archive.domain_names):
        own = np.flatnonzero(codes == code)
        if len(own):
            role = domain_role(name, fitted_on, source)
            lines.append(_score(scored.rows(own), name, role, draws))
    return lines if len(lines) == 1 else [*lines, _score(scored, "all", "", draws)]


def domain_role(
    name: str, fitted_on: Iterable[str] | None, source: Iterable[str]
) -> str:
    """What a domain was to classifier and calibrator; "" if nobody knows."""
    if name in set(source):
        return "source"
    if fitted_on is None:
        return ""
    return "calibration" if name in set(fitted_on) else "unseen"


def trained_sources(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The domains a classifier was trained on, or None where that is not recorded."""
    head = metadata.get("head")
    source = head.get("source") if isinstance(head, Mapping) else None
    if isinstance(source, str):
        return (source,)
    if isinstance(source, list | tuple) and all(isinstance(s, str) for s in source):
        return tuple(source)
    return None


class _ScoredRows(NamedTuple):
    before: RowScores
    after: RowScores
    labels: np.ndarray

    def rows(self, index: np.ndarray) -> "_ScoredRows":
        before = RowScores(*(column.take(index) for column in self.before))
        after = RowScores(*(column.take(index) for column in self.after))
        return _ScoredRows(before, after, self.labels[index])


def _score(
    scored: _ScoredRows, name: str, role: str, draws: tuple[int, int]
) -> DomainScores:
    before, after, labels = scored
    right = {"before": before.predicted == labels, "after": after.predicted == labels}
    n_draws, random_state = draws
    found = paired_bootstrap(
        right,
        {"before": before.confidence, "after": after.confidence},
        baseline="before",
        n_draws=n_draws,
        random_state=random_state,
    )
    nll_before, n_masked = finite_mean(before.log_loss)
    return DomainScores(
        domain=name,
        n_rows=len(labels),
        accuracy=float(right["after"].mean()),
        confidence=float(np.mean(after.confidence, dtype=np.float64)),
        ece_before=found.estimates["before"],
        ece_after=found.estimates["after"],
        ece_change=found.differences["after"],
        ece_noise=float(expected_calibration_error_null(after.confidence)),
        nll_before=nll_before,
        nll_after=finite_mean(after.log_loss)[0],
        role=role,
        seen=None if role == "" else role != "unseen",
        n_masked=n_masked,
    )
