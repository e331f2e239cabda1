"""What a sweep has to do: classifiers to train and cells to evaluate, in order."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coolhead.archive import load_archive
from coolhead.experiment.classifiers import (
    Training,
    archive_checksum,
    data_folder,
    load_data,
    settings_key,
    trained_path,
)
from coolhead.experiment.protocol import Protocol
from coolhead.experiment.protocol_data import ArchiveData, TrainedData
from coolhead.experiment.results import file_safe
from coolhead.experiment.splits import Split, make_splits
from coolhead.experiment.training_record import check_training

GIVEN = "given"


@dataclass(frozen=True)
class CellJob:
    """One cell: a classifier's archive, a split and a seed, and where it is kept.

    `note` is what cannot be said for sure of the archive.
    """

    protocol: Protocol
    classifier: str
    split: Split
    seed: int
    archive: Path
    path: Path
    note: str | None = None

    @property
    def key(self) -> dict[str, Any]:
        """The leading columns of every row of this cell."""
        return {
            "experiment": self.protocol.name,
            "classifier": self.classifier,
            "split": self.split.name,
            "source": "+".join(self.split.source),
            "calibration": "+".join(self.split.calibration),
            "target": "+".join(self.split.target),
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Plan:
    """All trainings and cells of a run, and the digest of the data they rest on."""

    run: Path
    checksum: str
    trainings: tuple[Training, ...]
    jobs: tuple[CellJob, ...]

    @property
    def classifiers(self) -> Path:
        """Folder of the kept archives."""
        return self.run / "classifiers"


def make_plan(protocol: Protocol, run: Path) -> Plan:
    """List what a run of `protocol` consists of; reads the data once."""
    if isinstance(protocol.data, TrainedData):
        return _plan_with_given_logits(protocol, protocol.data, run)
    checksum = _data_checksum(protocol, run)
    trainings: dict[str, Training] = {}
    jobs = []
    for name, classifier in protocol.classifiers.items():
        for seed in protocol.seeds:
            for split in make_splits(protocol.roles):
                training = Training(
                    data=protocol.data,
                    checksum=checksum,
                    classifier=classifier,
                    source=split.source,
                    division=protocol.division,
                    classifier_seed=protocol.seed_of("classifier", seed),
                    division_seed=protocol.seed_of("division", seed),
                )
                trainings[training.key] = training
                archive = run / "classifiers" / training.file_name
                jobs.append(
                    _job(protocol, run, name, split, seed, archive, training.key)
                )
    return Plan(run, checksum, tuple(trainings.values()), tuple(jobs))


def _plan_with_given_logits(protocol: Protocol, data: TrainedData, run: Path) -> Plan:
    jobs, digests, records = [], {}, {}
    for seed in protocol.seeds:
        for split in make_splits(protocol.roles):
            path = trained_path(data, split.source, seed)
            if path not in digests:
                archive = load_archive(path)
                _require_domains(protocol, archive.domain_names, path)
                digests[path] = archive_checksum(archive)
                records[path] = archive.metadata
            note = check_training(
                path,
                records[path],
                split.source,
                protocol.division,
                protocol.seed_of("division", seed),
            )
            job = _job(protocol, run, GIVEN, split, seed, path, digests[path])
            jobs.append(replace(job, note=note))
    return Plan(run, settings_key(files=sorted(digests.values())), (), tuple(jobs))


def _job(
    protocol: Protocol,
    run: Path,
    classifier: str,
    split: Split,
    seed: int,
    archive: Path,
    logits_key: str,
) -> CellJob:
    parts = ("division", "clusters")
    key = settings_key(
        logits=logits_key,
        split=split.as_lists(),
        seeds=[seed, *(protocol.seed_of(part, seed) for part in parts)],
        division=protocol.division.model_dump(mode="json"),
        methods=protocol.methods.model_dump(mode="json"),
        evaluation=protocol.evaluation.model_dump(mode="json"),
    )
    name = file_safe(f"{classifier}-{split.name.replace(' > ', '-')}-seed{seed}-{key}")
    return CellJob(
        protocol, classifier, split, seed, archive, run / "cells" / f"{name}.json"
    )


def _data_checksum(protocol: Protocol, run: Path) -> str:
    archive = load_data(protocol.data, cache=data_folder(run))
    _require_domains(protocol, archive.domain_names, "the data")
    digests = [archive_checksum(archive)]
    if isinstance(protocol.data, ArchiveData) and protocol.data.train_path:
        digests.append(archive_checksum(load_data(protocol.data, train=True)))
    return settings_key(data=digests)


def _require_domains(protocol: Protocol, names: tuple[str, ...], place: Any) -> None:
    missing = [name for name in protocol.roles.domains if name not in names]
    if missing:
        raise ValueError(
            f"roles.domains names {', '.join(missing)}, but {place} has "
            f"{', '.join(names)}"
        )
