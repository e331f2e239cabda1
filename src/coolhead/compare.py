"""Which method would have served each domain best, had it been the unseen one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coolhead.calibrators.data import CalibrationData, fit_with, fresh
from coolhead.io.archive import DomainArchive
from coolhead.metrics.bins import Interval
from coolhead.metrics.bootstrap import PairedBootstrap, paired_bootstrap
from coolhead.numerics import softmax

UNCALIBRATED = "uncalibrated"


class MethodScore(NamedTuple):
    """ECE of one method on one left-out domain.

    Attributes
    ----------
    domain, method, n_rows : what was left out, who was asked, and how large it is.
    ece : with 95 % interval.
    best : True for the lowest ECE of the domain.
    tied : True where the difference to the best may be chance.
    """

    domain: str
    method: str
    n_rows: int
    ece: Interval
    best: bool
    tied: bool


def compare_methods(
    archive: DomainArchive,
    methods: Mapping[str, Any],
    *,
    source: Sequence[str] = (),
    reference_features: ArrayLike | None = None,
    n_draws: int = 1000,
    random_state: int = 0,
) -> list[MethodScore]:
    """Fit on all domains but one, score on that one, for every domain.

    Parameters
    ----------
    archive : labelled predictions of at least two domains beside the source.
    methods : name -> calibrator, which is cloned. "uncalibrated" comes on its own.
    source : domains the classifier was trained on, held-out rows of which are in the
        archive. They are never left out, and only methods that take them see them.
    reference_features : (r, d) of rows the classifier was trained on, likewise.
    n_draws, random_state : of the paired bootstrap.
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
    scores = []
    for name in names:
        there = data.sample_domain == name
        left_out = data.take(there)
        right, confidence = _predict(data.take(~there), left_out, methods)
        found = _bootstrap(right, confidence, n_draws, random_state)
        scores += _lines(name, len(left_out), found)
    return scores


def _predict(
    seen: CalibrationData, unseen: CalibrationData, methods: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Correctness and confidence of every method on the unseen domain."""
    predictions = {UNCALIBRATED: softmax.confidence(unseen.logits, 1.0)}
    # To a method that cannot tell it apart, the source is no calibration domain. One
    # record for all the others: those with the same clusters share one k-means.
    source = seen.domains.source_rows
    away = seen.take(~source) if source.any() else seen
    for name, method in methods.items():
        own = seen if "source" in getattr(method, "takes", ()) else away
        fitted = fit_with(fresh(method), own)
        predictions[name] = fitted.confidence(unseen.logits, unseen.features)
    right = {
        name: predicted == unseen.labels for name, (_, predicted) in predictions.items()
    }
    return right, {name: conf for name, (conf, _) in predictions.items()}


def _bootstrap(
    right: dict[str, np.ndarray],
    confidence: dict[str, np.ndarray],
    n_draws: int,
    random_state: int,
) -> PairedBootstrap:
    """Compare all methods with the one of the lowest ECE."""
    found = paired_bootstrap(
        right, confidence, n_draws=n_draws, random_state=random_state
    )
    best = min(found.estimates, key=lambda name: found.estimates[name].estimate)
    return found.against(best)


def _lines(domain: str, n_rows: int, found: PairedBootstrap) -> list[MethodScore]:
    return [
        MethodScore(
            domain,
            method,
            n_rows,
            interval,
            method == found.baseline,
            method == found.baseline or found.differences[method].low <= 0,
        )
        for method, interval in found.estimates.items()
    ]


def mean_scores(scores: list[MethodScore]) -> dict[str, float]:
    """Mean ECE of each method over the left-out domains, the lowest first."""
    by_method: dict[str, list[float]] = {}
    for score in scores:
        by_method.setdefault(score.method, []).append(score.ece.estimate)
    means = {name: float(np.mean(values)) for name, values in by_method.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))
