"""A monitor of the rows that a calibrated classifier serves."""

import json
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Self

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from coolhead.calibrators.base import PredictionDetails
from coolhead.classifier.classifier import CalibratedClassifier
from coolhead.display import Summarised, Summary
from coolhead.monitor.expected import (
    COUNTS,
    Expected,
    count_batch,
    expect_confidence,
    expect_distances,
    find_served,
    no_counts,
)
from coolhead.monitor.verdict import DriftSignal, calibration_error, judge
from coolhead.numerics.checks import as_logits, check_domains, check_features
from coolhead.numerics.classes import (
    Names,
    check_names,
    class_positions,
    encode_labels,
    match_rows,
    order_columns,
)
from coolhead.shift.clusters import Clusters, find_regions

FORMAT_VERSION = 2
# One for all monitors, held for a few additions: a monitor with a lock of its own
# could not be pickled or copied.
_COUNTING = Lock()


@dataclass(frozen=True, eq=False, repr=False)
class DriftMonitor(Summarised):
    """Watches batches of predictions; states of several machines can be merged.

    Made by `for_calibrator`. Threads may share a monitor.

    Parameters
    ----------
    expected : Expected, default=Expected()
        What the calibration domains show. An alarm needs rows that are unlike every
        one of them.
    false_alarm_rate : float, default=0.01
        Largest chance of an alarm per call of `check` if the rows are like those of
        some calibration domain; shared between the kinds of finding. For repeated
        checks, divide the rate by their number.
    regions : Clusters, default=None
        Clusters to locate new features in, where the calibrator has none.
    counts : dict of str to ndarray, default=zeros
        The state.
    classes : tuple of str, default=None
        Names of the classes, for labels that are names.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains()
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.TemperatureEnsemble()
    >>> cal = cal.fit(seen.logits, seen.labels, features=seen.features)
    >>> monitor = ch.DriftMonitor.for_calibrator(cal, seen.features, seen.domains)
    >>> monitor.update(cal.details(unseen.logits, unseen.features + 20))   # far away
    >>> monitor.check().alarm
    True
    """

    expected: Expected = field(default_factory=Expected)
    false_alarm_rate: float = 0.01
    regions: Clusters | None = None
    counts: dict[str, Any] = field(default_factory=no_counts)
    classes: Names | None = None

    def __post_init__(self) -> None:
        if not 0 < self.false_alarm_rate < 1:
            raise ValueError(
                f"false_alarm_rate is {self.false_alarm_rate}; wanted a share between "
                "0 and 1"
            )

    def _summary(self) -> Summary:
        rows = f"{int(self._snapshot()['n_rows']):,} rows"
        return self.check()._summary()._replace(title=f"DriftMonitor: {rows}")

    @classmethod
    def for_calibrator(
        cls,
        calibrator: Any,
        features: Any = None,
        sample_domain: Any = None,
        *,
        logits: Any = None,
        labels: Any = None,
        served: Any = None,
        false_alarm_rate: float = 0.01,
    ) -> Self:
        """Make a monitor that expects what the calibration domains show.

        Parameters
        ----------
        calibrator : Calibrator or CalibratedClassifier
            Fitted. If its temperature does not depend on features, the monitor finds
            clusters of its own, and `update` needs `features`.
        features : array-like of shape (n_samples, n_features), default=None
            Of the rows it was fitted on; for a `CalibratedClassifier`, the X of its
            `fit`. Without features and logits, the monitor expects the evidence that
            the calibrator carries.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row.
        logits : array-like of shape (n_samples, n_classes), default=None
            Of the same rows: how confident the calibrated classifier is in each
            domain. Without logits, falling confidence raises no alarm. A
            `CalibratedClassifier` computes them, and uses them if its estimator did
            not learn from these rows.
        labels : array-like of shape (n_samples,), default=None
            How often it is right in each domain; without labels, labelled rows are
            compared with perfect calibration. For a `CalibratedClassifier`, its y.
        served : str or list of str, default=None
            Domains whose rows are expected every day. By default, rows may differ as
            much as each domain differs from the others, which is what was calibrated
            for. With `served`, rows unlike these domains raise an alarm, and the
            monitor detects far more.
        false_alarm_rate : float, default=0.01
            Largest chance of an alarm per check; see the class.
        """
        if hasattr(calibrator, "fit"):
            check_is_fitted(calibrator)
        classes, domains = getattr(calibrator, "class_names_", None), sample_domain
        if isinstance(calibrator, CalibratedClassifier):
            model, calibrator = calibrator, calibrator.calibrator_
            classes = check_names(model.classes_, "classes_")
            if features is not None:
                given = _unseen_rows(model, features, domains, labels)
                features, domains, logits, labels = given
        elif logits is not None and labels is None:
            logits, classes = order_columns(as_logits(logits), logits, classes)
        elif logits is not None:
            logits, labels, classes = match_rows(logits, labels, classes, as_logits)
        if features is None and logits is None:
            expected = _expected_by_evidence(calibrator)
            return cls(expected, false_alarm_rate, classes=classes)
        rows: Any = logits if features is None else features
        n_rows = len(rows)
        domains = np.zeros(n_rows, int) if domains is None else domains
        domains = check_domains(domains, n_rows)
        expected_again = find_served(domains, served)
        shown, regions = {}, None
        if features is not None:
            width = getattr(calibrator, "n_features_", None)
            features = check_features(features, n_rows, width)
            clusters = getattr(calibrator, "clusters_", None)
            if clusters is None:
                clusters = regions = find_regions(features)
            shown |= expect_distances(features, domains, clusters, expected_again)
        if logits is not None:
            rows = [logits, features, domains, labels]
            if expected_again is not None:
                rows = [None if part is None else part[expected_again] for part in rows]
            shown |= expect_confidence(calibrator, *rows)
        return cls(Expected(**shown), false_alarm_rate, regions, classes=classes)

    def update(
        self, details: PredictionDetails, labels: Any = None, *, features: Any = None
    ) -> None:
        """Count a batch; a batch that is refused is not counted at all.

        Parameters
        ----------
        details : PredictionDetails
            Result of `calibrator.details(logits, features)`.
        labels : array-like of shape (n_samples,), default=None
            Class numbers or names where they are known; -1, an empty string or a
            missing value for rows without.
        features : array-like of shape (n_samples, n_features), default=None
            For a monitor with `regions` of its own; others ignore them.
        """
        known = self.expected, self.regions, self.classes
        added = count_batch(details, labels, features, *known)
        with _COUNTING:
            for name, value in added.items():
                self.counts[name] = self.counts[name] + value

    def check(self) -> DriftSignal:
        """Compare the counts with what is expected."""
        return judge(self._snapshot(), self.expected, self.false_alarm_rate)

    @property
    def mean_confidence(self) -> float | None:
        """Mean confidence of all rows; None before the first."""
        counts = self._snapshot()
        n_rows = float(counts["n_rows"])
        return float(counts["confidence_sum"]) / n_rows if n_rows else None

    @property
    def expected_calibration_error(self) -> float | None:
        """ECE, 15 bins of equal width, of the labelled rows; None without any."""
        return calibration_error(self._snapshot())

    def merge(self, other: "DriftMonitor") -> "DriftMonitor":
        """Return the monitor that has counted the batches of both."""
        mine, theirs = self.to_dict(), other.to_dict()
        for name in ("expected", "false_alarm_rate", "regions", "classes"):
            if mine[name] != theirs[name]:
                raise ValueError(
                    f"{name} is {str(mine[name])[:60]} in one monitor and "
                    f"{str(theirs[name])[:60]} in the other; wanted the same"
                )
        counts, others = self._snapshot(), other._snapshot()
        both = {name: counts[name] + others[name] for name in COUNTS}
        return replace(self, counts=both)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and counts as JSON values."""
        counts = self._snapshot()
        return {
            "format_version": FORMAT_VERSION,
            "expected": self.expected.to_dict(),
            "false_alarm_rate": self.false_alarm_rate,
            "regions": None if self.regions is None else _plain(self.regions),
            "classes": None if self.classes is None else list(self.classes),
            "counts": {name: np.asarray(counts[name]).tolist() for name in COUNTS},
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Restore a monitor from what `to_dict` gave."""
        try:
            if state["format_version"] != FORMAT_VERSION:
                raise ValueError(f"format_version is {state['format_version']}")
            counts = {name: np.array(state["counts"][name], float) for name in COUNTS}
            if any(counts[name].shape != shape for name, shape in COUNTS.items()):
                raise ValueError("counts of another length")
            expected = Expected.from_dict(state["expected"])
            regions = None if state["regions"] is None else _regions(state["regions"])
            classes = state.get("classes")  # absent from states of version 0.2
            classes = None if classes is None else tuple(map(str, classes))
            return cls(expected, state["false_alarm_rate"], regions, counts, classes)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            shown = json.dumps(state, default=str)[:80]
            raise ValueError(
                f"no state of a DriftMonitor ({error}): {shown}; wanted what to_dict "
                f"gave, format {FORMAT_VERSION}"
            ) from error

    def _snapshot(self) -> dict[str, Any]:
        """Return the counts at one moment: arrays are replaced, never changed."""
        with _COUNTING:
            return dict(self.counts)


def _expected_by_evidence(calibrator: Any) -> Expected:
    shown = getattr(getattr(calibrator, "evidence_", None), "shown", None)
    if shown is None:
        raise ValueError(
            "features and logits are missing, and the calibrator carries no evidence; "
            "wanted features (n, d), logits (n, k), or both, of the rows it was fitted "
            "on"
        )
    return Expected.of_evidence(shown)


def _plain(regions: Clusters) -> dict[str, Any]:
    # Regions that a monitor finds itself are never scaled.
    return {"centers": regions.centers.tolist(), "radii": regions.radii.tolist()}


def _regions(state: dict[str, Any]) -> Clusters:
    centers = np.array(state["centers"], float)
    radii = np.array(state["radii"], float)
    if centers.ndim != 2 or radii.shape != centers.shape[:1]:
        raise ValueError("regions of another shape")
    return Clusters(centers, radii, None, None, None)


def _unseen_rows(model: CalibratedClassifier, X: Any, domains: Any, labels: Any) -> Any:
    """Return features, domains, logits and columns of labels for a classifier.

    Rows that its estimator learned from are left out, because it is more confident
    there than anywhere else. Where it learned from all rows, only the features count.
    """
    if model.source is not None:
        if domains is None:
            raise ValueError(
                "sample_domain is missing; wanted that of the classifier's fit, whose "
                f"source is {model.source}"
            )
        kept = np.flatnonzero(~np.isin(domains, model.source))
        X, domains = _safe_indexing(X, kept), np.asarray(domains)[kept]
        labels = None if labels is None else np.asarray(labels)[kept]
    features = model.features_of(X)
    if model.source is None and not isinstance(model.estimator_, FrozenEstimator):
        return features, domains, None, None
    logits, _ = model._query(X)
    if labels is not None:
        names = check_names(model.classes_, "classes_")
        codes, _ = encode_labels(labels, len(names), len(logits), names)
        labels = class_positions(model.classes_, model.calibrated_classes)[codes]
    return features, domains, logits, labels
