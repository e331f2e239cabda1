"""What a reproduction has finished, from what, and what it cost."""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coolhead.io.files import write_text
from coolhead.lab.classifiers import settings_key
from coolhead.lab.images.table import ImageTable
from coolhead.lab.plan import make_splits
from coolhead.lab.protocol import ArchiveData, Protocol
from coolhead.lab.protocol_files import change_protocol
from coolhead.progress import heard_by, progress_bars


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
    backbone, weights, size, all_pixels : of :func:`coolhead.lab.images.load_backbone`.
    finetune : fields of FinetuneSettings; None leaves the network as it is, and the
        sweep trains a head on its features for every source.
    options : ``workers``, ``device``, ``engine`` and ``progress`` of the extraction.
    """

    backbone: str = "efficientnet-lite0"
    weights: Path | None = None
    size: int | None = None
    finetune: dict[str, Any] | None = None
    skip_bad: bool = False
    all_pixels: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def network(self) -> dict[str, Any]:
        """What the backbone is loaded with beside its name."""
        names = ("weights", "size", "all_pixels")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Step:
    """One file to make: of which images, with what work, known by what identity.

    `trained_rows` is how many images the work learns from in every epoch.
    """

    name: str
    out: Path
    identity: str
    images: ImageTable
    trained_rows: int
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
    protocol : whose roles name domains of the images.
    images : all of them; where official lists part them into train and test and the
        protocol trains on an archive of its own, each part has its step.
    folder : that holds the runs.
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
            images=images,
            trained_rows=0,
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
            learned = parts.get("train-", parts[""]).select(*source)
            share = 1.0 if "train-" in parts else 1 - division.small
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
                    images=parts[""],
                    trained_rows=round(share * len(learned)),
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


TRIED_IMAGES = 48
TRIED_BATCHES = 3
# After every epoch the network is tried on a quarter as many Small rows as it learned
# from, without the two thirds of the work that learning adds.
LOOKED_AT = 1 / 12
# Label, domain and name of a row of an archive.
ROW_BYTES = 48
# Processor seconds of a cell of the sweep, with 27 methods: 16 for the 15,588 rows of
# Office-Home, 5.3 for 1,890 of them.
CELL_SECONDS, CELL_SECONDS_PER_ROW, CELL_METHODS = 4.0, 8e-4, 27


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock and of the processor, and bytes, of what is still to do.

    n_cells, sweep_seconds : of the sweep that follows, of the processor.
    """

    seconds: float
    cpu_seconds: float
    n_bytes: int
    n_cells: int = 0
    sweep_seconds: float = 0.0


def estimate(steps: Sequence[Step], recipe: Recipe, sweep: Protocol) -> Cost:
    """Try the recipe on a few images, and multiply; the sweep by what others took.

    Trying also finds at once what would fail hours later: weights that do not fit,
    a backbone that is not installed, a device that is not there.
    """
    if not steps:
        return Cost(0.0, 0.0, 0)
    tried, epochs = steps[0].images, 0
    learned, n_weights = np.zeros(2), 0
    with tempfile.TemporaryDirectory() as folder:
        read, width = _try_extraction(tried, recipe, Path(folder))
        if recipe.finetune is not None:
            epochs = _settings(recipe).epochs
            learned, n_weights = _try_training(tried, recipe, Path(folder))
    taken, n_bytes = np.zeros(2), 0
    for step in steps:
        taken += read * len(step.images)
        taken += learned * epochs * step.trained_rows * (1 + LOOKED_AT)
        n_bytes += len(step.images) * _row_bytes(step.images, width, epochs > 0)
        n_bytes += n_weights
    # The sweep keeps an archive for every head that it trains.
    splits = make_splits(sweep.roles)
    sources = {split.source for split in splits}
    n_heads = len(sources) * len(sweep.seeds) * len(sweep.classifiers)
    n_bytes += n_heads * len(tried) * _row_bytes(tried, width, False)
    # A network that was fine-tuned is its own classifier.
    n_cells = len(splits) * len(sweep.seeds) * max(1, len(sweep.classifiers))
    each = CELL_SECONDS + CELL_SECONDS_PER_ROW * len(tried)
    each *= len(sweep.methods.names) / CELL_METHODS
    seconds, cpu_seconds = taken.tolist()
    return Cost(seconds, cpu_seconds, n_bytes, n_cells, n_cells * each)


def _row_bytes(images: ImageTable, width: int, finetuned: bool) -> int:
    """Of an archive of features and logits; a frozen network's are halved."""
    size = 4 if finetuned else 2
    return size * width + 4 * len(images.class_names) + ROW_BYTES


class _Clock:
    """Hears of progress: seconds and processor seconds since nothing was done.

    What comes before (loading and exporting the network) happens once, and takes
    longer than the few images tried.
    """

    def __init__(self, tell: Callable[..., None]):
        self.tell = tell

    def __call__(
        self, what: str, done: int, total: int | None, remark: str = ""
    ) -> None:
        now = np.array([time.monotonic(), time.process_time()])
        if done == 0:
            self.begun = now
        else:
            self.per_row = (now - self.begun) / done
        self.tell("trying", done, total)


def _per_image(
    images: ImageTable, count: int, work: Callable[[ImageTable], Any]
) -> tuple[np.ndarray, Any]:
    """What one image takes, by `count` of them from all over the table; the outcome."""
    rows = np.linspace(0, len(images) - 1, min(count, len(images)))
    with progress_bars() as tell, heard_by(clock := _Clock(tell)):
        outcome = work(images.rows(np.unique(rows.astype(int))))
    return clock.per_row, outcome


def _try_extraction(
    images: ImageTable, recipe: Recipe, folder: Path
) -> tuple[np.ndarray, int]:
    """Return what an image takes, and the number of features."""
    from coolhead.lab.images.backbones import load_backbone
    from coolhead.lab.images.extraction import extract

    network = load_backbone(recipe.backbone, **recipe.network)
    options: dict[str, Any] = recipe.options | {"progress": True}
    out = folder / "tried.safetensors"

    def work(some: ImageTable) -> Any:
        return extract(some, network, out, skip_bad=recipe.skip_bad, **options)

    taken, archive = _per_image(images, TRIED_IMAGES, work)
    return taken, archive.features.shape[1]


def _try_training(
    images: ImageTable, recipe: Recipe, folder: Path
) -> tuple[np.ndarray, int]:
    """Return what an image takes in every epoch, and the bytes of the weights."""
    from coolhead.lab.images.backbones import load_backbone
    from coolhead.lab.images.finetuning import finetune

    n_classes = len(images.class_names)
    network = load_backbone(recipe.backbone, n_classes=n_classes, **recipe.network)
    settings = replace(_settings(recipe), epochs=1)
    options: dict[str, Any] = recipe.options | {"progress": True}
    options.pop("engine", None)
    checkpoint = folder / "checkpoint"

    def work(some: ImageTable) -> None:
        own = replace(settings, batch_size=min(settings.batch_size, len(some)))
        sources = list(some.domain_names)
        finetune(some, network, sources, checkpoint, settings=own, **options)
        checkpoint.unlink()

    # The first batch of a shape takes longer than those that follow.
    _per_image(images, settings.batch_size, work)
    taken, _ = _per_image(images, TRIED_BATCHES * settings.batch_size, work)
    state = network.module.state_dict().values()
    return taken, sum(value.numel() * value.element_size() for value in state)


def _settings(recipe: Recipe):
    from coolhead.lab.images.finetuning import FinetuneSettings

    return FinetuneSettings(**recipe.finetune or {})
