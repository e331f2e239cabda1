"""The rows that a method may see in one split, and its fit on them."""

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coolhead.calibrators.data import CalibrationData, Target, fit_with
from coolhead.io.archive import DomainArchive
from coolhead.io.arrays import give_back_pages
from coolhead.lab.adaptation import (
    Base,
    LabelBudget,
    TargetBatch,
    adapt,
    learn_base,
    scale_plainly,
)
from coolhead.lab.plan import Split
from coolhead.methods import Method, Role
from coolhead.metrics.bins import Interval
from coolhead.numerics.checks import check_features, check_logits


class LabelledRows(NamedTuple):
    """Rows to score on; `features` is None where the archive has none."""

    logits: np.ndarray
    labels: np.ndarray
    features: Any
    sample_domain: np.ndarray


class SplitRows:
    """The rows of one split, cut out of an archive when they are asked for.

    Parameters
    ----------
    archive : DomainArchive
        With logits, labels and usually features.
    small : ndarray of bool of shape (n_samples,)
        The Small rows of every domain.
    split : Split
    reference_features : ndarray of shape (n_reference, n_features), default=None
        What the classifier was trained on, by default the source's Large rows.
    unlabelled_rows : int, default=20_000
        Most rows that discriminators are fitted on.
    random_state : int, default=0
        Seed of k-means and of that sampling.
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
    ):
        self.archive = archive
        self.small = small
        self.split = split
        self.unlabelled_rows = unlabelled_rows
        self.random_state = random_state
        self._given_reference = reference_features
        self._records: dict[frozenset[str], CalibrationData] = {}
        self._targets: dict[str, Target] = {}
        self._seen: dict[tuple, CalibrationData] = {}
        self._bases: dict[tuple[str | None, int], Base] = {}

    def labelled(self, roles: tuple[Role, ...]) -> CalibrationData:
        """The Small rows of some roles together, as one record.

        The source is marked where it is not what calibrates. Methods that ask for the
        same rows get the same record, and so share what is found of it.
        """
        domains = self._domains(roles)
        if domains not in self._records:
            rows = self._rows(domains, self.small)
            split = self.split
            marked = "source" in roles and split.source != split.calibration
            self._records[domains] = CalibrationData.of(
                rows.logits,
                rows.labels,
                features=rows.features,
                sample_domain=rows.sample_domain,
                source_domain=list(split.source) if marked else None,
            )
        return self._records[domains]

    def record(self, method: Method, takes: tuple[str, ...]) -> CalibrationData:
        """What a method may see: its rows, and beside them what it takes."""
        reference = "reference" in takes and method.sees_training_data
        size = method.unlabelled_target if "target" in takes else None
        key = self._domains(method.rows), reference, size
        if key not in self._seen:
            beside: dict[str, Any] = {}
            if reference:
                beside["reference"] = self.reference_features
            if size:
                beside["target"] = self.unlabelled_target(size)
            data = self.labelled(method.rows)
            self._seen[key] = replace(data, **beside) if beside else data
        return self._seen[key]

    @cached_property
    def evaluated(self) -> LabelledRows:
        """The Large rows of the target: what every method is scored on."""
        return self._rows(frozenset(self.split.target), ~self.small)

    @cached_property
    def reference_features(self) -> np.ndarray:
        """(r, d) features of rows the classifier was trained on."""
        known = self._given_reference
        if known is None:
            known = self._rows(frozenset(self.split.source), ~self.small).features
        return check_features(self._sample(known), None, name="reference_features")

    def unlabelled_target(self, size: str) -> Target:
        """Features and logits of the target's Small or Large rows, without labels."""
        if size not in self._targets:
            rows = self.evaluated
            if size == "small":
                rows = self._rows(frozenset(self.split.target), self.small)
            self._targets[size] = Target(
                check_features(self._sample(rows.features), None),
                check_logits(self._sample(rows.logits)),
            )
        return self._targets[size]

    @property
    def batch(self) -> TargetBatch:
        """Logits and features of the target's Small rows, for methods that adapt."""
        return TargetBatch(*self._target_small[:2])

    def label_budget(self, most: int) -> LabelBudget:
        """Labels of the rows of `batch`, at most so many of them."""
        return LabelBudget(self._target_small[2], most)

    @cached_property
    def _target_small(self) -> tuple[np.ndarray, Any, np.ndarray]:
        rows = self._rows(frozenset(self.split.target), self.small)
        features = None if rows.features is None else self._sample(rows.features)
        return self._sample(rows.logits), features, self._sample(rows.labels)

    def base(self, method: Method, n_clusters: int) -> Base:
        """Where a method that adapts starts from, fitted once for all of them."""
        key = method.base, n_clusters
        if key not in self._bases:
            calibrator = method.build(
                n_clusters=n_clusters, random_state=self.random_state
            )
            record = self.record(method, calibrator.takes)
            self._bases[key] = learn_base(calibrator, record)
        return self._bases[key]

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

    def _rows(self, domains: frozenset[str], mask: np.ndarray) -> LabelledRows:
        index = self._index(domains, mask)
        if not len(index):
            raise ValueError(f"no rows are left of {', '.join(sorted(domains))}")
        part = self.archive.rows(index)
        # The rows are copies, and no other method asks for all of the file at once.
        give_back_pages(self.archive.logits, self.archive.features)
        if part.logits is None or part.labels is None:
            raise ValueError("the archive needs logits and labels for an experiment")
        return LabelledRows(part.logits, part.labels, part.features, part.domains)

    def _sample(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) <= self.unlabelled_rows:
            return rows
        generator = np.random.default_rng(self.random_state)
        chosen = generator.choice(len(rows), self.unlabelled_rows, replace=False)
        return rows[np.sort(chosen)]


class FittedMethod(NamedTuple):
    """A fitted calibrator and, of one that adapts, the accuracy it expects."""

    calibrator: Any
    expected: Interval | None = None


def fit_draws(
    method: Method, data: SplitRows, *, n_clusters: int, n_draws: int
) -> list[FittedMethod]:
    """Fit one method on exactly what it may see; once for each draw of labels."""
    draws = range(n_draws if method.labels else 1)
    if method.base is not None:
        base = data.base(method, n_clusters)
        found = [
            adapt(
                base,
                data.batch,
                data.label_budget(method.labels),
                method.labels,
                use_batch=method.batch,
                draw=draw,
            )
            for draw in draws
        ]
        return [FittedMethod(there.calibrator, there.accuracy) for there in found]
    if method.labels:
        seeds = [[data.random_state, draw] for draw in draws]
        return [
            FittedMethod(
                scale_plainly(data.batch, data.label_budget(method.labels), seed)
            )
            for seed in seeds
        ]
    calibrator = method.build(n_clusters=n_clusters, random_state=data.random_state)
    if calibrator is None:
        return [FittedMethod(None)]
    takes = getattr(calibrator, "takes", ())
    return [FittedMethod(fit_with(calibrator, data.record(method, takes)))]


def fit_method(method: Method, data: SplitRows, *, n_clusters: int) -> Any:
    """The fitted calibrator alone, of one draw."""
    return fit_draws(method, data, n_clusters=n_clusters, n_draws=1)[0].calibrator
