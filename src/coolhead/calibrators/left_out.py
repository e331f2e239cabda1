"""Calibration domains left out once each: the one place that makes such fits.

Selection between candidates, the warning of harm, the evidence for new domains and the
expectation of a monitor all rest on the result.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from coolhead.calibrators.class_offsets import ClassOffsets, add_offsets
from coolhead.calibrators.data import (
    SMALLEST_DOMAIN,
    CalibrationData,
    Domains,
    fit_with,
    fresh,
    leave_one_out,
)
from coolhead.metrics.scored import score_calibrated
from coolhead.numerics.softmax import RowScores, log_loss_rows, score_rows
from coolhead.shift.clusters import REGION_ROWS, Clusters, find_regions, locate

# Largest share of harmed domains, at 90 % certainty, that rules harm out.
HARM_LIMIT = 0.25


class OutOfDomain(NamedTuple):
    """Rows of calibration domains, as fits without these domains calibrate them.

    Attributes
    ----------
    folds : ndarray of shape (n_samples,)
        Number of the fit that did not see the row; -1 for a row that every fit saw.
    names : list of str
        The domain, or the domains, that each fit did not see.
    scores : RowScores
        Vectors of shape (n_samples,); meaningless where `folds` is -1.
    temperature : ndarray of shape (n_samples,) or None
        None for methods that change the scores otherwise.
    class_offsets : ClassOffsets, default=None
        Those of all domains together, and of each fit.
    """

    folds: np.ndarray
    names: list[str]
    scores: RowScores
    temperature: np.ndarray | None
    class_offsets: ClassOffsets | None = None

    def add_class_offsets(
        self, learned: ClassOffsets, data: CalibrationData
    ) -> "OutOfDomain":
        """Return the same rows with the class offsets of the fit without them."""
        changed = self._replace(class_offsets=learned)
        if self.temperature is None or not len(learned.left_out) or not learned.share:
            return changed
        left_out = self.folds >= 0
        temperature = np.where(left_out, self.temperature, 1.0)
        logits = add_offsets(data.logits, temperature, learned.left_out[self.folds])
        return changed._replace(scores=score_rows(logits, data.labels, temperature))


def leave_domains_out(calibrator: Any, data: CalibrationData) -> OutOfDomain:
    """Fit copies of a calibrator without each domain, and score that domain by them.

    Many domains are left out in ten groups. The source is never left out.
    """
    empty = np.full(len(data), np.nan)
    found = RowScores(empty, np.zeros(len(data), np.intp), empty.copy(), empty.copy())
    temperature, folds = empty.copy(), np.full(len(data), -1)
    names, has_temperature = [], True
    for number, (name, outside) in enumerate(leave_one_out(data.domains)):
        rows = data.take(outside)
        with warnings.catch_warnings():
            # The fit on all rows has already emitted these warnings.
            warnings.simplefilter("ignore", UserWarning)
            fitted = fit_copy(calibrator, data.take(~outside))
        scored = score_calibrated(fitted, rows.logits, rows.labels, rows.features)
        for column, values in zip(found, scored.rows, strict=True):
            column[outside] = values
        has_temperature = scored.temperature is not None
        if scored.temperature is not None:
            temperature[outside] = scored.temperature
        folds[outside] = number
        names.append(name)
    return OutOfDomain(folds, names, found, temperature if has_temperature else None)


def fit_copy(calibrator: Any, data: CalibrationData, *, of_source: bool = False) -> Any:
    """Fit a copy on the rows that concern it.

    Rows of the source reach only calibrators that distinguish them from others, since
    the target will not be the source; unless the other rows are too few for a fit.

    Parameters
    ----------
    calibrator : Calibrator
    data : CalibrationData
    of_source : bool, default=False
        Fit on the rows of the source alone.
    """
    source = data.domains.source_rows
    if of_source:
        data = data.take(source)
    elif "source" not in getattr(calibrator, "takes", ()) and source.any():
        data = data.take(~source) if (~source).sum() >= SMALLEST_DOMAIN else data
    copy = fresh(calibrator)
    learn = getattr(copy, "fit_part", None)
    return fit_with(copy, data) if learn is None else learn(data)


class LossChange(NamedTuple):
    """Mean loss of groups of rows before and after calibration, vectors (n_groups,).

    Attributes
    ----------
    before, after : ndarray
    error : ndarray
        Standard error of their difference.
    """

    before: np.ndarray
    after: np.ndarray
    error: np.ndarray


def loss_changes(
    data: CalibrationData, losses: np.ndarray, codes: np.ndarray, n_groups: int
) -> LossChange:
    """Compare losses of groups of rows with those of the uncalibrated classifier.

    Parameters
    ----------
    data : CalibrationData
    losses : ndarray of shape (n_samples,)
        After calibration.
    codes : ndarray of shape (n_samples,)
        Group of each row, -1 for rows of none.
    n_groups : int
    """
    kept = np.flatnonzero(codes >= 0)
    codes, shares = codes[kept], data.row_shares[kept]
    shares = shares / np.bincount(codes, shares, n_groups)[codes]
    part = data.rows.take(kept)
    before = log_loss_rows(part.logits, data.labels[kept], 1.0)
    gain = before - losses[kept]
    mean = np.bincount(codes, shares * gain, n_groups)
    with np.errstate(over="ignore"):
        squares = np.square(shares * (gain - mean[codes]))
        error = np.sqrt(np.bincount(codes, squares, n_groups))
    means = np.bincount(codes, shares * before, n_groups)
    return LossChange(means, means - mean, error)


def warn_of_harm(
    data: CalibrationData, found: OutOfDomain, *, stacklevel: int = 2
) -> list[str]:
    """Warn where left-out domains were better off uncalibrated; return their names.

    Better means a loss lower by more than two standard errors of the paired difference.
    """
    n_folds = len(found.names)
    if not n_folds:
        return []
    change = loss_changes(data, found.scores.log_loss, found.folds, n_folds)
    worse = np.flatnonzero(change.before - change.after < -2 * change.error)
    if len(worse):
        listed = ", ".join(
            f"{found.names[i]} (NLL {change.before[i]:.3f} → {change.after[i]:.3f})"
            for i in worse
        )
        warnings.warn(
            f"{len(worse)} of {n_folds} domains, left out of the fit, were better off "
            f"uncalibrated: {listed}; a new domain may be, too",
            stacklevel=stacklevel + 1,
        )
    return [found.names[i] for i in worse]


def note_harm(data: CalibrationData, found: OutOfDomain, harmed: list[str]) -> str:
    """Return how much left-out domains vary, and whether harm can be ruled out.

    It cannot where the 90 % limit of the share of harmed domains (Clopper and Pearson)
    is above `HARM_LIMIT`, or where left-out domains do not differ beyond noise: they
    then say nothing about a domain that does.
    """
    n_folds = len(found.names)
    if not n_folds:
        return "no domain was left out: harm in a new domain cannot be ruled out"
    change = loss_changes(data, found.scores.log_loss, found.folds, n_folds)
    apart = change.after - change.before
    note = (
        f"NLL of {n_folds} left-out domains changes by {apart.min():+.3f} to "
        f"{apart.max():+.3f}"
    )
    count = len(harmed)
    limit = betaincinv(count + 1, n_folds - count, 0.9) if count < n_folds else 1.0
    if limit > HARM_LIMIT:
        return (
            f"{note}, {count} are harmed: harm in a new domain cannot be ruled out, up "
            f"to {100 * limit:.0f} % of such domains may be harmed"
        )
    if np.ptp(apart) <= 2 * change.error.max():
        return f"{note}, they are alike: harm in another domain cannot be ruled out"
    return note


def left_out_distances(
    features: np.ndarray, domains: Domains, clusters: Clusters
) -> dict[str, np.ndarray]:
    """Measure how many radii each domain lies from regions of the other domains.

    Fewer than two domains cannot be left out; then each fifth of the rows is.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    domains : Domains
    clusters : Clusters
        Those of the fit; regions are found like them.

    Returns
    -------
    distances : dict of str to ndarray
        Of at most 5000 rows of each domain.
    """
    rng, found = np.random.default_rng(0), {}
    for _, outside in leave_one_out(domains):
        regions = regions_like(clusters, features[~outside])
        own = rng.permutation(np.flatnonzero(outside))
        # Domains that are left out together are measured by themselves.
        for code in np.unique(domains.codes[own]):
            rows = own[domains.codes[own] == code][:REGION_ROWS]
            found[str(domains.names[code])] = locate(regions, features[rows])[1]
    if found:
        return found
    everyone = np.ones(len(features), bool)
    return {"all": held_out_distances(features, everyone, clusters)}


def held_out_distances(
    features: np.ndarray, own: np.ndarray, clusters: Clusters
) -> np.ndarray:
    """Measure how many radii rows lie from regions found with other rows like them.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    own : ndarray of bool of shape (n_samples,)
        Rows to measure. Each fifth of them, drawn at random, is left out once, and at
        most 5000 of it are measured.
    clusters : Clusters
        Those of the fit; regions are found like them.
    """
    rng, distances = np.random.default_rng(0), []
    for part in np.array_split(rng.permutation(np.flatnonzero(own)), 5):
        rest = np.delete(features, part, axis=0)
        if len(part) and len(rest):
            regions = regions_like(clusters, rest)
            distances.append(locate(regions, features[part[:REGION_ROWS]])[1])
    return np.concatenate(distances)


def regions_like(clusters: Clusters, features: np.ndarray) -> Clusters:
    """Find regions of other rows in the manner of the clusters of a fit."""
    return find_regions(
        features, n_clusters=len(clusters.centers), scaling=clusters.scaling
    )
