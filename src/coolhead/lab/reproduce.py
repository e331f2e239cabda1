"""What a reproduction has finished, from what, and what it cost."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from coolhead.io.files import write_text
from coolhead.lab.classifiers import settings_key
from coolhead.lab.images.table import ImageTable
from coolhead.lab.plan import make_splits
from coolhead.lab.protocol import ArchiveData, Protocol
from coolhead.lab.protocol_files import change_protocol


class Ledger:
    """The finished steps of one run, in a file beside its results.

    A step is finished when its file, which appears whole, is there and the ledger
    knows what it was made from. Time counts on over interruptions; that of a process
    which was killed is lost.
    """

    def __init__(self, path: Path):
        self.path = path
        self.entries: dict[str, dict[str, Any]] = {}
        if path.is_file():
            try:
                self.entries = json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                raise ValueError(
                    f"{path} is damaged: delete it, and what it spoke of is done anew"
                ) from None

    def is_finished(self, name: str, out: Path, identity: str) -> bool:
        """Whether a step needs no work; a file made from something else is refused."""
        if not out.is_file():
            return False
        # A kill may come between the file and the word that it is finished.
        if self.entries.get(name, {}).get("identity") == identity:
            return True
        raise ValueError(
            f"{out} is there, but was not made from these images with these settings: "
            "run as before, or write to another --folder, or delete that file"
        )

    @contextmanager
    def timed(self, name: str, identity: str) -> Iterator[None]:
        """Count the time of a step; it is finished if nothing is raised."""
        begun, worked = time.monotonic(), _cpu_seconds()
        known = self.entries.get(name, {})
        if known.get("identity") != identity:
            known = {}
        before = [known.get(key, 0.0) for key in ("seconds", "cpu_seconds")]
        self._note(name, identity, False, *before)
        finished = False
        try:
            yield
            finished = True
        finally:
            taken = (time.monotonic() - begun, _cpu_seconds() - worked)
            spent = [a + b for a, b in zip(before, taken, strict=True)]
            self._note(name, identity, finished, *spent)

    def _note(
        self, name: str, identity: str, finished: bool, seconds: float, cpu: float
    ) -> None:
        self.entries[name] = {
            "identity": identity,
            "finished": finished,
            "seconds": seconds,
            "cpu_seconds": cpu,
        }
        write_text(self.path, json.dumps(self.entries, indent=1))


def _cpu_seconds() -> float:
    """Of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


SPELLINGS = {"efficientnet": "EfficientNet", "lite": "Lite", "resnet": "ResNet"}


@dataclass(frozen=True)
class Recipe:
    """How images become features, or with `finetune` logits of trained networks.

    Attributes
    ----------
    backbone, weights, size
        See :func:`coolhead.lab.images.load_backbone`.
    finetune : dict or None
        Fields of FinetuneSettings. With None the network is frozen, and the sweep
        trains a head on its features for every source.
    options : dict
        ``workers``, ``device`` and ``progress`` of the extraction.
    """

    backbone: str = "efficientnet-lite0"
    weights: Path | None = None
    size: int | None = None
    finetune: dict[str, Any] | None = None
    skip_bad: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def network(self) -> dict[str, Any]:
        """What the backbone is loaded with beside its name."""
        return {"weights": self.weights, "size": self.size}


@dataclass(frozen=True)
class Step:
    """One file to make, the digest of what it is made from, and the work."""

    name: str
    out: Path
    identity: str
    work: Callable[[], Any]


def title_by_network(title: str, recipe: Recipe) -> str:
    """The data set, then the network: ``Office-Home, frozen EfficientNet-Lite0``."""
    network = recipe.backbone.rpartition(":")[2]
    for plain, written in SPELLINGS.items():
        network = network.replace(plain, written)
    state = "frozen" if recipe.finetune is None else "fine-tuned"
    return f"{title.partition(':')[0]}, {state} {network}"


def plan_steps(
    protocol: Protocol, images: ImageTable, folder: Path, recipe: Recipe
) -> tuple[list[Step], Protocol]:
    """Return what is to do before the sweep, and the protocol of that sweep.

    Parameters
    ----------
    protocol : Protocol
        Its roles name domains of the images.
    images : ImageTable
        All images; where official lists part them into train and test and the protocol
        trains on an archive of its own, each part has its step.
    folder : Path
        Holds the runs.
    recipe : Recipe
        The sweep's title tells its network.
    """
    _require_domains(protocol, images)
    protocol = change_protocol(protocol, title=title_by_network(protocol.title, recipe))
    lists = isinstance(protocol.data, ArchiveData) and protocol.data.train_path
    if lists and images.roles is None:
        raise ValueError(
            f"protocol {protocol.name} trains on lists of its own, but {images.root} "
            "has no DOMAIN_train.txt and DOMAIN_test.txt: put them beside the domains"
        )
    parts = {"": images}
    if lists:
        parts = {"": images.only("test"), "train-": images.only("train")}
    checksums = [part.checksum() for part in parts.values()]
    identify = partial(_identity, recipe, checksums)
    if recipe.finetune is None:
        return _frozen(protocol, parts, folder, recipe, identify)
    return _finetuned(protocol, parts, folder, recipe, identify)


def _frozen(protocol, parts, folder, recipe, identify) -> tuple[list[Step], Protocol]:
    run = folder / protocol.name
    steps = [
        Step(
            name=f"{part}features",
            out=run / f"{part}features.safetensors",
            identity=identify(part=part),
            work=partial(_extract, images, run / f"{part}features.safetensors", recipe),
        )
        for part, images in parts.items()
    ]
    data = {"kind": "archive", "path": steps[0].out, "images": parts[""].root}
    if len(steps) > 1:
        data["train_path"] = steps[1].out
    return steps, change_protocol(protocol, data=data)


def _finetuned(
    protocol, parts, folder, recipe, identify
) -> tuple[list[Step], Protocol]:
    name = f"{protocol.name}-finetuned"
    trained = folder / name / "trained"
    division = protocol.division
    steps = []
    for seed in protocol.seeds:
        for source in dict.fromkeys(s.source for s in make_splits(protocol.roles)):
            out = trained / f"{'+'.join(source)}-{seed}.safetensors"
            settings = {
                "source": list(source),
                "seed": protocol.seed_of("classifier", seed),
                "division_seed": protocol.seed_of("division", seed),
                "division": division.model_dump(mode="json"),
            }
            steps.append(
                Step(
                    name=f"{'+'.join(source)}, seed {seed}",
                    out=out,
                    identity=identify(**settings),
                    work=partial(_finetune, parts, out, recipe, settings),
                )
            )
    place = str(trained).replace("{", "{{").replace("}", "}}")
    pattern = f"{place}/{{source}}-{{seed}}.safetensors"
    data = {"kind": "trained", "pattern": pattern, "images": parts[""].root}
    changed = change_protocol(protocol, name=name, data=data, classifiers={})
    return steps, changed


def _extract(images: ImageTable, out: Path, recipe: Recipe) -> None:
    from coolhead.lab.images.backbones import load_backbone
    from coolhead.lab.images.extraction import extract

    network = load_backbone(recipe.backbone, **recipe.network)
    extract(images, network, out, skip_bad=recipe.skip_bad, **recipe.options)


def _finetune(
    parts: dict[str, ImageTable], out: Path, recipe: Recipe, settings: dict[str, Any]
) -> None:
    from coolhead.lab.images.finetuning import finetune_and_extract

    finetune_and_extract(
        parts[""],
        settings["source"],
        out,
        train_images=parts.get("train-"),
        backbone=recipe.backbone,
        **recipe.network,
        settings=recipe.finetune,
        small=settings["division"]["small"],
        stratify=settings["division"]["stratify"],
        division_seed=settings["division_seed"],
        random_state=settings["seed"],
        skip_bad=recipe.skip_bad,
        **recipe.options,
    )


def _identity(recipe: Recipe, images: list[str], **own: Any) -> str:
    """A digest of everything that decides the content of a step's file."""
    weights = recipe.weights
    checksum = None if weights is None else _checksum(weights)
    return settings_key(
        images=images,
        backbone=recipe.backbone,
        finetune=recipe.finetune,
        **recipe.network | {"weights": checksum},
        **own,
    )


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _require_domains(protocol: Protocol, images: ImageTable) -> None:
    missing = [d for d in protocol.roles.domains if d not in images.domain_names]
    if missing:
        raise ValueError(
            f"{images.root} has the domains {', '.join(images.domain_names)}; protocol "
            f"{protocol.name} wants {', '.join(missing)} too: give the folder that "
            "holds the domains, or a protocol with these names"
        )
