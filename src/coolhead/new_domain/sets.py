"""Conformal scores of labelled rows, and the sets they lead to, block by block."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.calibrators.evidence import SCORES, class_scores
from coolhead.display import Summarised, Summary
from coolhead.numerics.blocks import row_blocks


def members(
    logits: np.ndarray, temperature: np.ndarray, kind: str, limit: float
) -> np.ndarray:
    """Return True for the classes of each row's set; the likeliest is always in."""
    found = np.empty(logits.shape, bool)
    for rows in row_blocks(*logits.shape):
        scores = class_scores(logits[rows], temperature[rows], kind)
        np.less_equal(scores, limit, out=found[rows])
        found[rows][np.arange(len(scores)), scores.argmin(axis=1)] = True
    return found


PROMISES = ("pooled", "every_domain", "new_domain")


@dataclass(frozen=True, repr=False)
class PredictionSets(Summarised):
    """Classes that hold the true one with a promised probability.

    Attributes
    ----------
    members : ndarray of bool of shape (n_samples, n_classes)
        True where a class belongs to the row's set; columns as in `predict_proba`.
    coverage : float
        Promised share of rows whose set holds the true class.
    promise : {"pooled", "every_domain", "new_domain"}
        For rows like the pooled calibration rows; for rows of each calibration domain
        by itself; for a row of a domain drawn like the calibration domains were.
    score : {"lac", "aps"}
    limit : float
        Largest conformal score of a class in a set.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.5, 2.0, 1.5])
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureScaling().fit(seen.logits, seen.labels)
    >>> known = ch.new_domain.learn_evidence(
    ...     cal, seen.logits, seen.labels, sample_domain=seen.domains
    ... )
    >>> sets = ch.NewDomain(cal, unseen.logits, evidence=known).sets(0.7)
    >>> sets.members.shape, sets.coverage
    ((300, 3), 0.7)
    """

    members: np.ndarray
    coverage: float
    promise: str
    score: str
    limit: float

    @property
    def sizes(self) -> np.ndarray:
        """Number of classes in each set, (n_samples,)."""
        return self.members.sum(axis=1)

    def _summary(self) -> Summary:
        n_rows, n_classes = self.members.shape
        sizes = f"{n_rows:,} rows, {n_classes} classes"
        return Summary(f"PredictionSets of {sizes}: {self}")

    def __str__(self) -> str:
        return (
            f"sets of {self.sizes.mean():.2f} classes on average that hold the true "
            f"one in {self.coverage:.0%} of the rows ({self.promise}, {self.score})"
        )


def find_limit(known: Any, score: str, coverage: float, promise: str) -> float:
    """Return the `score_limit` of a calibrator's evidence."""
    if score not in SCORES:
        raise ValueError(f"score is {score!r}; wanted one of {', '.join(SCORES)}")
    if known is None:
        raise ValueError(
            "sets need conformal scores of labelled domains, but the calibrator "
            "was fitted without evidence; wanted evidence=learn_evidence(...)"
        )
    return score_limit(known.scores[score], known.score_domains, coverage, promise)


def score_limit(
    scores: np.ndarray, domains: np.ndarray, coverage: float, promise: str
) -> float:
    """Return the largest conformal score of a class in a set.

    Parameters
    ----------
    scores, domains : ndarray of shape (n_scores,)
        Of labelled calibration rows.
    coverage : float
    promise : {"pooled", "every_domain", "new_domain"}
    """
    if promise not in PROMISES:
        raise ValueError(f"promise is {promise!r}; wanted one of {', '.join(PROMISES)}")
    if not 0 < coverage < 1:
        raise ValueError(f"coverage is {coverage}; wanted a share between 0 and 1")
    names, codes = np.unique(domains, return_inverse=True)
    if promise == "pooled":
        return _quantile(scores, np.full(len(scores), 1 / (len(scores) + 1)), coverage)
    if promise == "every_domain":
        return max(
            _quantile(part, np.full(len(part), 1 / (len(part) + 1)), coverage)
            for part in (scores[codes == code] for code in range(len(names)))
        )
    needed = domains_needed(coverage)
    if len(names) < needed:
        raise ValueError(
            f"promise 'new_domain' at coverage {coverage:g} needs {needed} left-out "
            f"domains, found {len(names)}; wanted more domains, a coverage of at most "
            f"{len(names) / (len(names) + 1):.2f}, or promise='every_domain'"
        )
    # The unseen domain is one more, whose scores may be anything (Dunn et al. 2023).
    sizes = np.bincount(codes)
    return _quantile(scores, 1 / sizes[codes] / (len(names) + 1), coverage)


def domains_needed(coverage: float) -> int:
    """Return the smallest number of domains m with m / (m + 1) >= coverage."""
    return int(np.ceil(coverage / (1 - coverage) - 1e-9))


def _quantile(scores: np.ndarray, mass: np.ndarray, coverage: float) -> float:
    """Return the smallest score with `coverage` below it; infinite without one."""
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(mass[order])
    at = int(np.searchsorted(below, coverage - 1e-12))
    return float(scores[order[at]]) if at < len(scores) else np.inf
