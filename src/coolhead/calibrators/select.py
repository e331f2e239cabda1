"""Choose between calibrators by leaving out one calibration domain at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from coolhead.calibrators.base import OfParts, TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData, find_domains, leave_one_out
from coolhead.calibrators.left_out import OutOfDomain, fit_copy, warn_of_harm
from coolhead.calibrators.parameters import NotNegative, parameters
from coolhead.calibrators.temperature import Identity, TemperatureScaling
from coolhead.metrics import expected_calibration_error
from coolhead.numerics.checks import check_choice
from coolhead.numerics.moments import row_moments
from coolhead.numerics.softmax import score_rows, softmax

UNCALIBRATED = "uncalibrated"
SOURCE_ONLY = "source-only"

Metric = str | Callable[[np.ndarray, np.ndarray], float]


class LeaveOneDomainOut:
    """Splits for cross-validation: each domain once as the test set.

    Parameters
    ----------
    keep : str or list, default=None
        Domain or domains that are never left out, such as the source.

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
        """Yield the row numbers to fit on and to test on.

        Parameters
        ----------
        logits, labels : object, default=None
            Ignored.
        groups : array-like of shape (n_samples,)
            Domain of each row.
        """
        if groups is None:
            raise ValueError("groups is missing; wanted the domain of each row, (n,)")
        for _, outside in leave_one_out(find_domains(groups, self.keep)):
            yield np.flatnonzero(~outside), np.flatnonzero(outside)

    def get_n_splits(
        self,
        logits: Any = None,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> int:
        """Return the number of domains that can be left out."""
        return sum(1 for _ in self.split(logits, labels, groups))


@parameters
class SelectByDomain(OfParts, TemperatureCalibrator):
    """Pick or average candidates by their scores on domains they were not fitted on.

    Parameters
    ----------
    candidates : list of TemperatureCalibrator, default=None
        From the simplest to the richest. Rows of the source reach those that take
        "source", no others. The uncalibrated classifier and, where `source_domain` is
        given, source-only scaling are put before them.
    metric : {"nll", "brier", "top_label_brier", "ece"} or callable, default="nll"
        A function of (labels, probabilities) returns a float; smaller is better.
    combine : {"pick", "stack"}, default="pick"
        "pick" takes the simplest candidate within one standard error of the best
        (differences paired by domain). "stack" averages log temperatures with weights
        of smallest left-out NLL, shrunk towards the prior.
    prior : list of float, default=None
        Weights of `candidates` before any evidence, also used where there are too few
        domains to choose. None puts all of it on the first.
    penalty : float, default=0.5
        Strength of the shrinkage of "stack"; two domains say little about a third.

    Attributes
    ----------
    names_ : ndarray of shape (n_candidates,)
    candidates_ : list of TemperatureCalibrator
        Fitted on all rows.
    scores_ : ndarray of shape (n_candidates, n_domains)
        The metric on each left-out domain.
    domains_ : ndarray of shape (n_domains,)
        Names of the left-out domains.
    harmed_ : list of str
        Names of left-out domains that were better off uncalibrated, with weights that
        were found without them.
    weights_ : ndarray of shape (n_candidates,)
        They sum to one: log T is the weighted sum of the candidates' log T.
    bounds_ : tuple of float
        Lowest and highest log T; infinite unless a caller sets them.
    temperature_ : float
        The candidates' set-level temperatures, averaged with the same weights.
    evidence_ : Evidence
        Summary of the left-out domains, for new domains.
    status_ : str
        "stacked" or "picked" with the names, or why no choice was possible.

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

    def _learn(self, data: CalibrationData) -> OutOfDomain:
        found = self.select(data)
        self.harmed_ = warn_of_harm(data, found, stacklevel=4)
        return found

    def select(
        self,
        data: CalibrationData,
        fitted: Mapping[str, TemperatureCalibrator] | None = None,
        variants: Mapping[str, Sequence[TemperatureCalibrator]] | None = None,
    ) -> OutOfDomain:
        """Fit every candidate without each domain, score it there, and fit it on all.

        Parameters
        ----------
        data : CalibrationData
            The calibration rows.
        fitted : mapping of str to TemperatureCalibrator, default=None
            Candidates that are fitted on all rows already.
        variants : mapping of str to list of TemperatureCalibrator, default=None
            Calibrators to fit in place of a candidate, one for each left-out domain.

        Returns
        -------
        found : OutOfDomain
            Temperatures of left-out rows, with weights found without their domain.
        """
        check_choice(self.combine, "combine", "pick", "stack")
        candidates = self._candidates(data)
        folds = list(leave_one_out(data.domains))
        self.names_ = np.array(list(candidates))
        self.domains_ = np.array([name for name, _ in folds], np.str_)
        lines = np.full((len(data), len(candidates)), np.nan)
        codes = np.full(len(data), -1)
        variants = variants or {}
        for number, (_, own) in enumerate(folds):
            inside, outside = data.take(~own), data.take(own)
            codes[own] = number
            for column, (name, candidate) in enumerate(candidates.items()):
                if name in variants:
                    candidate = variants[name][number]
                copy = fit_copy(candidate, inside, of_source=name == SOURCE_ONLY)
                found = copy._temperature(outside.logits, outside.features)
                lines[own, column] = np.log(found)
        self.candidates_ = [
            (fitted or {}).get(name)
            or fit_copy(candidate, data, of_source=name == SOURCE_ONLY)
            for name, candidate in candidates.items()
        ]
        self.bounds_ = -np.inf, np.inf
        found = self._weigh(data, lines, codes)
        self.temperature_ = float(
            np.exp(self.weights_ @ [np.log(c.temperature_) for c in self.candidates_])
        )
        return found

    def _parts(self) -> Sequence[TemperatureCalibrator]:
        return [TemperatureScaling()] if self.candidates is None else self.candidates

    def _candidates(self, data: CalibrationData) -> dict[str, TemperatureCalibrator]:
        """Return the candidates given, after the two simplest ones."""
        named: dict[str, TemperatureCalibrator] = {UNCALIBRATED: Identity()}
        if data.domains.is_source.any():
            named[SOURCE_ONLY] = TemperatureScaling()
        for candidate in self._parts():
            name, number = type(candidate).__name__, 2
            while name in named:
                name, number = f"{type(candidate).__name__} {number}", number + 1
            named[name] = candidate
        return named

    def _weigh(
        self, data: CalibrationData, lines: np.ndarray, folds: np.ndarray
    ) -> OutOfDomain:
        """Find the weights of the candidates, and those without each domain."""
        prior = self._prior()
        problem = LeftOutProblem(data, lines, folds, len(self.domains_))
        self.scores_ = problem.scores(self.metric)
        self.weights_ = self._combined(problem, prior, prior)
        self.status_ = "could not choose: fewer than two calibration domains"
        if len(self.domains_) and self.combine == "pick":
            self.status_ = f"picked {self.names_[self.weights_.argmax()]}"
        elif len(self.domains_):
            used = self.names_[self.weights_ > 0.005]
            self.status_ = f"stacked {', '.join(used)}"
        if not data.domains.is_source.any():
            self.status_ += "; no source_domain: no source-only candidate"
        temperature = np.full(len(data), np.nan)
        for number in range(len(self.domains_)):
            weights = self._combined(problem, prior, self.weights_, without=number)
            own = folds == number
            temperature[own] = np.exp(lines[own] @ weights)
        scale = np.where(folds < 0, 1.0, temperature)
        scores = score_rows(data.logits, data.labels, scale)
        return OutOfDomain(folds, self.domains_.tolist(), scores, temperature)

    def _combined(
        self,
        problem: "LeftOutProblem",
        prior: np.ndarray,
        start: np.ndarray,
        without: int | None = None,
    ) -> np.ndarray:
        """Return the weights by all left-out domains, or by all but one."""
        kept = np.arange(problem.n_folds) != without
        if self.combine == "stack":
            return problem.stack(prior, self.penalty, kept, start)
        return pick(self.scores_[:, kept]) if kept.any() else prior

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


class LeftOutProblem:
    """Log temperatures that candidates give to the rows of left-out domains.

    Parameters
    ----------
    data : CalibrationData
    lines : ndarray of shape (n_samples, n_candidates)
        Log T by copies that did not see the domain of the row.
    folds : ndarray of shape (n_samples,)
        Number of the left-out domain; -1 for rows that are never left out.
    n_folds : int
    """

    def __init__(
        self, data: CalibrationData, lines: np.ndarray, folds: np.ndarray, n_folds: int
    ):
        kept = np.flatnonzero(folds >= 0)
        self.rows, self.labels = data.rows.take(kept), data.labels[kept]
        self.lines, self.folds, self.n_folds = lines[kept], folds[kept], n_folds
        mass = data.row_shares[kept]
        # Domains count the same.
        self.shares = mass / np.bincount(self.folds, mass, n_folds)[self.folds]

    def scores(self, metric: Metric) -> np.ndarray:
        """Return the metric of every candidate on every left-out domain."""
        columns = [self._score(np.exp(line), metric) for line in self.lines.T]
        return np.reshape(columns, (self.lines.shape[1], self.n_folds))

    def _score(self, temperature: np.ndarray, metric: Metric) -> np.ndarray:
        logits, labels = self.rows.logits, self.labels
        each = [self.folds == number for number in range(self.n_folds)]
        if callable(metric):
            return np.array(
                [metric(labels[o], softmax(logits[o], temperature[o])) for o in each]
            )
        scored = score_rows(logits, labels, temperature)
        right = scored.predicted == labels
        if metric == "ece":
            confidence = scored.confidence
            return np.array(
                [expected_calibration_error(right[o], confidence[o]) for o in each]
            )
        of_rows = {
            "nll": scored.log_loss,
            "brier": scored.brier,
            "top_label_brier": np.square(scored.confidence - right),
        }
        if metric not in of_rows:
            raise ValueError(
                f"metric is {metric!r}; wanted 'nll', 'brier', 'top_label_brier', "
                "'ece' or a function (labels, probabilities) -> float"
            )
        return np.bincount(self.folds, self.shares * of_rows[metric], self.n_folds)

    def stack(
        self, prior: np.ndarray, penalty: float, kept: np.ndarray, start: np.ndarray
    ) -> np.ndarray:
        """Find the weights of smallest mean loss on some of the left-out domains.

        `penalty` / number of domains weighs the squared distance to `prior`: two
        domains say little about a third, so only clear differences move the weights.

        Parameters
        ----------
        prior, start : ndarray of shape (n_candidates,)
        penalty : float
        kept : ndarray of bool of shape (n_folds,)
        """
        count = int(kept.sum())
        if not count:
            return prior
        index = None if kept.all() else np.flatnonzero(kept[self.folds])
        pick_rows = slice(None) if index is None else index
        lines, shares = self.lines[pick_rows], self.shares[pick_rows] / count
        strength = penalty / count

        def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
            apart = weights - prior
            moments = row_moments(self.rows, np.exp(-lines @ weights), index)
            loss = strength * apart @ apart + shares @ moments.loss
            return float(loss), 2 * strength * apart - (shares * moments.score) @ lines

        found = minimize(
            objective,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(prior),
            constraints={
                "type": "eq",
                "fun": lambda weights: weights.sum() - 1,
                "jac": lambda weights: np.ones(len(weights)),
            },
            options={"maxiter": 50},
        )
        if not np.isfinite(found.x).all():
            return prior
        weights = np.clip(found.x, 0.0, 1.0)
        return weights / weights.sum()


def pick(scores: np.ndarray) -> np.ndarray:
    """Put all weight on the first candidate within one standard error of the best.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_domains)
        Candidates from simple to rich. The differences to the best in each domain
        count, not how difficult the domains are.

    Returns
    -------
    weights : ndarray of shape (n_candidates,)
    """
    best = scores[scores.mean(axis=1).argmin()]
    apart, count = scores - best, scores.shape[1]
    # One domain has no standard error: the best one there.
    error = apart.std(axis=1, ddof=1) / np.sqrt(count) if count > 1 else 0.0
    chosen = int(np.argmax(apart.mean(axis=1) <= error))
    return np.eye(len(scores))[chosen]
