"""The checked record of a fit: rows, their domains, and what belongs to them."""

import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from coolhead.numerics.checks import (
    as_logits,
    check_domains,
    check_features,
    check_logits,
)
from coolhead.numerics.classes import Names, match_rows, order_columns
from coolhead.numerics.moments import Rows, summarise_rows
from coolhead.numerics.solver import Solution, solve_temperatures
from coolhead.numerics.weights import check_weights, counted_rows, masked_message
from coolhead.shift import clusters
from coolhead.shift.clusters import Partition
from coolhead.shift.ratio import DensityRatio, density_ratio

FULL_SIZE = 50
SMALLEST_DOMAIN = 20
MOST_FOLDS = 10


class Domains(NamedTuple):
    """Domains of the rows of one fit.

    names : (m,) distinct domains; codes : (n,) the domain of each row;
    is_source : (m,) True for held-out data of the classifier's own source.
    """

    names: np.ndarray
    codes: np.ndarray
    is_source: np.ndarray

    def take(self, rows: np.ndarray) -> "Domains":
        """The domains of some of the rows; those without a row are forgotten."""
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        return Domains(self.names[kept], codes, self.is_source[kept])

    def all_alike(self) -> "Domains":
        """The same domains, none of them known as the source."""
        return self._replace(is_source=np.zeros(len(self.names), bool))

    @property
    def source_rows(self) -> np.ndarray:
        """(n,) True for the rows of the source."""
        return self.is_source[self.codes]

    def row_weights(self, weights: np.ndarray | None) -> np.ndarray:
        """(n,) weights that sum to one; domains count the same unless they are tiny.

        A domain of n rows counts n / (n + 50): one of a single row must not weigh as
        much as one of thousands.
        """
        given = np.ones(len(self.codes)) if weights is None else weights
        mass = np.bincount(self.codes, given, len(self.names))
        sizes = np.bincount(self.codes, minlength=len(self.names))
        total = sizes / (sizes + FULL_SIZE)
        per_row = np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), 0.0)
        row_weights = given * per_row[self.codes]
        return row_weights / row_weights.sum()


def find_domains(
    sample_domain: ArrayLike | None, source_domain: Any, n_rows: int | None = None
) -> Domains:
    """Codes of the domains; rows of `source_domain` (a name or a list) are the source.

    Where `sample_domain` is None all `n_rows` rows are one domain.
    """
    if sample_domain is None:
        if source_domain is not None:
            raise ValueError(
                f"source_domain is {source_domain!r} but sample_domain is missing; "
                "wanted the domain of each row"
            )
        codes = np.zeros(n_rows or 0, np.intp)
        return Domains(np.array(["all"]), codes, np.zeros(1, bool))
    names, codes = np.unique(np.asarray(sample_domain), return_inverse=True)
    wanted = [] if source_domain is None else np.atleast_1d(source_domain).tolist()
    wanted = [str(name) for name in wanted]
    known = [str(name) for name in names]
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ValueError(
            f"source_domain names {', '.join(missing)}, which sample_domain does not "
            f"hold; wanted some of {', '.join(known)}"
        )
    return Domains(names, codes, np.isin(known, wanted))


def refuse_source(calibrator: Any, source_domain: Any) -> None:
    """Rows of the source would be mistaken for those of a calibration domain."""
    if source_domain is not None and "source" not in calibrator.takes:
        raise ValueError(
            f"source_domain is {source_domain!r}, but {type(calibrator).__name__} "
            "treats all domains alike; wanted rows of the calibration domains alone"
        )


def canonical_order(rows: np.ndarray, codes: np.ndarray | None = None) -> np.ndarray:
    """Return an order of rows that does not depend on the order they came in.

    Samples of rows are taken in this order, so that fits do not depend on how a file
    was sorted. Only equal rows may change places.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
    codes : ndarray of shape (n_samples,), default=None
        Groups that stay together.
    """
    # Single columns of features are often zero in many rows; sums of all differ.
    with np.errstate(all="ignore"):
        factors = np.linspace(1, 2, rows.shape[1], dtype=rows.dtype)
        sums = np.vecdot(rows, factors)
    columns = [sums, rows[:, -1], rows[:, rows.shape[1] // 2], rows[:, 0]]
    return np.lexsort(columns if codes is None else [*columns, codes])


def leave_one_out(domains: Domains) -> Iterator[tuple[str, np.ndarray]]:
    """Leave out each calibration domain once; many domains in ten groups.

    Yields the name of what is left out and the mask of its rows, (n,). The source is
    never left out, nor is a domain of fewer than 20 rows; and nothing where fewer
    than two domains remain.
    """
    sizes = np.bincount(domains.codes, minlength=len(domains.names))
    usable = np.flatnonzero(~domains.is_source & (sizes >= SMALLEST_DOMAIN))
    if len(usable) < 2:
        return
    usable = usable[np.argsort(-sizes[usable], kind="stable")]
    for first in range(min(MOST_FOLDS, len(usable))):
        group = np.sort(usable[first::MOST_FOLDS])
        name = "+".join(str(domains.names[code]) for code in group)
        yield name, np.isin(domains.codes, group)


# Squares of what is larger leave the range of float64 once they are added up.
LARGEST_FEATURE = 1e100


class Target(NamedTuple):
    """Unlabelled rows of the target: features (m, d) and, if known, logits (m, k)."""

    features: np.ndarray
    logits: np.ndarray | None


def check_target(
    features: Any,
    logits: Any,
    width: int | None,
    n_classes: int,
    classes: Names | None = None,
) -> Target:
    """Return the target's rows in arrays that fit the labelled ones."""
    if features is None:
        raise ValueError("target_logits is given without target_features; wanted both")
    name = "target_features"
    features = within_reach(check_features(features, None, width, name), name)
    if logits is None:
        return Target(features, None)
    given, logits = logits, check_logits(logits, "target_logits")
    if logits.shape[1] != n_classes:
        raise ValueError(
            f"target_logits has {logits.shape[1]} columns; wanted {n_classes}, as "
            "logits has"
        )
    if len(logits) != len(features):
        raise ValueError(
            f"target_logits has {len(logits)} rows, target_features {len(features)}; "
            "wanted the same rows"
        )
    return Target(features, order_columns(logits, given, classes)[0])


def within_reach(features: np.ndarray, name: str) -> np.ndarray:
    """At least one row, and none so far away that no distance to it is a number."""
    if len(features) == 0:
        raise ValueError(f"{name} has 0 rows; wanted at least one")
    if features.dtype == np.float64:
        largest = max(features.max(), -features.min())
        if largest > LARGEST_FEATURE:
            raise ValueError(
                f"{name} holds {largest:.3g} (in absolute value); wanted at most "
                f"{LARGEST_FEATURE:.0e}"
            )
    return features


# What a calibrator may take beside logits, labels, domains and weights.
KINDS = ("features", "source", "reference", "target")
_DOMAINS = "temperatures of domains"


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
    weights : (n,) > 0, or None. Rows of weight zero are not in the record.
    reference : (r, d) features of rows the classifier was trained on, or None.
    target : unlabelled rows of the target, or None. Only a calibrator that takes
        "target" ever sees them.
    classes : names of the classes in the order of the columns, or None.
    n_masked : rows left out because their class is masked.
    memo : what `once` found, so that methods fitted on the same record share it.
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
    classes: Names | None = None
    n_masked: int = 0
    # `replace` makes a record that knows nothing: what was found may not hold of it.
    memo: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)
    row_memo: dict[Hashable, np.ndarray] = field(
        default_factory=dict, init=False, repr=False
    )

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
        classes: Any = None,
    ) -> Self:
        """Check every argument; the names are those of `fit`.

        Parameters
        ----------
        logits : array-like of shape (n_samples, n_classes) or (n_samples,)
            A vector holds the scores of a binary classifier.
        labels : array-like of shape (n_samples,)
            Column numbers, or names of the classes.
        features : array-like of shape (n_samples, n_features), default=None
            Features of the rows.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row.
        source_domain : str or list, default=None
            Name or names in `sample_domain` of held-out source rows.
        reference_features : array-like of shape (n_rows, n_features), default=None
            Features of rows the classifier was trained on.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0.
        target_features, target_logits : array-like, default=None
            Unlabelled target rows, one line each.
        classes : sequence, default=None
            Names of the classes in the order of the columns. By default the names of
            the columns of a frame or, of an array, the sorted labels.
        """
        if labels is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: labels are "
                f"missing; wanted one class per row, ({len(as_logits(logits))},)"
            )
        array, labels, classes = match_rows(logits, labels, classes, as_logits)
        n_rows, n_classes = array.shape
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
        target = None
        if target_features is not None or target_logits is not None:
            target = check_target(
                target_features, target_logits, width, n_classes, classes
            )
        kept, n_masked = counted_rows(array, labels, weights)
        if n_masked:
            warnings.warn(masked_message(n_masked, n_rows), stacklevel=3)
        if kept is not None:
            array, labels, domains = array[kept], labels[kept], domains.take(kept)
            features = None if features is None else features[kept]
            weights = None if weights is None else weights[kept]
        return cls(
            summarise_rows(array, labels, scores=np.ndim(logits) == 1),
            labels,
            features,
            domains,
            known,
            weights,
            reference_features,
            target,
            classes,
            n_masked,
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
        taken = replace(
            self,
            rows=self.rows.take(rows),
            labels=self.labels[rows],
            features=None if self.features is None else self.features[rows],
            domains=domains,
            weights=None if self.weights is None else self.weights[rows],
        )
        taken.memo.update(self._still_true(domains))
        taken.row_memo.update(
            (key, found[rows]) for key, found in self.row_memo.items()
        )
        return taken

    def only(self, kinds: tuple[str, ...]) -> "CalibrationData":
        """The same rows with nothing beside them but these of `KINDS`."""
        hidden: dict[str, Any] = {
            name: None
            for name in ("features", "reference", "target")
            if name not in kinds and getattr(self, name) is not None
        }
        if "source" not in kinds and self.domains.is_source.any():
            hidden["domains"] = self.domains.all_alike()
        if not hidden:
            return self
        shown = replace(self, **hidden)
        for name in (
            "memo",
            "row_memo",
        ):  # shared: methods see other parts of one record
            object.__setattr__(shown, name, getattr(self, name))
        return shown

    def once(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """Return `find()`, computed at the first call with this key."""
        if key not in self.memo:
            self.memo[key] = find()
        return self.memo[key]

    def domain_temperatures(self) -> Solution:
        """The temperature of every domain by itself, solved once."""
        codes = self.domains.codes
        return self.once(
            _DOMAINS, lambda: solve_temperatures(self.rows, codes, self.weights)
        )

    def set_temperature(self) -> Solution:
        """The temperature of all rows as one group, solved once."""
        if len(self.domains.names) == 1:
            return self.domain_temperatures()
        codes = np.zeros(len(self), np.intp)
        start = self.memo[_DOMAINS].middle() if _DOMAINS in self.memo else None
        return self.once(
            "set temperature",
            lambda: solve_temperatures(self.rows, codes, self.weights, start=start),
        )

    def _still_true(self, kept: Domains) -> dict[Hashable, Any]:
        """What is known of domains that stay whole is known of fewer domains, too."""
        there = np.isin(self.domains.names, kept.names)
        sizes = np.bincount(self.domains.codes, minlength=len(there))[there]
        if _DOMAINS in self.memo and np.array_equal(sizes, np.bincount(kept.codes)):
            return {_DOMAINS: self.memo[_DOMAINS].of(there)}
        return {}

    def partition(self, n_clusters: int, **settings: Any) -> Partition:
        """k-means of the features, made once for each choice of settings."""
        found = self.once(
            ("partition", n_clusters, *sorted(settings.items())),
            lambda: clusters.partition_features(self.features, n_clusters, **settings),
        )
        if found.n_merged:
            n_found = len(found.clusters.centers)
            warnings.warn(
                f"n_clusters is {n_clusters}, but the {len(self)} rows of features "
                f"give only {n_found} distinct clusters; {n_found} are used",
                stacklevel=4,
            )
        return found

    def density_ratio(self, **settings: Any) -> DensityRatio:
        """Weights under which the rows resemble the target, made once per settings."""
        if self.target is None:
            raise ValueError("there are no unlabelled target rows to weigh for")
        target, reference = self.target.features, self.reference
        return self.once(
            ("ratio", reference is None, *sorted(settings.items())),
            lambda: density_ratio(
                self.features, target, reference_features=reference, **settings
            ),
        )


def fit_with(calibrator: Any, data: CalibrationData) -> Any:
    """Fit `calibrator` on what it takes of `data`; nothing else reaches it.

    Third-party calibrators without `takes` get logits, labels and weights.

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
