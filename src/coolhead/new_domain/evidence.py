"""What left-out calibration domains tell about a domain nobody has seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.base import FitData
from coolhead.calibrators.domains import Domains, find_domains, leave_one_out
from coolhead.calibrators.select.calibrator import fit_on
from coolhead.new_domain.batch import (
    Comparison,
    equal_domains_threshold,
    train_second,
)
from coolhead.new_domain.offsets import best_offset, shrunk_scale, spread_between
from coolhead.new_domain.posterior import logit
from coolhead.new_domain.scores import conformal_scores
from coolhead.numerics.checks import (
    as_logits,
    check_domains,
    check_features,
    check_labels,
    check_weights,
)
from coolhead.numerics.moments import summarise_rows
from coolhead.numerics.softmax import confidence
from coolhead.shift.coverage import Regions, find_regions

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
    group_spread : how far predicted classes stray from their domain, logit scale.
    comparison : what an unlabelled batch is compared with.
    scores : {"lac": (r,), "aps": (r,)} of every row, by calibrators that did not see
        its domain; score_domains : (r,) whose they are.
    regions : where the calibration features lie, or None.
    """

    domains: np.ndarray
    sizes: np.ndarray
    accuracy: np.ndarray
    confidence: np.ndarray
    suggested: dict[str, np.ndarray]
    offsets: np.ndarray
    offset_errors: np.ndarray
    group_spread: float
    comparison: Comparison
    scores: dict[str, np.ndarray]
    score_domains: np.ndarray
    regions: Regions | None

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
    def offset_spread(self) -> float:
        """Standard deviation of the offsets between domains, beyond their errors."""
        return spread_between(self.offsets, self.offset_errors)

    @property
    def noise(self) -> np.ndarray:
        """(m,) standard error of the logit of accuracy."""
        kept = np.clip(self.accuracy, 0.02, 0.98)
        return 1 / np.sqrt(self.sizes * kept * (1 - kept))


class LeftOut(NamedTuple):
    """One domain, seen by a calibrator that was not fitted on it."""

    name: str
    size: int
    accuracy: float
    confidence: float
    suggested: dict[str, float]
    offset: float
    offset_error: float
    group_residuals: np.ndarray
    group_noise: np.ndarray
    scores: dict[str, np.ndarray]


def learn_evidence(
    calibrator: Any,
    logits: Any,
    labels: Any,
    *,
    features: Any = None,
    sample_domain: Any = None,
    source_domain: Any = None,
    reference_features: Any = None,
    sample_weight: Any = None,
) -> Evidence:
    """Leave out each calibration domain, fit a copy on the others, look at it there.

    Parameters are those of the calibrator's `fit`, on the same rows.
    """
    check_is_fitted(calibrator)
    data = _checked(logits, labels, features, sample_domain, sample_weight)
    domains = find_domains(data.domains, source_domain, len(data.labels))
    left_out = list(_left_out(calibrator, data, domains, reference_features))
    inside = _labelled(calibrator, data, domains, np.ones(len(data.labels), bool))
    away = (
        ~domains.source_rows
        if not domains.is_source.all()
        else np.ones(len(data.labels), bool)
    )
    scores = {one.name: one.scores for one in left_out}
    if not left_out:
        # One domain vouches for itself: enough for sets of rows like its own.
        temperature = inside.temperature[away]
        scores["all"] = conformal_scores(
            data.rows.logits[away], data.labels[away], temperature
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


def _checked(
    logits: Any, labels: Any, features: Any, sample_domain: Any, sample_weight: Any
) -> FitData:
    array = as_logits(logits)
    n_rows, n_classes = array.shape
    labels = check_labels(labels, n_classes, n_rows)
    rows = summarise_rows(array, labels, scores=np.ndim(logits) == 1)
    return FitData(
        rows,
        labels,
        None if features is None else check_features(features, n_rows),
        None if sample_domain is None else check_domains(sample_domain, n_rows),
        check_weights(sample_weight, n_rows),
    )


def _temperature(calibrator: Any, data: FitData, rows: np.ndarray) -> np.ndarray:
    features = None
    if calibrator.uses_features and data.features is not None:
        features = data.features[rows]
    return calibrator.temperature(data.rows.logits[rows], features)


def _labelled(
    calibrator: Any, data: FitData, domains: Domains, rows: np.ndarray
) -> _Seen:
    """Labelled rows through the eyes of a calibrator, to compare a batch with."""
    temperature = _temperature(calibrator, data, rows)
    sure, predicted = confidence(data.rows.logits[rows], temperature)
    right = predicted == data.labels[rows]
    codes = np.unique(domains.codes[rows], return_inverse=True)[1]
    threshold = equal_domains_threshold(sure, right, codes)
    second = None
    if data.features is not None:
        # The head learned from the source; the second opinion comes from elsewhere.
        away = rows & ~domains.source_rows
        kept = away if away.any() else rows
        n_classes = data.rows.logits.shape[1]
        second = train_second(data.features[kept], data.labels[kept], n_classes)
    return _Seen(temperature, Comparison(threshold, second))


def _left_out(
    calibrator: Any, data: FitData, domains: Domains, reference: Any
) -> Iterator[LeftOut]:
    for fold in leave_one_out(domains):
        fitted = fit_on(calibrator, data, domains, fold.inside, reference)
        seen = _labelled(fitted, data, domains, fold.inside)
        for code in np.unique(domains.codes[fold.outside]):
            rows = np.flatnonzero(domains.codes == code)
            yield _look(fitted, data, str(domains.names[code]), rows, seen.comparison)


def _look(
    fitted: Any, data: FitData, name: str, rows: np.ndarray, known: Comparison
) -> LeftOut:
    logits, labels = data.rows.logits[rows], data.labels[rows]
    temperature = _temperature(fitted, data, rows)
    sure, predicted = confidence(logits, temperature)
    sure = sure.astype(np.float64)
    right = predicted == labels
    offset = best_offset(logits, labels, np.log(temperature))
    n_rows = len(rows)
    # Half a row of each kind, so that a domain without mistakes has a finite logit.
    accuracy = (right.sum() + 0.5) / (n_rows + 1)
    residual = float(logit(accuracy) - logit(sure.mean()))
    groups = group_residuals(sure, right, predicted, residual)
    features = None if data.features is None else data.features[rows]
    suggested = known.suggest(sure, predicted, features)
    scores = conformal_scores(logits, labels, temperature)
    return LeftOut(
        name, n_rows, accuracy, float(sure.mean()), suggested, *offset, *groups, scores
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


def _column(left_out: list[LeftOut], field: str) -> np.ndarray:
    return np.array([getattr(one, field) for one in left_out], np.float64)
