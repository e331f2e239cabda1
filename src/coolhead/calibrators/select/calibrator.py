"""Choose between calibrators by leaving out one calibration domain at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData, fresh
from coolhead.calibrators.domains import (
    SMALLEST_DOMAIN,
    Fold,
    find_domains,
    leave_one_out,
)
from coolhead.calibrators.parameters import NotNegative, parameters
from coolhead.calibrators.parts import OfParts
from coolhead.calibrators.select.stacking import (
    LeftOutRows,
    Metric,
    pick,
    scores_by_domain,
    stack,
    warn_of_harm,
)
from coolhead.calibrators.temperature import Identity, TemperatureScaling
from coolhead.numerics.checks import check_choice

UNCALIBRATED = "uncalibrated"
SOURCE_ONLY = "source-only"


class LeaveOneDomainOut:
    """Splits for cross-validation: each domain once as the test set.

    Parameters
    ----------
    keep : domain or domains that are never left out, such as the source.

    Examples
    --------
    >>> from coolhead.calibrators import LeaveOneDomainOut
    >>> site = ["home"] * 40 + ["north"] * 40 + ["south"] * 40
    >>> for rest, left_out in LeaveOneDomainOut(keep="home").split(site, groups=site):
    ...     print(len(rest), site[left_out[0]])
    ...
    80 north
    80 south
    """

    def __init__(self, keep: Any = None):
        self.keep = keep

    def split(
        self,
        logits: Any,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers to fit on and to test on; `groups` is the domain of each row."""
        if groups is None:
            raise ValueError("groups is missing; wanted the domain of each row, (n,)")
        for fold in leave_one_out(find_domains(groups, self.keep)):
            yield np.flatnonzero(fold.inside), np.flatnonzero(fold.outside)

    def get_n_splits(
        self,
        logits: Any = None,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> int:
        """Number of domains that can be left out."""
        return sum(1 for _ in self.split(logits, labels, groups))


@parameters
class SelectByDomain(OfParts, TemperatureCalibrator):
    """Picks or averages candidates by how they do on domains they were not fitted on.

    Parameters
    ----------
    candidates : calibrators from the simplest to the richest. Rows of the source reach
        those that take "source", no others. The classifier as it is and, where
        `source_domain` is given, source-only scaling are put before them.
    metric : "nll", "brier", "top_label_brier", "ece", or a function
        (labels, probabilities) -> float where smaller is better.
    combine : "pick" takes the simplest candidate within one standard error of the best
        (differences paired by domain); "stack" averages log temperatures with weights
        that minimise the left-out NLL, held back towards the prior.
    prior : weights of `candidates` before any evidence, also used where there are too
        few domains to choose; None puts all of it on the first.
    penalty : how strongly "stack" is held back; two domains say little about a third.

    Attributes
    ----------
    names_ : (m,) names of the candidates; candidates_ : fitted on all rows.
    scores_ : (m, domains) of the metric on each left-out domain; domains_ : names.
    harmed_ : names of left-out domains that were better off uncalibrated.
    weights_ : (m,) >= 0, sum to one: log T = sum of weights times log T of candidates.
    bounds_ : lowest and highest log T; without bounds unless a caller sets them.
    temperature_ : float, weighted the same way.
    status_ : str, "stacked" or "picked" with the names, or why it could not choose.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([3.0, 3.0, 3.0, 3.0])
    >>> cal = ch.SelectByDomain([ch.TemperatureScaling(), ch.TemperatureEnsemble()])
    >>> cal = cal.fit(
    ...     data.logits, data.labels, features=data.features, sample_domain=data.domains
    ... )
    >>> cal.status_.split(";")[0]    # the simplest that will do
    'picked TemperatureScaling'
    """

    candidates: Sequence[TemperatureCalibrator] | None = None
    _: KW_ONLY
    metric: Metric = "nll"
    combine: str = "pick"
    prior: Sequence[float] | None = None
    penalty: NotNegative = 0.5

    @property
    def takes(self) -> tuple[str, ...]:
        """What the candidates take, and the source."""
        return tuple(dict.fromkeys(["source", *super().takes]))

    def _learn(self, data: CalibrationData) -> None:
        self.select(data.without_weightless(), {})

    def select(
        self, data: CalibrationData, fitted: Mapping[str, TemperatureCalibrator]
    ) -> None:
        """Fit every candidate on all but one domain, score it there, then on all rows.

        fitted : candidates by name that were fitted on all rows before.
        """
        check_choice(self.combine, "combine", "pick", "stack")
        candidates = self._candidates(data)
        folds = list(leave_one_out(data.domains))
        left_out = [_left_out(candidates, data, fold) for fold in folds]
        self.names_ = np.array(list(candidates))
        self.domains_ = np.array([fold.name for fold in folds], np.str_)
        self.candidates_ = [
            fitted.get(name) or fit_candidate(name, candidate, data)
            for name, candidate in candidates.items()
        ]
        self.bounds_ = -np.inf, np.inf
        self._weigh(left_out, data)
        logs = [np.log(candidate.temperature_) for candidate in self.candidates_]
        self.temperature_ = float(np.exp(self.weights_ @ logs))
        changes = [fold.change(self.weights_) for fold in left_out]
        self.harmed_ = warn_of_harm(self.domains_, np.reshape(changes, (-1, 3)))

    def _parts(self) -> Sequence[TemperatureCalibrator]:
        return [TemperatureScaling()] if self.candidates is None else self.candidates

    def _candidates(self, data: CalibrationData) -> dict[str, TemperatureCalibrator]:
        """The candidates given, after the two that can not be worse than nothing."""
        named: dict[str, TemperatureCalibrator] = {UNCALIBRATED: Identity()}
        if data.domains.is_source.any():
            named[SOURCE_ONLY] = TemperatureScaling()
        for candidate in self._parts():
            name, number = type(candidate).__name__, 2
            while name in named:
                name, number = f"{type(candidate).__name__} {number}", number + 1
            named[name] = candidate
        return named

    def _weigh(self, folds: list[LeftOutRows], data: CalibrationData) -> None:
        """Weights of the candidates, and how they came about."""
        self.scores_ = np.empty((len(self.names_), 0))
        self.weights_ = prior = self._prior()
        self.status_ = "could not choose: fewer than two calibration domains"
        if folds:
            self.scores_ = scores_by_domain(folds, self.metric)
        if folds and self.combine == "pick":
            self.weights_ = pick(self.scores_)
            self.status_ = f"picked {self.names_[self.weights_.argmax()]}"
        elif folds:
            self.weights_ = stack(folds, prior, self.penalty)
            used = self.names_[self.weights_ > 0.005]
            self.status_ = f"stacked {', '.join(used)}"
        if not data.domains.is_source.any():
            self.status_ += "; no source_domain: no source-only candidate"

    def _prior(self) -> np.ndarray:
        given = len(self._parts())
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
        lowest, highest = self.bounds_
        return np.exp(np.minimum(np.maximum(line, lowest), highest))


def fit_candidate(
    name: str, candidate: TemperatureCalibrator, data: CalibrationData
) -> TemperatureCalibrator:
    """A copy of `candidate`, fitted on the rows that are its business.

    Rows of the source reach only source-only scaling and candidates that can tell
    them from the others, as the target will not be the source; unless the others are
    too few to fit anything.
    """
    source = data.domains.source_rows
    if name == SOURCE_ONLY:
        data = data.take(source)
    elif "source" not in candidate.takes and source.any():
        data = data.take(~source) if (~source).sum() >= SMALLEST_DOMAIN else data
    return fresh(candidate).fit_part(data)


def _left_out(
    candidates: Mapping[str, TemperatureCalibrator], data: CalibrationData, fold: Fold
) -> LeftOutRows:
    """What candidates that never saw a domain say about its rows."""
    inside, outside = data.take(fold.inside), data.take(fold.outside)
    fitted = [fit_candidate(name, each, inside) for name, each in candidates.items()]
    logits, features = outside.logits, outside.features
    columns = [np.log(each._temperature(logits, features)) for each in fitted]
    return LeftOutRows(
        outside.rows, outside.labels, np.column_stack(columns), outside.row_shares
    )
