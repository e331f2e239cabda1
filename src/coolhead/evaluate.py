"""Scores of a calibrator on each domain of labelled predictions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from coolhead.display import Summarised, Summary, percent
from coolhead.io.archive import DomainArchive
from coolhead.metrics.bins import N_BINS, Interval, check_count
from coolhead.metrics.bootstrap import paired_bootstrap
from coolhead.metrics.scored import ScoredRows, ScoreSums, score_calibrated
from coolhead.models.outputs import check_calibrator
from coolhead.numerics.classes import class_positions
from coolhead.plugins import suggest


class DomainScores(NamedTuple):
    """Scores of one domain before and after calibration.

    Attributes
    ----------
    domain : str
        Name, or "all" for all rows together.
    n_rows : int
    accuracy, confidence : float
        Accuracy and mean confidence after calibration.
    ece_before, ece_after : Interval
        Expected calibration error with 95 % interval.
    ece_change : Interval
        After minus before, of the same resamples; below zero is better.
    ece_noise : float
        ECE that a perfectly calibrated model shows on as many rows.
    nll_before, nll_after : float
        Mean negative log-likelihood of the rows whose class has a probability above
        zero.
    role : {"source", "calibration", "unseen", ""}
        Whether the classifier was trained on the domain, or the calibrator fitted on
        it; "" if unknown.
    seen : bool or None
        Whether classifier or calibrator learned from this domain; None if unknown.
    n_masked : int
        Rows whose class has probability zero; their log loss is infinite.
    classwise_before, classwise_after : float
        ECE of each class's probability against its frequency, averaged over classes.
    class_before, class_after : float or None
        The same of one named class; None where none is named.
    n_bins : int
        Bins of the calibration errors.
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
    classwise_before: float | None = None
    classwise_after: float | None = None
    class_before: float | None = None
    class_after: float | None = None
    n_bins: int = N_BINS


class DomainEvaluation(Summarised, list[DomainScores]):
    """A line for each domain, and the scored rows that they were computed from.

    Attributes
    ----------
    scored : dict of str to tuple of ScoredRows
        By domain, the rows before and after calibration.
    """

    def __init__(
        self,
        lines: Iterable[DomainScores],
        scored: Mapping[str, tuple[ScoredRows, ScoredRows]],
    ):
        super().__init__(lines)
        self.scored = scored

    def _summary(self) -> Summary:
        rows = [
            (
                line.domain,
                f"{line.n_rows:,}",
                f"{100 * line.accuracy:.1f}",
                percent(line.ece_before),
                percent(line.ece_after),
                percent(line.ece_change),
            )
            for line in self
        ]
        header = ("domain", "rows", "accuracy %", "ECE before", "after", "change")
        title = "ECE of each domain in per cent, bias-corrected 95 % limits"
        return Summary(title, header, rows)


def evaluate_domains(
    calibrator: Any,
    archive: DomainArchive,
    *,
    fitted_on: Iterable[str] | None = None,
    source: Iterable[str] = (),
    n_bins: int = N_BINS,
    class_name: str | None = None,
    n_draws: int = 1000,
    random_state: int = 0,
) -> DomainEvaluation:
    """Score every domain, and all together where there are several.

    Parameters
    ----------
    calibrator : fitted calibrator
    archive : DomainArchive
        Labelled predictions. Where both have names of classes, its columns are brought
        into the order of the calibrator's.
    fitted_on : iterable of str, default=None
        Domains that the calibrator was fitted on, if known.
    source : iterable of str, default=()
        Domains that the classifier was trained on, as far as known.
    n_bins : int, default=15
        Bins of equal width of the calibration errors.
    class_name : str, default=None
        A class whose own calibration error is computed, too.
    n_draws : int, default=1000
        Resamples of the bootstrap.
    random_state : int, default=0
    """
    if archive.logits is None or archive.labels is None:
        raise ValueError("the archive has no logits or no labels; wanted both")
    check_calibrator(calibrator)
    archive = archive.in_class_order(getattr(calibrator, "class_names_", None))
    logits, labels = np.asarray(archive.logits), np.asarray(archive.labels)
    number = class_number(class_name, archive.class_names, logits.shape[1])
    names, codes = archive.domain_names, archive.domain_codes
    n_bins = check_count(n_bins, "n_bins")
    # The logits are read twice, whatever the number of domains; the rest is of vectors.
    both = [
        score_calibrated(
            each,
            logits,
            labels,
            archive.features,
            n_bins=n_bins,
            codes=codes,
            n_domains=len(names),
        )
        for each in (None, calibrator)
    ]
    scored = {
        name: (both[0].domain(code), both[1].domain(code))
        for code, name in enumerate(names)
        if (codes == code).any()
    }
    settings = {"n_bins": n_bins, "n_draws": n_draws, "random_state": random_state}
    lines = [
        _line(name, domain_role(name, fitted_on, source), *rows, number, **settings)
        for name, rows in scored.items()
    ]
    if len(lines) > 1:
        first, then = (rows.together() for rows in both)
        lines.append(_line("all", "", first, then, number, **settings))
    return DomainEvaluation(lines, scored)


def _line(
    name: str,
    role: str,
    before: ScoredRows,
    after: ScoredRows,
    number: int | None,
    *,
    n_bins: int,
    **settings: Any,
) -> DomainScores:
    found = paired_bootstrap(
        {"before": before.correct, "after": after.correct},
        {"before": before.confidence, "after": after.confidence},
        baseline="before",
        n_bins=n_bins,
        **settings,
    )
    sums = [ScoreSums(rows.sums(n_bins)[0], n_bins) for rows in (before, after)]
    first, then = (each.scores() for each in sums)
    own = [None if number is None else each.class_errors[number] for each in sums]
    return DomainScores(
        domain=name,
        n_rows=sums[1].n_rows,
        accuracy=then["accuracy"],
        confidence=then["confidence"],
        ece_before=found.estimates["before"],
        ece_after=found.estimates["after"],
        ece_change=found.differences["after"],
        ece_noise=then["ece_null"],
        nll_before=first["nll"],
        nll_after=then["nll"],
        role=role,
        seen=None if role == "" else role != "unseen",
        n_masked=sums[0].n_masked,
        classwise_before=first["ece_classwise"],
        classwise_after=then["ece_classwise"],
        class_before=own[0],
        class_after=own[1],
        n_bins=n_bins,
    )


def class_number(
    name: str | None, names: Iterable[str] | None, n_classes: int
) -> int | None:
    """Return the column of a class; a class without a name goes by its number."""
    if name is None:
        return None
    known = list(names) if names is not None else [str(n) for n in range(n_classes)]
    number = int(class_positions(np.array([name]), np.array(known))[0])
    if number < 0:
        raise ValueError(f"{name!r} is no class{suggest(name, known)}")
    return number


def domain_role(
    name: str, fitted_on: Iterable[str] | None, source: Iterable[str]
) -> str:
    """Return the role of a domain for classifier and calibrator; "" if unknown."""
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
