"""Which domain plays which role."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from coolhead.evaluate import trained_sources
from coolhead.io.reading import load_archive
from coolhead.lab.classifiers import (
    Training,
    archive_checksum,
    data_folder,
    load_data,
    settings_key,
    trained_path,
)
from coolhead.lab.protocol import ArchiveData, Division, Protocol, Roles, TrainedData
from coolhead.report.results import file_safe


@dataclass(frozen=True, order=True)
class Split:
    """Domains that train the classifier, calibrate it, and test it unseen."""

    source: tuple[str, ...]
    calibration: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def name(self) -> str:
        """Short name as in the paper's tables, for example ``Art+Real > Clipart``."""
        return f"{'+'.join(self.source)} > {'+'.join(self.target)}"

    def as_lists(self) -> dict[str, list[str]]:
        """The roles as JSON-ready lists."""
        return {role: list(domains) for role, domains in asdict(self).items()}


def make_splits(roles: Roles) -> list[Split]:
    """All splits of a protocol, ordered by target, then by source.

    ``arrangement="all"`` takes every choice of targets and sources; the rest (or
    every choice of `calibration` domains out of it) calibrates.
    ``arrangement="cyclic"`` turns the list of domains once around, so that each
    domain plays each role equally often; it keeps 10 domains at 10 splits.
    """
    if roles.arrangement == "cyclic":
        return _cyclic_splits(roles)
    splits = []
    for target in combinations(roles.domains, roles.target):
        others = [domain for domain in roles.domains if domain not in target]
        for source in combinations(others, roles.source):
            rest = [domain for domain in others if domain not in source]
            splits += [
                Split(source, calibration, target)
                for calibration in _calibration_choices(roles, source, rest)
            ]
    return splits


def _calibration_choices(
    roles: Roles, source: tuple[str, ...], rest: list[str]
) -> list[tuple[str, ...]]:
    if roles.calibrate_on == "source":
        return [source]
    return list(combinations(rest, roles.calibration))


def _cyclic_splits(roles: Roles) -> list[Split]:
    splits = []
    for start in range(len(roles.domains)):
        turned = roles.domains[start:] + roles.domains[:start]
        source, rest = turned[: roles.source], turned[roles.source :]
        if roles.calibrate_on == "source":
            calibration, rest = source, rest
        else:
            calibration, rest = rest[: roles.calibration], rest[roles.calibration :]
        splits.append(Split(source, calibration, rest[: roles.target]))
    return splits


def check_training(
    path: Path,
    metadata: Mapping[str, Any],
    source: tuple[str, ...],
    division: Division,
    seed: int,
) -> str | None:
    """Refuse an archive that contradicts a cell; a note where that can not be seen.

    Parameters
    ----------
    path, metadata
        Of the archive.
    source : tuple of str
        The source domains of the cell.
    division, seed
        How the sweep divides the rows of this cell.

    Returns
    -------
    str or None
        What cannot be checked, as a sentence.
    """
    sources = trained_sources(metadata)
    if sources is not None and set(sources) != set(source):
        raise ValueError(
            f"{path} was trained on {'+'.join(sources)}, wanted {'+'.join(source)}: "
            "give the archive of that source, its name belongs to {source} of "
            "data.pattern"
        )
    found = metadata.get("division")
    if sources is not None and found == {"separate": True}:
        # None of these rows was trained on, however they are divided.
        return None
    if sources is None or not isinstance(found, Mapping):
        what = "source" if sources is None else "division into Large and Small"
        return (
            f"{path} does not record the {what} it was trained with: whether its "
            "Small rows were held back cannot be checked"
        )
    wanted = division.model_dump() | {"random_state": seed}
    if found != wanted:
        raise ValueError(
            f"{path} was trained on the Large rows of {found}, wanted {wanted}: it has "
            "seen Small rows that would calibrate it. Train an archive per seed and "
            "put {seed} into data.pattern, or leave 'division' out of vary and train "
            "with that division"
        )
    return None


GIVEN = "given"


@dataclass(frozen=True)
class CellJob:
    """One cell: a classifier's archive, a split and a seed, and where it is kept.

    `note` says what could not be checked of the archive.
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
        ablation=protocol.ablation.model_dump(mode="json"),
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
