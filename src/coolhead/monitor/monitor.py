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


@dataclass(frozen=True, eq=False)
class DriftMonitor:
    """Watches batches of predictions; states of several machines can be merged.

    Made by `for_calibrator`. Threads may share a monitor.

    Parameters
    ----------
    expected : what the calibration domains show. An alarm needs rows that are unlike
        every one of them.
    false_alarm_rate : chance of an alarm per call of `check`, at most, if the rows are
        like those of some calibration domain; shared between the kinds of finding.
        Who checks often divides it by the number of checks.
    regions : clusters to look for new features in, where the calibrator has none.
    counts : the state; starts empty.
    classes : names of the classes, for labels that are names; None without.

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
    counts: dict[str, Any] = field(default_factory=no_counts, repr=False)
    classes: Names | None = None

    def __post_init__(self) -> None:
        if not 0 < self.false_alarm_rate < 1:
            raise ValueError(
                f"false_alarm_rate is {self.false_alarm_rate}; wanted a share between "
                "0 and 1"
            )

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
        """A monitor that expects what the calibration domains show.

        Parameters
        ----------
        calibrator : fitted. If its temperature does not depend on features, the
            monitor finds clusters of its own, and `update` needs `features`.
        features, sample_domain : (n, d) and (n,) that it was fitted on. For a
            `CalibratedClassifier`, features are the X of its `fit`. Without features
            and logits, the evidence that the calibrator carries is expected.
        logits, labels : (n, k) and (n,) of the same rows: how sure, and how often
            right, the calibrated classifier is in each domain. Without logits, falling
            confidence raises no alarm; without labels, labelled rows are compared with
            perfect calibration. For a `CalibratedClassifier`, labels are its y, and
            logits are its own; they count if its estimator did not learn from them.
        served : name or names of the domains whose rows are expected every day. By
            default none is: then rows may be as strange as each domain is to the
            others, which is what was calibrated for, and only stranger ones raise an
            alarm. Named, other rows than theirs raise it, and it sees far more.
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
        n_rows = next((len(a) for a in (features, logits) if a is not None), None)
        if n_rows is None:
            shown = getattr(getattr(calibrator, "evidence_", None), "shown", None)
            if shown is None:
                raise ValueError(
                    "features and logits are missing, and the calibrator carries no "
                    "evidence; wanted features (n, d), logits (n, k), or both, of the "
                    "rows it was fitted on"
                )
            expected = Expected.of_evidence(shown)
            return cls(expected, false_alarm_rate, classes=classes)
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
            rows: Any = (logits, features, domains, labels)
            if expected_again is not None:
                rows = [None if part is None else part[expected_again] for part in rows]
            shown |= expect_confidence(calibrator, *rows)
        return cls(Expected(**shown), false_alarm_rate, regions, classes=classes)

    def update(
        self, details: PredictionDetails, labels: Any = None, *, features: Any = None
    ) -> None:
        """Count a batch, given what `calibrator.details(logits, features)` returned.

        A batch that is refused is not counted at all.

        labels : (n,) class numbers or names where they are known; -1, an empty string
            or a missing value for rows without.
        features : (n, d); for a monitor with `regions` of its own, else not looked at.
        """
        known = self.expected, self.regions, self.classes
        added = count_batch(details, labels, features, *known)
        with _COUNTING:
            for name, value in added.items():
                self.counts[name] = self.counts[name] + value

    def check(self) -> DriftSignal:
        """Compare what was counted with what is expected; see `DriftSignal`."""
        return judge(self._snapshot(), self.expected, self.false_alarm_rate)

    @property
    def mean_confidence(self) -> float | None:
        """Mean confidence of all rows, None before the first."""
        counts = self._snapshot()
        n_rows = float(counts["n_rows"])
        return float(counts["confidence_sum"]) / n_rows if n_rows else None

    @property
    def expected_calibration_error(self) -> float | None:
        """ECE (15 bins of equal width) of the labelled rows, None without any."""
        return calibration_error(self._snapshot())

    def merge(self, other: "DriftMonitor") -> "DriftMonitor":
        """The monitor that has seen the batches of both."""
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
        """Settings and counts as JSON values."""
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
        """The inverse of `to_dict`."""
        try:
            if state["format_version"] != FORMAT_VERSION:
                raise ValueError(f"format_version is {state['format_version']}")
            counts = {name: np.array(state["counts"][name], float) for name in COUNTS}
            if any(counts[name].shape != shape for name, shape in COUNTS.items()):
                raise ValueError("counts of another length")
            expected = Expected.from_dict(state["expected"])
            regions = None if state["regions"] is None else _regions(state["regions"])
            classes = state.get("classes")  # which version 0.2 did not have
            classes = None if classes is None else tuple(map(str, classes))
            return cls(expected, state["false_alarm_rate"], regions, counts, classes)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            shown = json.dumps(state, default=str)[:80]
            raise ValueError(
                f"no state of a DriftMonitor ({error}): {shown}; wanted what to_dict "
                f"gave, format {FORMAT_VERSION}"
            ) from error

    def _snapshot(self) -> dict[str, Any]:
        """The counts at one moment: arrays are replaced, never changed."""
        with _COUNTING:
            return dict(self.counts)


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
    """Features, domains, logits and columns of labels of the rows of a classifier.

    The rows its estimator learned from are left out: it is more confident there than
    anywhere else. Where it learned from all rows, only the features are used.
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
