"""Choose between calibrators by leaving out one calibration domain at a time."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from coolhead.baselines.reference import Identity, SourceTemperature
from coolhead.calibrators.base import FitData, TemperatureCalibrator, fresh
from coolhead.calibrators.domains import (
    SMALLEST_DOMAIN,
    Domains,
    Fold,
    drop_weightless,
    find_domains,
    leave_one_out,
)
from coolhead.calibrators.select.stacking import LeftOut, pick, scores_by_domain, stack
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.numerics.moments import peak_rows


class LeaveOneDomainOut:
    """Splits for cross-validation: each domain once as the test set.

    Parameters
    ----------
    keep : domain or domains that are never left out, such as the source.
    """

    def __init__(self, keep: Any = None):
        self.keep = keep

    def split(
        self, logits: Any, labels: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers to fit on and to test on; `groups` is the domain of each row."""
        if groups is None:
            raise ValueError("groups is missing; wanted the domain of each row, (n,)")
        for fold in leave_one_out(find_domains(groups, self.keep)):
            yield np.flatnonzero(fold.inside), np.flatnonzero(fold.outside)

    def get_n_splits(
        self, logits: Any = None, labels: Any = None, groups: Any = None
    ) -> int:
        """Number of domains that can be left out."""
        return sum(1 for _ in self.split(logits, labels, groups))


class SelectByDomain(TemperatureCalibrator):
    """Picks or averages candidates by how they do on domains they were not fitted on.

    Parameters
    ----------
    candidates : calibrators from the simplest to the richest. Rows of the source reach
        those whose `fit` names `source_domain`, no others. The classifier as it is
        and, where `source_domain` is given, source-only scaling are put before them.
    metric : "nll", "brier", "top_label_brier", "ece", or a function
        (labels, probabilities) -> float where smaller is better.
    combine : "pick" takes the simplest candidate within one standard error of the best
        (differences paired by domain); "stack" averages log temperatures with weights
        that minimise the left-out NLL, held back towards the prior.
    prior : weights of `candidates` before any evidence, also used where there are too
        few domains to choose; None puts all of it on the first.
    caution : how strongly "stack" is held back; two domains say little about a third.

    Attributes
    ----------
    names_ : (m,) names of the candidates; candidates_ : fitted on all rows.
    scores_ : (m, domains) of the metric on each left-out domain; domains_ : names.
    weights_ : (m,) >= 0, sum to one: log T = sum of weights times log T of candidates.
    bounds_ : lowest and highest log T; without bounds unless a caller sets them.
    temperature_ : float, weighted the same way.
    status_ : str, "stacked" or "picked" with the names, or why it could not choose.
    """

    def __init__(
        self,
        candidates: Sequence[TemperatureCalibrator] | None = None,
        *,
        metric: str | Callable[[np.ndarray, np.ndarray], float] = "nll",
        combine: str = "pick",
        prior: Sequence[float] | None = None,
        caution: float = 0.5,
    ):
        self.candidates = candidates
        self.metric = metric
        self.combine = combine
        self.prior = prior
        self.caution = caution

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True if one of the candidates uses features."""
        return any(candidate.uses_features for candidate in self._given())

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        source_domain: Any = None,
        reference_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit every candidate on all but one domain, score it there, then on all rows.

        source_domain : name or names in `sample_domain` of held-out source rows: never
            left out, and fitted on by the candidates that name it.
        reference_features : handed to the candidates whose `fit` names it.
        """
        if self.combine not in ("pick", "stack"):
            raise ValueError(f"combine is {self.combine!r}; wanted 'pick' or 'stack'")
        data = drop_weightless(
            self._begin_fit(logits, labels, features, sample_domain, sample_weight)
        )
        domains = find_domains(data.domains, source_domain, len(data.labels))
        candidates = self._candidates(domains)
        folds = list(leave_one_out(domains))
        left_out = [
            self._left_out(candidates, data, domains, fold, reference_features)
            for fold in folds
        ]
        self.names_ = np.array([_name(candidate) for candidate in candidates])
        self.domains_ = np.array([fold.name for fold in folds], np.str_)
        self.candidates_ = [
            fit_on(candidate, data, domains, None, reference_features)
            for candidate in candidates
        ]
        self._weigh(left_out, domains)
        self.bounds_: tuple[float, float] = (-np.inf, np.inf)
        logs = [np.log(candidate.temperature_) for candidate in self.candidates_]
        self.temperature_ = float(np.exp(self.weights_ @ logs))
        return self

    def _given(self) -> Sequence[TemperatureCalibrator]:
        return [TemperatureScaling()] if self.candidates is None else self.candidates

    def _candidates(self, domains: Domains) -> list[TemperatureCalibrator]:
        """The candidates given, after the two that can not be worse than nothing."""
        first: list[TemperatureCalibrator] = [Identity()]
        if domains.is_source.any():
            first.append(SourceTemperature())
        return [*first, *self._given()]

    def _left_out(
        self,
        candidates: list[TemperatureCalibrator],
        data: FitData,
        domains: Domains,
        fold: Fold,
        reference: Any,
    ) -> LeftOut:
        """What candidates that never saw a domain say about its rows."""
        fitted = [
            fit_on(candidate, data, domains, fold.inside, reference)
            for candidate in candidates
        ]
        outside = fold.outside
        logits, labels = data.rows.logits[outside], data.labels[outside]
        features = None if data.features is None else data.features[outside]
        weights = (
            np.ones(len(labels)) if data.weights is None else data.weights[outside]
        )
        columns = [np.log(each._temperature(logits, features)) for each in fitted]
        total = weights.sum()
        share = weights / total if total > 0 else np.full(len(labels), 1 / len(labels))
        return LeftOut(
            peak_rows(logits, labels), labels, np.column_stack(columns), share
        )

    def _weigh(self, folds: list[LeftOut], domains: Domains) -> None:
        """Weights of the candidates, and how they came about."""
        prior = self._prior()
        notes = (
            []
            if domains.is_source.any()
            else ["no source_domain: no source-only candidate"]
        )
        if not folds:
            self.scores_ = np.empty((len(self.names_), 0))
            self.weights_ = prior
            notes.insert(0, "could not choose: fewer than two calibration domains")
        else:
            self.scores_ = scores_by_domain(folds, self.metric)
            if self.combine == "pick":
                self.weights_ = pick(self.scores_)
                notes.insert(0, f"picked {self.names_[self.weights_.argmax()]}")
            else:
                self.weights_ = stack(folds, prior, self.caution)
                used = self.names_[self.weights_ > 0.005]
                notes.insert(0, f"stacked {', '.join(used)}")
        self.status_ = "; ".join(notes)

    def _prior(self) -> np.ndarray:
        given = len(self._given())
        wanted = [1.0] + [0.0] * (given - 1) if self.prior is None else self.prior
        wanted = np.asarray(wanted, np.float64)
        if wanted.shape != (given,) or not (wanted >= 0).all() or not wanted.any():
            raise ValueError(
                f"prior is {self.prior!r}; wanted {given} weights >= 0, one per "
                "candidate, not all zero"
            )
        before = np.zeros(len(self.names_) - given)
        return np.concatenate([before, wanted / wanted.sum()])

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        line = np.zeros(len(logits))
        for weight, candidate in zip(self.weights_, self.candidates_, strict=True):
            if weight > 0:
                line += weight * np.log(candidate._temperature(logits, features))
        return np.exp(np.clip(line, *self.bounds_))


def fit_on(
    candidate: TemperatureCalibrator,
    data: FitData,
    domains: Domains,
    mask: np.ndarray | None,
    reference: Any,
) -> TemperatureCalibrator:
    """A copy of `candidate`, fitted on some rows with what its `fit` names.

    Rows of the source reach only source-only scaling and candidates that can tell
    them from the others, as the target will not be the source; unless the others are
    too few to fit anything.
    """
    copy = fresh(candidate)
    wanted = inspect.signature(copy.fit).parameters
    if mask is None:
        mask = np.ones(len(data.labels), bool)
    if isinstance(candidate, SourceTemperature):
        mask = mask & domains.source_rows
    elif "source_domain" not in wanted:
        away = mask & ~domains.source_rows
        mask = away if away.sum() >= SMALLEST_DOMAIN else mask
    offers: dict[str, Any] = {
        "features": data.features,
        "sample_domain": domains.names[domains.codes],
        "sample_weight": data.weights,
    }
    offers = {key: None if v is None else v[mask] for key, v in offers.items()}
    if domains.is_source.any():
        offers["source_domain"] = domains.names[domains.is_source].tolist()
    if reference is not None:
        offers["reference_features"] = reference
    given = {name: value for name, value in offers.items() if name in wanted}
    return copy.fit(data.rows.logits[mask], data.labels[mask], **given)


def _name(candidate: TemperatureCalibrator) -> str:
    return type(candidate).__name__
