"""One record of calibration data, checked once, and one way to fit on it.

Every path ends here: `fit` of a calibrator, the scikit-learn wrapper, the command
line, the sweep, selection by domain, two stages, Dask.
"""

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from coolhead.calibrators.domains import Domains, find_domains
from coolhead.calibrators.target import Target, check_target, within_reach
from coolhead.numerics.checks import (
    as_logits,
    check_domains,
    check_features,
    check_labels,
    check_weights,
)
from coolhead.numerics.class_names import column_names
from coolhead.numerics.moments import Rows, summarise_rows
from coolhead.numerics.solution import Solution
from coolhead.numerics.temperature import solve_temperatures
from coolhead.shift import clusters
from coolhead.shift.clusters import Clusters, Partition
from coolhead.shift.ratio import DensityRatio, density_ratio

# What a calibrator may take beside logits, labels, domains and weights.
KINDS = ("features", "source", "reference", "target")
_DOMAINS = ("temperatures of domains",)


@dataclass(frozen=True, eq=False)
class CalibrationData:
    """Labelled rows of the calibration domains and what is known around them.

    Made by `CalibrationData.of`, which checks every array once; nothing behind it
    checks again.

    Attributes
    ----------
    rows : the logits (n, k) with what the solver needs of each row.
    labels : (n,) class indices.
    features : (n, d), or None.
    domains : names of the domains, the domain of each row, which are the source.
    domains_known : False where no domain was named and all rows count as one.
    weights : (n,) >= 0, or None.
    reference : (r, d) features of rows the classifier was trained on, or None.
    target : unlabelled rows of the target, or None. Only a calibrator that takes
        "target" ever sees them.
    find_partition : how k-means is run; a sweep looks into a folder first.
    memo : temperatures, clusters, regions and density ratios found so far, so that
        methods fitted on the same record share them.
    row_memo : the same for what was found of each row, which holds of fewer rows, too.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 2.0])
    >>> record = ch.calibrators.CalibrationData.of(
    ...     data.logits, data.labels, sample_domain=data.domains
    ... )
    >>> len(record), record.domains_known, record.features is None
    (600, True, True)
    """

    rows: Rows
    labels: np.ndarray
    features: Any = None
    domains: Domains = field(default_factory=lambda: find_domains(None, None, 0))
    domains_known: bool = False
    weights: np.ndarray | None = None
    reference: np.ndarray | None = None
    target: Target | None = None
    find_partition: Callable[..., Partition] = field(
        default=clusters.partition_features, repr=False
    )
    memo: dict = field(default_factory=dict, repr=False)
    row_memo: dict[Hashable, np.ndarray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        features: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
        source_domain: Any = None,
        reference_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        target_features: ArrayLike | None = None,
        target_logits: ArrayLike | None = None,
    ) -> Self:
        """Check every argument; the names are those of `fit`.

        Parameters
        ----------
        logits, labels : (n, k), or (n,) binary scores, and (n,) class indices, or
            names of classes: the columns of a frame or, of an array, as scikit-learn
            sorts them.
        features : (n, d)
        sample_domain : (n,) domain of each row.
        source_domain : name or names in `sample_domain` of held-out source rows.
        reference_features : (r, d) features of rows the classifier was trained on.
        sample_weight : (n,) >= 0
        target_features, target_logits : (m, d) and (m, k) of unlabelled target rows.
        """
        array = as_logits(logits)
        n_rows, n_classes = array.shape
        if labels is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: labels are "
                f"missing; wanted one class index per row, ({n_rows},)"
            )
        labels = check_labels(labels, n_classes, n_rows, column_names(logits))
        weights = check_weights(sample_weight, n_rows)
        known = sample_domain is not None
        names = check_domains(sample_domain, n_rows) if known else None
        domains = find_domains(names, source_domain, n_rows)
        if features is not None:
            features = within_reach(check_features(features, n_rows), "features")
        width = None if features is None else features.shape[1]
        if reference_features is not None:
            name = "reference_features"
            rows = check_features(reference_features, None, width, name)
            reference_features = within_reach(rows, name)
        return cls(
            summarise_rows(array, labels, scores=np.ndim(logits) == 1),
            labels,
            features,
            domains,
            known,
            weights,
            reference_features,
            check_target(target_features, target_logits, width, n_classes),
        )

    @property
    def logits(self) -> np.ndarray:
        """(n, k)"""
        return self.rows.logits

    @property
    def n_classes(self) -> int:
        """k"""
        return self.rows.whole.shape[1]

    @property
    def sample_domain(self) -> np.ndarray:
        """(n,) name of each row's domain."""
        return self.domains.names[self.domains.codes]

    @property
    def source_domain(self) -> list | None:
        """Names of the source domains, None where there are none."""
        return self.domains.names[self.domains.is_source].tolist() or None

    @property
    def row_shares(self) -> np.ndarray:
        """(n,) weights that sum to one, equal where none were given."""
        weights = np.ones(len(self)) if self.weights is None else self.weights
        return weights / weights.sum()

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: np.ndarray) -> "CalibrationData":
        """Some of the rows, by mask or numbers; nothing is checked again."""
        domains = self.domains.take(rows)
        return replace(
            self,
            rows=self.rows.take(rows),
            labels=self.labels[rows],
            features=None if self.features is None else self.features[rows],
            domains=domains,
            weights=None if self.weights is None else self.weights[rows],
            memo=self._still_true(domains),
            row_memo={key: found[rows] for key, found in self.row_memo.items()},
        )

    def without_weightless(self) -> "CalibrationData":
        """The same rows but for those of weight zero, which are as good as absent."""
        if self.weights is None or self.weights.all():
            return self
        return self.take(self.weights > 0)

    def only(self, kinds: tuple[str, ...]) -> "CalibrationData":
        """The same rows with nothing beside them but these of `KINDS`."""
        hidden: dict[str, Any] = {
            name: None
            for name in ("features", "reference", "target")
            if name not in kinds and getattr(self, name) is not None
        }
        if "source" not in kinds and self.domains.is_source.any():
            hidden["domains"] = self.domains.all_alike()
        return replace(self, **hidden) if hidden else self

    def domain_temperatures(self) -> Solution:
        """The temperature of every domain by itself, solved once."""
        return self._remembered(
            _DOMAINS,
            lambda: solve_temperatures(self.rows, self.domains.codes, self.weights),
        )

    def set_temperature(self) -> Solution:
        """The temperature of all rows as one group, solved once."""
        if len(self.domains.names) == 1:
            return self.domain_temperatures()
        codes = np.zeros(len(self), np.intp)
        start = self.memo[_DOMAINS][0].middle() if _DOMAINS in self.memo else None
        return self._remembered(
            ("set temperature",),
            lambda: solve_temperatures(self.rows, codes, self.weights, start=start),
        )

    def _still_true(self, kept: Domains) -> dict:
        """What is known of domains that stay whole is known of fewer domains, too."""
        if _DOMAINS not in self.memo:
            return {}
        there = np.isin(self.domains.names, kept.names)
        sizes = np.bincount(self.domains.codes, minlength=len(there))[there]
        if not np.array_equal(sizes, np.bincount(kept.codes)):
            return {}
        solved, heard = self.memo[_DOMAINS]
        return {_DOMAINS: (solved.of(there), heard)}

    def partition(self, n_clusters: int, **settings: Any) -> Partition:
        """k-means of the features, made once for all who ask alike."""
        key = ("partition", n_clusters, *sorted(settings.items()))
        return self._remembered(
            key, lambda: self.find_partition(self.features, n_clusters, **settings)
        )

    def regions(self) -> Clusters:
        """Where the features lie: a rough partition that `coverage` looks at."""
        return self._remembered(
            ("regions",), lambda: clusters.find_regions(self.features)
        )

    def density_ratio(self, **settings: Any) -> DensityRatio:
        """Weights under which the rows resemble the target, made once alike."""
        if self.target is None:
            raise ValueError("there are no unlabelled target rows to weigh for")
        target, reference = self.target.features, self.reference
        # Records that share a memo may know different targets and references.
        key = ("ratio", _identity(target), _identity(reference))
        return self._remembered(
            (*key, *sorted(settings.items())),
            lambda: density_ratio(
                self.features, target, reference_features=reference, **settings
            ),
        )

    def _remembered(self, key: tuple, find: Callable[[], Any]) -> Any:
        """What was found for this key before, with the warnings it gave."""
        if key not in self.memo:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                self.memo[key] = find(), heard
        found, heard = self.memo[key]
        for warning in heard:
            # Whoever uses the result has to say what speaks against it.
            warnings.warn(warning.message, stacklevel=4)
        return found


def fit_with(calibrator: Any, data: CalibrationData) -> Any:
    """Fit `calibrator` on what it takes of `data`; nothing else reaches it.

    A calibrator of another make, without `takes`, gets logits and labels.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> record = ch.calibrators.CalibrationData.of(data.logits, data.labels)
    >>> round(ch.calibrators.fit_with(ch.TemperatureScaling(), record).temperature_, 1)
    2.1
    """
    learn = getattr(calibrator, "fit_data", None)
    if learn is not None:
        return learn(data)
    extra = {} if data.weights is None else {"sample_weight": data.weights}
    return calibrator.fit(data.logits, data.labels, **extra)


def fresh(estimator: Any) -> Any:
    """An unfitted copy. (`clone` is typed for containers of estimators, too.)"""
    return clone(estimator)


def _identity(array: np.ndarray | None) -> tuple | None:
    """What tells two arrays apart as long as both are alive."""
    return None if array is None else (id(array), array.shape)
