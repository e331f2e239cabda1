"""Which method would have served each domain best, had it been the unseen one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from coolhead.archive import DomainArchive
from coolhead.calibrators.data import CalibrationData, fit_with, fresh
from coolhead.metrics.bootstrap import PairedBootstrap, paired_bootstrap
from coolhead.metrics.intervals import Interval
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
    n_draws: int = 1000,
    random_state: int = 0,
) -> list[MethodScore]:
    """Fit on all domains but one, score on that one, for every domain.

    Parameters
    ----------
    archive : labelled predictions of at least two domains.
    methods : name -> calibrator, which is cloned. "uncalibrated" comes on its own.
    n_draws, random_state : of the paired bootstrap.
    """
    if archive.logits is None or archive.labels is None:
        raise ValueError("the archive has no logits or no labels; wanted both")
    names = [name for name, n in archive.domain_sizes().items() if n]
    if len(names) < 2:
        raise ValueError(
            f"there is one domain ({names[0]}); wanted at least two, to leave one out"
        )
    scores = []
    for name in names:
        others = archive.select(*(other for other in names if other != name))
        left_out = archive.select(name)
        right, confidence = _predict(others, left_out, methods)
        found = _bootstrap(right, confidence, n_draws, random_state)
        scores += _lines(name, len(left_out), found)
    return scores


def _predict(
    seen: DomainArchive, unseen: DomainArchive, methods: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Correctness and confidence of every method on the unseen domain."""
    labels, logits = np.asarray(unseen.labels), np.asarray(unseen.logits)
    predictions = {UNCALIBRATED: softmax.confidence(logits, 1.0)}
    # One record for all methods: those with the same clusters share one k-means.
    data = CalibrationData.of(
        np.asarray(seen.logits),
        np.asarray(seen.labels),
        features=seen.features,
        sample_domain=seen.domains,
    )
    for name, method in methods.items():
        fitted = fit_with(fresh(method), data)
        predictions[name] = fitted.confidence(logits, unseen.features)
    right = {name: predicted == labels for name, (_, predicted) in predictions.items()}
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
