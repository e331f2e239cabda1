"""Is this still the data that was calibrated for? Counts that never grow."""

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from coolhead.calibrators.base import PredictionDetails
from coolhead.metrics.bins import equal_width_index
from coolhead.shift.clusters import RADIUS_QUANTILE, partition_features

N_BINS = 15
# Quarter octaves from 2^-20 to 2^20; the first and last bin hold what lies beyond.
TEMPERATURE_EDGES = 2.0 ** np.arange(-20, 20.25, 0.25)
FORMAT_VERSION = 1
COUNTS = {
    "n_rows": (),
    "n_checked": (),
    "n_outside": (),
    "confidence_sum": (),
    "temperature_counts": (len(TEMPERATURE_EDGES) + 1,),
    "bin_counts": (N_BINS,),
    "bin_confidence": (N_BINS,),
    "bin_correct": (N_BINS,),
}


class DriftSignal(NamedTuple):
    """What a monitor concludes: `alarm`, the evidence, and a sentence by `str`."""

    alarm: bool
    p_value: float
    share_outside: float
    expected_outside: float
    n_rows: int

    def __str__(self) -> str:
        found = (
            f"{self.share_outside:.1%} of {self.n_rows} rows lie outside the "
            f"calibration data, at most {self.expected_outside:.1%} expected "
            f"(p = {self.p_value:.2g})"
        )
        if self.alarm:
            return f"this is not the data you calibrated for: {found}"
        return f"no sign of other data than was calibrated for: {found}"


def _empty() -> dict[str, np.ndarray]:
    return {name: np.zeros(shape) for name, shape in COUNTS.items()}


@dataclass(frozen=True, eq=False)
class DriftMonitor:
    """Watches batches of predictions; states of several machines can be merged.

    Parameters
    ----------
    expected_outside : share of rows outside the calibration data that a new domain
        may show without alarm, from `left_out_shares`; its largest value keeps quiet
        for every domain that lies no further out than the calibration domains do
        from each other.
    false_alarm_rate : chance of an alarm per call of `check` if the true share is
        `expected_outside`, at most. Who checks often divides it by the number of
        checks.
    counts : the state; starts empty.
    """

    expected_outside: float = 1 - RADIUS_QUANTILE
    false_alarm_rate: float = 0.01
    counts: dict[str, np.ndarray] = field(default_factory=_empty)

    def __post_init__(self) -> None:
        for name in ("expected_outside", "false_alarm_rate"):
            value = getattr(self, name)
            if not 0 <= value < 1 or (name == "false_alarm_rate" and value == 0):
                raise ValueError(f"{name} is {value}; wanted a share between 0 and 1")

    @classmethod
    def for_calibrator(
        cls,
        calibrator: Any,
        features: Any,
        sample_domain: Any,
        *,
        false_alarm_rate: float = 0.01,
    ) -> Self:
        """A monitor that expects what left-out calibration domains show.

        features, sample_domain : (n, d) and (n,) that `calibrator` was fitted on.
        """
        clusters = getattr(calibrator, "clusters_", None)
        if clusters is None:
            raise ValueError(
                f"{type(calibrator).__name__} has no clusters, so it cannot tell what "
                "lies outside the calibration data; wanted a cluster calibrator"
            )
        shares = left_out_shares(
            features,
            sample_domain,
            n_clusters=len(clusters.centers),
            scaling=clusters.scaling,
        )
        return cls(max(shares.values(), default=1 - RADIUS_QUANTILE), false_alarm_rate)

    def update(self, details: PredictionDetails, labels: Any = None) -> None:
        """Count a batch, given what `calibrator.details(logits, features)` returned.

        labels : (n,) class indices where they are known; -1 for rows without.
        """
        confidence = details.probabilities.max(axis=1).astype(np.float64)
        counts = self.counts
        counts["n_rows"] += len(confidence)
        counts["confidence_sum"] += confidence.sum()
        if details.temperature is not None:
            places = np.searchsorted(TEMPERATURE_EDGES, details.temperature, "right")
            counts["temperature_counts"] += np.bincount(
                places, minlength=len(TEMPERATURE_EDGES) + 1
            )
        if details.covered is not None:
            counts["n_checked"] += len(details.covered)
            counts["n_outside"] += np.count_nonzero(~details.covered)
        if labels is not None:
            self._count_labelled(details.probabilities, confidence, np.asarray(labels))

    def _count_labelled(
        self, probabilities: np.ndarray, confidence: np.ndarray, labels: np.ndarray
    ) -> None:
        if labels.shape != confidence.shape:
            raise ValueError(
                f"labels has shape {labels.shape}; wanted ({len(confidence)},)"
            )
        known = labels >= 0
        if not known.any():
            return
        correct = (probabilities.argmax(axis=1) == labels)[known]
        index = equal_width_index(confidence[known], N_BINS)
        sums = {"counts": None, "confidence": confidence[known], "correct": correct}
        for name, weights in sums.items():
            self.counts[f"bin_{name}"] += np.bincount(index, weights, N_BINS)

    def check(self) -> DriftSignal:
        """One-sided exact binomial test of the share outside."""
        from scipy.stats import binomtest

        outside, checked = (int(self.counts[n]) for n in ("n_outside", "n_checked"))
        if checked == 0:
            return DriftSignal(False, 1.0, 0.0, self.expected_outside, 0)
        test = binomtest(outside, checked, self.expected_outside, "greater")
        return DriftSignal(
            bool(test.pvalue < self.false_alarm_rate),
            float(test.pvalue),
            outside / checked,
            self.expected_outside,
            checked,
        )

    @property
    def mean_confidence(self) -> float | None:
        """Mean confidence of all rows, None before the first."""
        n_rows = float(self.counts["n_rows"])
        return float(self.counts["confidence_sum"]) / n_rows if n_rows else None

    @property
    def expected_calibration_error(self) -> float | None:
        """ECE (15 bins of equal width) of the labelled rows, None without any."""
        labelled = float(self.counts["bin_counts"].sum())
        gaps = self.counts["bin_correct"] - self.counts["bin_confidence"]
        return float(np.abs(gaps).sum()) / labelled if labelled else None

    def merge(self, other: "DriftMonitor") -> "DriftMonitor":
        """The monitor that has seen the batches of both."""
        mine = (self.expected_outside, self.false_alarm_rate)
        theirs = (other.expected_outside, other.false_alarm_rate)
        if mine != theirs:
            raise ValueError(
                f"the monitors expect {mine} and {theirs} as share outside and false "
                "alarm rate; wanted the same"
            )
        both = {name: self.counts[name] + other.counts[name] for name in COUNTS}
        return DriftMonitor(*mine, both)

    def to_dict(self) -> dict[str, Any]:
        """Settings and counts as JSON values."""
        return {
            "format_version": FORMAT_VERSION,
            "expected_outside": self.expected_outside,
            "false_alarm_rate": self.false_alarm_rate,
            "counts": {name: value.tolist() for name, value in self.counts.items()},
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
            return cls(state["expected_outside"], state["false_alarm_rate"], counts)
        except (KeyError, TypeError, ValueError) as error:
            shown = json.dumps(state, default=str)[:80]
            raise ValueError(
                f"no state of a DriftMonitor ({error}): {shown}; wanted what to_dict "
                f"gave, format {FORMAT_VERSION}"
            ) from error


def left_out_shares(
    features: Any,
    sample_domain: Any,
    *,
    n_clusters: int = 8,
    scaling: str | None = None,
    max_rows: int = 5000,
    random_state: int = 0,
) -> dict[str, float]:
    """Share outside that each domain shows when the others are the calibration data.

    features, sample_domain : (n, d) and (n,)
    n_clusters, scaling : of the clusters, as in the calibrator.
    max_rows : rows used of each domain, drawn at random beyond that.

    One domain alone cannot be left out: then the result is empty.
    """
    features, domains = np.asarray(features), np.asarray(sample_domain)
    rng = np.random.default_rng(random_state)
    picked = {
        name: np.sort(rng.permutation(np.flatnonzero(domains == name))[:max_rows])
        for name in np.unique(domains)
    }
    shares = {}
    for name, own in picked.items():
        others = [rows for other, rows in picked.items() if other != name]
        if not others:
            return {}
        known = features[np.concatenate(others)]
        count = min(n_clusters, len(np.unique(known, axis=0)))
        regions = partition_features(
            known, count, n_init=1, scaling=scaling, random_state=random_state
        ).clusters
        nearest, distance = regions.assign(features[own])
        shares[str(name)] = float(np.mean(distance > regions.radii[nearest]))
    return shares
