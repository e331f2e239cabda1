"""Classifiers are trained once per source set and kept as archives of logits.

The name of a kept file holds a key made of everything that decides its content, so a
changed setting is a new file and never a stale answer.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from coolhead.io.archive import DomainArchive
from coolhead.io.reading import load_archive
from coolhead.lab.protocol import (
    ArchiveData,
    BundledData,
    Classifier,
    Data,
    Division,
    FormationsData,
    PythonData,
    TrainedData,
)
from coolhead.plugins import load_plugin
from coolhead.report.results import file_safe

REFERENCE_ROWS = 20_000


@dataclass(frozen=True)
class Training:
    """One classifier to train: everything that decides its logits."""

    data: Data
    checksum: str
    classifier: Classifier
    source: tuple[str, ...]
    division: Division
    classifier_seed: int
    division_seed: int

    @property
    def key(self) -> str:
        """Short digest of all settings, the data and the version."""
        return settings_key(
            checksum=self.checksum,
            classifier=self.classifier.model_dump(mode="json"),
            source=self.source,
            division=self.division.model_dump(mode="json"),
            seeds=(self.classifier_seed, self.division_seed),
        )

    @property
    def file_name(self) -> str:
        """Name of the archive: readable, and unique by its key."""
        return f"{file_safe('+'.join(self.source))}-{self.key}.safetensors"


def settings_key(**settings: Any) -> str:
    """A digest of JSON values; the package's version is always one of them."""
    settings["coolhead"] = _version()
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _version() -> str:
    return version("coolhead")


def archive_checksum(archive: DomainArchive) -> str:
    """Digest of the arrays and names of an archive."""
    digest = hashlib.sha256()
    names = [archive.domain_names, archive.class_names]
    digest.update(json.dumps(names).encode())
    columns = (archive.logits, archive.features, archive.labels, archive.domain_codes)
    for column in columns:
        if column is not None:
            digest.update(f"{column.dtype}{column.shape}".encode())
            for start in range(0, len(column), 8192):
                digest.update(np.ascontiguousarray(column[start : start + 8192]).data)
    return digest.hexdigest()


def load_data(
    data: Data,
    *,
    train: bool = False,
    cache: Path | None = None,
    class_names: tuple[str, ...] | None = None,
) -> DomainArchive:
    """The rows a classifier is applied to, or with `train` those it learns from.

    `cache` is a folder where simulated data is kept once it is made. `class_names` are
    those of an archive in the order wanted.
    """
    if isinstance(data, BundledData):
        from coolhead.datasets import load_dataset

        return load_dataset(data.dataset)
    if isinstance(data, FormationsData):
        from coolhead.lab.formations import load_formations

        return load_formations(
            data.n_images, data.backbone, random_state=data.random_state, cache=cache
        )
    if isinstance(data, PythonData):
        return _from_function(data.load)
    if isinstance(data, ArchiveData):
        path = data.train_path if train and data.train_path else data.path
        return load_archive(path, class_names=class_names)
    raise ValueError("data.kind is 'trained': its archives come with logits")


def _from_function(name: str) -> DomainArchive:
    """What the user's function gives."""
    found = load_plugin(name)()
    if not isinstance(found, DomainArchive):
        raise ValueError(
            f"{name} gave a {type(found).__name__}; wanted a DomainArchive"
        )
    return found


def data_folder(run: Path) -> Path:
    """Where a run keeps data that it had to make."""
    return run / "data"


def trained_path(data: TrainedData, source: tuple[str, ...], seed: int) -> Path:
    """The user's archive for one source set."""
    path = Path(data.pattern.format(source="+".join(source), seed=seed))
    if not path.is_file():
        raise ValueError(f"no archive {path} for source {'+'.join(source)}")
    return path


def divide(archive: DomainArchive, division: Division, seed: int) -> np.ndarray:
    """(n,) True for the Small rows of each domain."""
    from coolhead.lab.images import split_large_small

    return split_large_small(
        archive, small=division.small, stratify=division.stratify, random_state=seed
    )


def train_classifier(training: Training, folder: Path) -> Path:
    """Train a classifier, apply it to all rows, keep the archive; return its path.

    Where the classifier learns from an archive of its own, a sample of its training
    features is kept beside, for the methods that compare with the training data.
    """
    from coolhead.lab.heads.train import train_head
    from coolhead.lab.images.divide import division_record

    path = folder / training.file_name
    archive = load_data(training.data, cache=data_folder(folder.parent))
    small = divide(archive, training.division, training.division_seed)
    rows, watched = archive, small
    separate = isinstance(training.data, ArchiveData) and training.data.train_path
    if separate:
        names = archive.class_names
        rows = load_data(training.data, train=True, class_names=names)
        if names is None and rows.class_names is not None:
            raise ValueError(
                f"{training.data.train_path} names its classes "  # pyright: ignore
                f"({', '.join(rows.class_names[:5])}), the data do not; wanted class "
                "names in both, or numbers in both"
            )
        rows, watched = rows.select(*training.source), None
        learned = _sample(rows)
        if training.classifier.settings.get("patience"):
            # The source's calibration rows, of the other archive, decide when to stop.
            n_learned = len(rows)
            rows = _join(rows, archive.rows(small).select(*training.source))
            watched = np.arange(len(rows)) >= n_learned
    head = train_head(
        rows,
        training.source,
        kind=training.classifier.kind,
        small=watched,
        random_state=training.classifier_seed,
        **training.classifier.settings,
    )
    penultimate = training.classifier.features == "penultimate"
    if separate:
        seen = head.apply(learned) if penultimate else learned
        seen.save(reference_path(path))
    applied = head.apply(archive)
    if not penultimate:
        applied = applied.replace(features=archive.features)
    if not separate:
        division = training.division
        record = division_record(
            division.small, training.division_seed, stratify=division.stratify
        )
        applied = applied.replace(metadata=applied.metadata | record)
    applied.save(path)
    return path


def reference_path(path: Path) -> Path:
    """Where the sample of training features of a classifier lies, if it has one."""
    return path.with_suffix(".reference.safetensors")


def _join(*archives: DomainArchive) -> DomainArchive:
    """The columns that a head learns from, one archive after the other."""
    unused = {"logits": None, "groups": None, "ids": None}
    return DomainArchive.concat([archive.replace(**unused) for archive in archives])


def _sample(archive: DomainArchive) -> DomainArchive:
    if len(archive) <= REFERENCE_ROWS:
        return archive
    rows = np.random.default_rng(0).choice(len(archive), REFERENCE_ROWS, replace=False)
    return archive.rows(np.sort(rows))
