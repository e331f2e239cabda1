"""Comparison of methods on left-out domains."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coolhead.calibrators.data import CalibrationData, fit_with, fresh
from coolhead.display import Summarised, Summary, percent
from coolhead.evaluate import class_number
from coolhead.io.archive import DomainArchive
from coolhead.metrics.bins import N_BINS, Interval
from coolhead.metrics.bootstrap import paired_bootstrap
from coolhead.metrics.scored import ScoredRows, ScoreSums, score_calibrated

UNCALIBRATED = "uncalibrated"


class MethodScore(NamedTuple):
    """ECE of one method on one left-out domain.

    Attributes
    ----------
    domain, method : str
    n_rows : int
    ece : Interval
        With the limits of 95 %.
    best : bool
        Whether it is the lowest ECE of the domain.
    tied : bool
        Whether the difference to the lowest may be chance.
    classwise : float
        ECE of each class's probability, averaged over the classes.
    class_ece : float or None
        The same of one named class; None where none is named.
    """

    domain: str
    method: str
    n_rows: int
    ece: Interval
    best: bool
    tied: bool
    classwise: float | None = None
    class_ece: float | None = None


class MethodComparison(Summarised, list[MethodScore]):
    """The scores of every method on every left-out domain."""

    def _summary(self) -> Summary:
        domains = list(dict.fromkeys(score.domain for score in self))
        cells = {(score.method, score.domain): percent(score.ece) for score in self}
        rows = [
            (method, f"{100 * mean:.1f}", *(cells[method, name] for name in domains))
            for method, mean in mean_scores(self).items()
        ]
        title = "ECE on left-out domains in per cent, bias-corrected 95 % limits"
        return Summary(title, ("method", "mean", *domains), rows)


def compare_methods(
    archive: DomainArchive,
    methods: Mapping[str, Any],
    *,
    source: Sequence[str] = (),
    reference_features: ArrayLike | None = None,
    n_bins: int = N_BINS,
    class_name: str | None = None,
    n_draws: int = 1000,
    random_state: int = 0,
) -> MethodComparison:
    """Fit on all domains but one, score on that one, for every domain.

    Parameters
    ----------
    archive : DomainArchive
        Labelled predictions of at least two domains beside the source.
    methods : mapping of str to calibrator
        Calibrators, which are cloned. "uncalibrated" is added.
    source : sequence of str, default=()
        Domains that the classifier was trained on, of which the archive has held-out
        rows. They are never left out, and only methods that take them use them.
    reference_features : array-like of shape (n_reference, n_features), default=None
        Features of rows the classifier was trained on, likewise.
    n_bins : int, default=15
    class_name : str, default=None
    n_draws : int, default=1000
    random_state : int, default=0
        As for `evaluate_domains`.
    """
    if archive.logits is None or archive.labels is None:
        raise ValueError("the archive has no logits or no labels; wanted both")
    data = CalibrationData.of(
        np.asarray(archive.logits),
        np.asarray(archive.labels),
        features=archive.features,
        sample_domain=archive.domains,
        source_domain=list(source) or None,
        reference_features=reference_features,
    )
    names = [name for name, n in archive.domain_sizes().items() if n]
    names = [name for name in names if name not in set(source)]
    if len(names) < 2:
        found = f"there is one domain ({names[0]})" if names else "there is no domain"
        beside = " beside the source" if source else ""
        raise ValueError(
            f"{found}{beside}; wanted at least two{beside}, to leave one out"
        )
    number = class_number(class_name, archive.class_names, data.n_classes)
    scores: list[MethodScore] = []
    for name in names:
        there = data.sample_domain == name
        found = _score(data.take(~there), data.take(there), methods, n_bins)
        result = paired_bootstrap(
            {method: scored.correct for method, scored in found.items()},
            {method: scored.confidence for method, scored in found.items()},
            n_bins=n_bins,
            n_draws=n_draws,
            random_state=random_state,
        )
        best = min(found, key=lambda method: result.estimates[method].estimate)
        differences = result.against(best).differences
        for method, scored in found.items():
            sums = ScoreSums(scored.sums(n_bins)[0], n_bins)
            score = MethodScore(
                domain=name,
                method=method,
                n_rows=sums.n_rows,
                ece=result.estimates[method],
                best=method == best,
                tied=method == best or differences[method].low <= 0,
                classwise=sums.scores()["ece_classwise"],
                class_ece=None if number is None else sums.class_errors[number],
            )
            scores.append(score)
    return MethodComparison(scores)


def _score(
    seen: CalibrationData,
    unseen: CalibrationData,
    methods: Mapping[str, Any],
    n_bins: int,
) -> dict[str, ScoredRows]:
    """The rows of the unseen domain, scored by every method."""
    # To a method that cannot tell it apart, the source is no calibration domain. One
    # record for all the others: those with the same clusters share one k-means.
    source = seen.domains.source_rows
    away = seen.take(~source) if source.any() else seen
    fitted = {UNCALIBRATED: None} | {
        name: fit_with(
            fresh(method), seen if "source" in getattr(method, "takes", ()) else away
        )
        for name, method in methods.items()
    }
    rows = unseen.logits, unseen.labels, unseen.features
    return {
        name: score_calibrated(calibrator, *rows, n_bins=n_bins)
        for name, calibrator in fitted.items()
    }


def mean_scores(scores: list[MethodScore]) -> dict[str, float]:
    """Mean ECE of each method over the left-out domains, the lowest first."""
    by_method: dict[str, list[float]] = {}
    for score in scores:
        by_method.setdefault(score.method, []).append(score.ece.estimate)
    means = {name: float(np.mean(values)) for name, values in by_method.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))
