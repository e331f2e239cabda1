"""Who sees what: the rows of a split by role, and the fit of one method on them.

This file is the only door between data and methods. Labels leave it only for the
Small rows of the roles a method names; unlabelled target arrays, and the density ratio
made of them, only for a method whose ``fit`` has an argument of that name.
"""

import inspect
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coolhead.archive import DomainArchive
from coolhead.experiment.methods import Method, Role
from coolhead.experiment.partitions import find_partition
from coolhead.experiment.splits import Split
from coolhead.shift import DensityRatio, density_ratio
from coolhead.shift.clusters import Partition


class Rows(NamedTuple):
    """Labelled rows; `features` is None where the archive has none."""

    logits: np.ndarray
    labels: np.ndarray
    features: Any
    domains: np.ndarray


class SplitRows:
    """The rows of one split, cut out of an archive when they are asked for.

    Parameters
    ----------
    archive : DomainArchive with logits, labels and usually features.
    small : (n,) bool, the Small rows of every domain.
    split : Split
    reference_features : (r, d) features the classifier was trained on; the Large rows
        of the source by default.
    unlabelled_rows : most rows handed out without labels, so that discriminators
        stay affordable.
    random_state : seed of k-means and of that sampling.
    partition_folder : where k-means is kept for other cells with the same features.
    """

    def __init__(
        self,
        archive: DomainArchive,
        small: np.ndarray,
        split: Split,
        *,
        reference_features: np.ndarray | None = None,
        unlabelled_rows: int = 20_000,
        random_state: int = 0,
        partition_folder: Path | None = None,
    ):
        self.archive = archive
        self.small = small
        self.split = split
        self.unlabelled_rows = unlabelled_rows
        self.random_state = random_state
        self.partition_folder = partition_folder
        self._given_reference = reference_features
        self._small_rows: dict[frozenset[str], Rows] = {}
        self._partitions: dict[tuple[frozenset[str], int], Partition] = {}
        self._ratios: dict[tuple, tuple[DensityRatio, list]] = {}

    def labelled(self, roles: tuple[Role, ...]) -> Rows:
        """The Small rows of some roles together."""
        domains = self._domains(roles)
        if domains not in self._small_rows:
            self._small_rows[domains] = self._rows(domains, self.small)
        return self._small_rows[domains]

    def partition(self, roles: tuple[Role, ...], n_clusters: int) -> Partition:
        """k-means of the Small rows of some roles: made once, shared by all methods."""
        key = self._domains(roles), n_clusters
        if key not in self._partitions:
            self._partitions[key] = find_partition(
                self.labelled(roles).features,
                n_clusters,
                self.random_state,
                self.partition_folder,
            )
        found = self._partitions[key]
        if found.n_merged:
            kept = len(found.clusters.centers)
            warnings.warn(f"{n_clusters} clusters asked, {kept} found", stacklevel=2)
        return found

    def ratio(self, method: Method, calibrator: Any) -> DensityRatio:
        """Importance weights of a method's rows: one estimate for all who ask alike."""
        settings = {
            "estimator": calibrator.estimator,
            "max_weight": calibrator.max_weight,
            "random_state": calibrator.random_state,
        }
        reference = self.reference_features if method.sees_training_data else None
        size = method.unlabelled_target
        key = self._domains(method.rows), size, reference is None, *settings.values()
        if key not in self._ratios:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found = density_ratio(
                    self.labelled(method.rows).features,
                    self.unlabelled_target(size)[0],
                    reference_features=reference,
                    **settings,
                )
            self._ratios[key] = found, heard
        found, heard = self._ratios[key]
        for warning in heard:
            # Every method that uses the estimate has to say what speaks against it.
            warnings.warn(warning.message, stacklevel=2)
        return found

    @cached_property
    def evaluated(self) -> Rows:
        """The Large rows of the target: what every method is scored on."""
        return self._rows(frozenset(self.split.target), ~self.small)

    @cached_property
    def reference_features(self) -> np.ndarray:
        """(r, d) features of rows the classifier was trained on."""
        if self._given_reference is not None:
            return self._sample(self._given_reference)
        rows = self._rows(frozenset(self.split.source), ~self.small)
        return self._sample(rows.features)

    def unlabelled_target(self, size: str) -> tuple[np.ndarray, np.ndarray]:
        """Features and logits of the target's Small or Large rows, without labels."""
        rows = self.evaluated if size == "large" else self.labelled(("target",))
        return self._sample(rows.features), self._sample(rows.logits)

    def _domains(self, roles: tuple[Role, ...]) -> frozenset[str]:
        return frozenset(d for role in roles for d in getattr(self.split, role))

    @property
    def evaluated_index(self) -> np.ndarray:
        """Row numbers of `evaluated` in the archive."""
        return self._index(frozenset(self.split.target), ~self.small)

    def _index(self, domains: frozenset[str], mask: np.ndarray) -> np.ndarray:
        names = self.archive.domain_names
        codes = [code for code, name in enumerate(names) if name in domains]
        return np.flatnonzero(np.isin(self.archive.domain_codes, codes) & mask)

    def _rows(self, domains: frozenset[str], mask: np.ndarray) -> Rows:
        index = self._index(domains, mask)
        if not len(index):
            raise ValueError(f"no rows are left of {', '.join(sorted(domains))}")
        part = self.archive.rows(index)
        if part.logits is None or part.labels is None:
            raise ValueError("the archive needs logits and labels for an experiment")
        return Rows(part.logits, part.labels, part.features, part.domains)

    def _sample(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) <= self.unlabelled_rows:
            return rows
        generator = np.random.default_rng(self.random_state)
        chosen = generator.choice(len(rows), self.unlabelled_rows, replace=False)
        return rows[np.sort(chosen)]


def fit_method(method: Method, data: SplitRows, *, n_clusters: int) -> Any:
    """Fit one method, giving it exactly what its ``fit`` names."""
    calibrator = method.build(n_clusters=n_clusters, random_state=data.random_state)
    if calibrator is None:
        return None
    rows = data.labelled(method.rows)
    wanted = inspect.signature(calibrator.fit).parameters
    offers = _offers(method, calibrator, data, rows, n_clusters)
    given = {name: offer() for name, offer in offers.items() if name in wanted}
    return calibrator.fit(rows.logits, rows.labels, **given)


def _offers(
    method: Method, calibrator: Any, data: SplitRows, rows: Rows, n_clusters: int
) -> dict[str, Callable[[], Any]]:
    """What a ``fit`` may name beside logits and labels, each made only if named."""
    offers: dict[str, Callable[[], Any]] = {
        "features": lambda: rows.features,
        "sample_domain": lambda: rows.domains,
        "target_features": lambda: data.unlabelled_target(method.unlabelled_target)[0],
        "target_logits": lambda: data.unlabelled_target(method.unlabelled_target)[1],
        "density_ratio": lambda: data.ratio(method, calibrator),
    }
    if method.sees_training_data:
        offers["reference_features"] = lambda: data.reference_features
    if "source" in method.rows and data.split.source != data.split.calibration:
        offers["source_domain"] = lambda: list(data.split.source)
    if rows.features is not None and not method.options:
        offers["partition"] = lambda: data.partition(method.rows, n_clusters)
    return offers
