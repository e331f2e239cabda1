"""What left-out calibration domains tell about a domain nobody has seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.classifier import CalibratedClassifier
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.left_out import domain_change, left_out_fits
from coolhead.models.kinds import check_calibrator
from coolhead.new_domain.batch import (
    Comparison,
    class_shares,
    equal_domains_threshold,
    see,
    train_second,
)
from coolhead.new_domain.offsets import best_offset, shrunk_scale
from coolhead.new_domain.posterior import logit
from coolhead.new_domain.scores import conformal_scores
from coolhead.numerics.softmax import log_loss_rows
from coolhead.shift.clusters import Clusters, find_regions

# Spread of groups within a domain around the domain's own residual, on the logit
# scale; see docs/new-domain.md for what the defaults were chosen on.
GROUP_SPREAD = 0.4
GROUP_WORTH = 10.0
SMALLEST_GROUP = 20


@dataclass(frozen=True)
class Evidence:
    """Plain arrays, so that a calibrator can carry them into its file.

    Attributes
    ----------
    domains, sizes : (m,) calibration domains that were left out, and their rows.
    accuracy, confidence : (m,) share of right rows, and mean confidence of a
        calibrator fitted on the other domains.
    suggested : accuracy that their rows suggested without labels, (m,) for each
        witness of `coolhead.new_domain.batch`.
    offsets, offset_errors : (m,) best offset of log T(x) and its standard error.
    loss_changes : (m, 3) NLL uncalibrated, calibrated, and the standard error of their
        difference.
    group_spread : how far predicted classes stray from their domain, logit scale.
    comparison : what an unlabelled batch is compared with.
    scores : {"lac": (r,), "aps": (r,)} of every row, by calibrators that did not see
        its domain; score_domains : (r,) whose they are.
    regions : where the calibration features lie, or None.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0])
    >>> known = ch.new_domain.learn_evidence(
    ...     ch.TemperatureScaling().fit(data.logits, data.labels),
    ...     data.logits,
    ...     data.labels,
    ...     sample_domain=data.domains,
    ... )
    >>> known.domains.tolist(), known.sizes.tolist()
    (['site-0', 'site-1', 'site-2'], [300, 300, 300])
    """

    domains: np.ndarray
    sizes: np.ndarray
    accuracy: np.ndarray
    confidence: np.ndarray
    suggested: dict[str, np.ndarray]
    offsets: np.ndarray
    offset_errors: np.ndarray
    loss_changes: np.ndarray
    group_spread: float
    comparison: Comparison
    scores: dict[str, np.ndarray]
    score_domains: np.ndarray
    regions: Clusters | None

    @property
    def residuals(self) -> np.ndarray:
        """(m,) logit of accuracy minus logit of mean confidence."""
        return self.errors_of("left_out")

    def said(self, name: str) -> np.ndarray:
        """(m,) accuracy of each left-out domain according to a witness."""
        return self.confidence if name == "left_out" else self.suggested[name]

    def errors_of(self, name: str) -> np.ndarray:
        """(m,) logit of accuracy minus that of what a witness said."""
        return logit(self.accuracy) - logit(self.said(name))

    @property
    def noise(self) -> np.ndarray:
        """(m,) standard error of the logit of accuracy."""
        kept = np.clip(self.accuracy, 0.02, 0.98)
        return 1 / np.sqrt(self.sizes * kept * (1 - kept))


class LeftOutDomain(NamedTuple):
    """One domain, seen by a calibrator that was not fitted on it."""

    name: str
    size: int
    accuracy: float
    confidence: float
    suggested: dict[str, float]
    offset: float
    offset_error: float
    loss_change: np.ndarray
    group_residuals: np.ndarray
    group_noise: np.ndarray
    scores: dict[str, np.ndarray]


def learn_evidence(
    calibrator: Any,
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    features: ArrayLike | None = None,
    sample_domain: ArrayLike | None = None,
    source_domain: Any = None,
    reference_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Evidence:
    """Leave out each calibration domain, fit a copy on the others, look at it there.

    Parameters are those of the calibrator's `fit`, on the same rows. For a
    `CalibratedClassifier` these are X and y, and its folds are fitted again.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, data.logits, data.labels, sample_domain=data.domains
    ... )
    >>> known.confidence.round(1), known.accuracy.round(1)    # of left-out domains
    (array([0.6, 0.8, 0.8]), array([0.8, 0.7, 0.8]))
    """
    beside = {
        "features": features,
        "source_domain": source_domain,
        "reference_features": reference_features,
    }
    rows = {"sample_domain": sample_domain, "sample_weight": sample_weight}
    if not isinstance(calibrator, CalibratedClassifier):
        check_calibrator(calibrator, temperature=True)
        data = CalibrationData.of(logits, labels, **beside, **rows)
        return gather_evidence(calibrator, data)
    for name, value in beside.items():
        if value is not None:
            raise ValueError(
                f"{name} is given with a CalibratedClassifier, which makes its own; "
                "wanted X, y, sample_domain and sample_weight, as in its fit"
            )
    check_is_fitted(calibrator)
    inner = check_calibrator(calibrator.calibrator_, temperature=True)
    return gather_evidence(inner, calibrator.calibration_data(logits, labels, **rows))


def gather_evidence(calibrator: Any, data: CalibrationData) -> Evidence:
    """`learn_evidence` of a checked record."""
    check_is_fitted(calibrator)
    left_out = list(_left_out(calibrator, data))
    inside = _labelled(calibrator, data)
    source = data.domains.source_rows
    away = np.ones(len(data), bool) if source.all() else ~source
    scores = {one.name: one.scores for one in left_out}
    if not left_out:
        # One domain vouches for itself: enough for sets of rows like its own.
        temperature = inside.temperature[away]
        scores["all"] = conformal_scores(
            data.logits[away], data.labels[away], temperature
        )
    residuals = [one.group_residuals for one in left_out] or [np.zeros(0)]
    noise = [one.group_noise for one in left_out] or [np.zeros(0)]
    counts = [len(found["lac"]) for found in scores.values()]
    return Evidence(
        np.array([one.name for one in left_out], np.str_),
        np.array([one.size for one in left_out], np.int64),
        _column(left_out, "accuracy"),
        _column(left_out, "confidence"),
        {
            name: np.array([one.suggested[name] for one in left_out])
            for name in (left_out[0].suggested if left_out else ())
        },
        _column(left_out, "offset"),
        _column(left_out, "offset_error"),
        np.reshape([one.loss_change for one in left_out], (-1, 3)),
        group_spread=shrunk_scale(
            np.concatenate(residuals), np.concatenate(noise), GROUP_SPREAD, GROUP_WORTH
        ),
        comparison=inside.comparison,
        scores={
            kind: np.concatenate([found[kind] for found in scores.values()])
            for kind in ("lac", "aps")
        },
        score_domains=np.repeat(np.array(list(scores), np.str_), counts),
        regions=None if data.features is None else find_regions(data.features[away]),
    )


class _Seen(NamedTuple):
    temperature: np.ndarray
    comparison: Comparison


def _labelled(calibrator: Any, data: CalibrationData) -> _Seen:
    """Labelled rows through the eyes of a calibrator, to compare a batch with."""
    rows = see(calibrator, data.logits, data.features)
    right = rows.predicted == data.labels
    threshold = equal_domains_threshold(rows.confidence, right, data.domains.codes)
    # The head learned from the source; a second opinion comes from elsewhere.
    source, n_classes = data.domains.source_rows, data.logits.shape[1]
    kept = np.ones(len(data), bool) if source.all() else ~source
    labels = data.labels[kept]
    second = None
    if data.features is not None:
        second = train_second(data.features[kept], labels, n_classes)
    shares = class_shares(labels, data.domains.codes[kept], n_classes)
    return _Seen(rows.temperature, Comparison(threshold, second, shares))


def _left_out(calibrator: Any, data: CalibrationData) -> Iterator[LeftOutDomain]:
    for fitted, inside, outside in left_out_fits(calibrator, data):
        known = _labelled(fitted, inside).comparison
        for name, rows in outside.items():
            yield _look(fitted, rows, name, known)


def _look(
    fitted: Any, data: CalibrationData, name: str, known: Comparison
) -> LeftOutDomain:
    logits, labels = data.logits, data.labels
    rows = see(fitted, logits, data.features)
    sure, right = rows.confidence, rows.predicted == labels
    offset = best_offset(logits, labels, np.log(rows.temperature))
    n_rows = len(data)
    # Half a row of each kind, so that a domain without mistakes has a finite logit.
    accuracy = (right.sum() + 0.5) / (n_rows + 1)
    residual = float(logit(accuracy) - logit(sure.mean()))
    groups = group_residuals(sure, right, rows.predicted, residual)
    suggested = known.suggest(rows)
    scores = conformal_scores(logits, labels, rows.temperature)
    change = domain_change(data, log_loss_rows(logits, labels, rows.temperature))
    mean = float(sure.mean())
    return LeftOutDomain(
        name, n_rows, accuracy, mean, suggested, *offset, change, *groups, scores
    )


def group_residuals(
    sure: np.ndarray, right: np.ndarray, groups: np.ndarray, residual: float
) -> tuple[np.ndarray, np.ndarray]:
    """How far groups of a domain stray from the domain, and the noise of that."""
    found, noise = [], []
    for group in np.unique(groups):
        rows = groups == group
        count = int(rows.sum())
        if count < SMALLEST_GROUP:
            continue
        accuracy = (right[rows].sum() + 0.5) / (count + 1)
        found.append(float(logit(accuracy) - logit(sure[rows].mean())) - residual)
        noise.append(1 / np.sqrt(count * accuracy * (1 - accuracy)))
    return np.array(found), np.array(noise)


def _column(left_out: list[LeftOutDomain], field: str) -> np.ndarray:
    return np.array([getattr(one, field) for one in left_out], np.float64)
