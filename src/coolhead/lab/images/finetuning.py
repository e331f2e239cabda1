"""Fine-tune a whole network on the images of one or several source domains."""

import math
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import cpu_count

from coolhead.io.archive import DomainArchive
from coolhead.io.files import atomic_path, check_output
from coolhead.io.safetensors import tensors_path
from coolhead.lab.images.backbones import (
    Backbone,
    forked_random,
    load_backbone,
    weights_checksum,
)
from coolhead.lab.images.divide import division_record, split_large_small
from coolhead.lab.images.extraction import check_device, extract, read_batches
from coolhead.lab.images.table import ImageTable
from coolhead.lab.images.transform import Reader, read_augmented, read_plain
from coolhead.models.libraries import frozen
from coolhead.progress import progress_bar
from coolhead.torch.features import find_layer


@dataclass(frozen=True)
class FinetuneSettings:
    """SGD with Nesterov momentum and a cosine from the first step to the last.

    The classifier, being new, learns ten times as fast as the rest. The share `frozen`
    of the layers, counted from the input, stays as it was: what sees edges and
    colours already does, and its backward pass is most of the work.
    """

    epochs: int = 30
    batch_size: int = 48
    learning_rate: float = 1e-3
    classifier_factor: float = 10.0
    momentum: float = 0.9
    weight_decay: float = 5e-4
    frozen: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 2 or not self.learning_rate > 0:
            raise ValueError(
                "epochs must be at least 1, batch_size at least 2 and learning_rate "
                f"positive; found {self}"
            )
        if not 0 <= self.frozen < 1:
            raise ValueError(
                f"frozen must be a share of the layers in [0, 1); found {self.frozen}"
            )


def finetune(
    images: ImageTable,
    backbone: Backbone,
    source: list[str],
    checkpoint: str | PathLike,
    *,
    small: np.ndarray | None = None,
    settings: FinetuneSettings | None = None,
    workers: int | None = None,
    device: str = "cpu",
    random_state: int = 0,
    progress: bool = False,
) -> list[dict[str, float]]:
    """Train ``backbone.module`` in place and return its learning curve.

    After every epoch the state is kept in `checkpoint`; the same call after a kill
    goes on from there, and gives the weights it would have given.

    Parameters
    ----------
    images : ImageTable
        Images of the domains in `source` are used, the others never opened.
    backbone : Backbone
        Its module must end in a linear layer with one output per class.
    source : list of str
        Domains to train on.
    checkpoint : path-like
        File that keeps the state after every epoch.
    small : (n,) bool, optional
        Rows kept out of training; of the sources', the epoch with the highest
        accuracy is returned. Without them, the last epoch.
    settings : FinetuneSettings, optional
        Epochs, batches, learning rate and others.
    workers : int, optional
        Threads that read images; by default one per core.
    device : str, default="cpu"
        Device of the network, as torch names it.
    random_state : int, default=0
        Seed of shuffles and augmentation.
    progress : bool, default=False
        Show a progress bar.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from torch import nn
    >>> from coolhead.lab.images.finetuning import FinetuneSettings
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2))
    >>> transform = ch.lab.images.ImageTransform(size=32)
    >>> backbone = ch.lab.images.Backbone(network, transform)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("photo/cat", "photo/dog", "sketch/cat", "sketch/dog"):
    ...         Path(folder, name).mkdir(parents=True)
    ...         Image.new("RGB", (64, 64)).save(Path(folder, name, "1.png"))
    ...     images = ch.lab.images.list_images(folder)
    ...     short = FinetuneSettings(epochs=2, batch_size=2)
    ...     kept = f"{folder}/network.pt"
    ...     finetune = ch.lab.images.finetune
    ...     curve = finetune(images, backbone, ["photo"], kept, settings=short)
    ...
    >>> len(curve)
    2
    """
    check_device(device)
    settings = settings or FinetuneSettings()
    sources = images.select(*source)
    inside = np.isin(images.domains, source)
    held_out = np.zeros(len(images), bool) if small is None else np.asarray(small, bool)
    if held_out.shape != inside.shape:
        raise ValueError(
            f"small must have shape {inside.shape}; found {held_out.shape}"
        )
    large = sources.rows(~held_out[inside])
    watched = sources.rows(held_out[inside])
    if len(large) < settings.batch_size:
        raise ValueError(
            f"batch_size {settings.batch_size} exceeds the {len(large)} source images"
        )
    _check_classifier(backbone, len(images.class_names))
    run = _Run(backbone, settings, device, workers or cpu_count(), random_state)
    run.resume(Path(checkpoint), _identity(large, backbone, settings, random_state))
    n_left = (settings.epochs - len(run.curve)) * len(large)
    with progress_bar("training", n_left, shown=progress) as advance:
        while len(run.curve) < settings.epochs:
            run.epoch(large, watched, advance)
            run.keep(Path(checkpoint))
    run.end()
    return run.curve


def _check_classifier(backbone: Backbone, n_classes: int) -> None:
    layer = find_layer(backbone.module, None)
    if not isinstance(layer, torch.nn.Linear) or layer.out_features != n_classes:
        found = getattr(layer, "out_features", "no linear layer")
        raise ValueError(
            f"the network must end in {n_classes} linear outputs; found {found}"
        )


def _identity(images, backbone, settings, random_state) -> dict[str, Any]:
    """What a checkpoint must agree on before it is continued."""
    return {
        "start_sha256": weights_checksum(backbone.module),
        "settings": asdict(settings),
        "random_state": random_state,
        "images_sha256": images.checksum(),
    }


class _Run:
    """The state of one training run: module, optimiser, curve, best epoch."""

    def __init__(self, backbone, settings, device, workers, random_state):
        # Convolutions take half the time when the channels of a pixel lie together.
        self.module = backbone.module.to(device, memory_format=torch.channels_last)
        self.frozen = first_layers(self.module, settings.frozen)
        self.transform = backbone.transform
        self.settings, self.device = settings, device
        self.workers, self.random_state = workers, random_state
        self.optimizer = _optimizer(self.module, self.frozen, settings)
        self.curve: list[dict[str, float]] = []
        self.best: dict[str, torch.Tensor] = {}
        self.identity: dict[str, Any] = {}

    def resume(self, path: Path, identity: dict[str, Any]) -> None:
        """Go on from a checkpoint of the same run, if there is one."""
        self.identity = identity
        if not path.exists():
            return
        state = _read_checkpoint(path, self.device)
        for key, wanted in identity.items():
            if state["identity"].get(key) != wanted:
                raise ValueError(
                    f"checkpoint {path} is of another run ({key} differs): delete it"
                )
        self.module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.curve, self.best = state["curve"], state["best"]

    def keep(self, path: Path) -> None:
        """Write the checkpoint; it appears whole or not at all."""
        state = {
            "identity": self.identity,
            "module": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "curve": self.curve,
            "best": self.best,
        }
        try:
            with atomic_path(path) as temporary, open(temporary, "wb") as stream:
                torch.save(state, stream)
        except RuntimeError as error:
            # torch's own words for a full disk; the system's stand behind them.
            msg = f"cannot write {path}: {error.__context__ or error}"
            raise OSError(msg) from error

    def end(self) -> None:
        """Leave the best weights in a module that is otherwise as it came.

        The same weights read from a file then give the same bits.
        """
        self.module.load_state_dict(self.best)
        self.module.requires_grad_(True)
        self.module.to(memory_format=torch.contiguous_format)

    def epoch(self, large: ImageTable, watched: ImageTable, advance) -> None:
        """Train one epoch; remember the weights if they are the best so far."""
        number = len(self.curve)
        # One generator per epoch, so that a resumed run draws the same numbers.
        rng = np.random.default_rng([self.random_state, number])
        order = rng.permutation(len(large))
        reader = read_augmented(rng.integers(2**63, size=len(order)))
        n_steps = len(order) // self.settings.batch_size
        order = large.rows(order[: n_steps * self.settings.batch_size])
        total = 0.0
        self.module.train()
        for layer in self.frozen:
            layer.eval()
        with forked_random(self.random_state, number):
            for step, (x, y) in enumerate(self._batches(order, reader)):
                self._set_rate((number + step / n_steps) / self.settings.epochs)
                self.optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(self.module(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
                advance(len(y))
        record = {"epoch": number + 1, "loss": total / n_steps}
        self._remember(record | self._accuracy(watched))

    def _remember(self, record: dict[str, float]) -> None:
        best = max((e.get("small_accuracy", 0) for e in self.curve), default=-1)
        self.curve.append(record)
        if record.get("small_accuracy", 2) > best:
            state = self.module.state_dict()
            self.best = {name: value.clone() for name, value in state.items()}

    def _accuracy(self, watched: ImageTable) -> dict[str, float]:
        if len(watched) == 0:
            return {}
        with frozen(self.module):
            correct = sum(
                int((self.module(x).argmax(1) == y).sum())
                for x, y in self._batches(watched)
            )
        return {"small_accuracy": correct / len(watched)}

    def _batches(self, images: ImageTable, reader: Reader = read_plain):
        paths = [images.root / path for path in images.paths]
        size, workers = self.settings.batch_size, self.workers
        batches = read_batches(paths, size, self.transform, workers, reader=reader)
        for batch in batches:
            if batch.problems:
                row, reason = batch.problems[0]
                raise ValueError(
                    f"{paths[row]}: {reason}; list images with decode and skip_bad"
                )
            labels = torch.from_numpy(images.labels[batch.rows])
            pixels = torch.from_numpy(batch.values)
            pixels = pixels.to(self.device, memory_format=torch.channels_last)
            yield pixels, labels.to(self.device)

    def _set_rate(self, share: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["full_rate"] * 0.5 * (1 + math.cos(math.pi * share))


def _read_checkpoint(path: Path, device: str) -> dict[str, Any]:
    try:
        state: Any = torch.load(path, map_location=device, weights_only=True)
        if {"identity", "module", "optimizer", "curve", "best"} <= state.keys():
            return state
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
    else:
        reason = "it holds something else"
    raise ValueError(
        f"{path} is no checkpoint of coolhead, or is damaged ({reason}): move it away, "
        "or write to another place"
    )


def first_layers(module: torch.nn.Module, share: float) -> list[torch.nn.Module]:
    """Return the first `share` of the layers that have parameters of their own."""
    layers = [m for m in module.modules() if list(m.parameters(recurse=False))]
    return layers[: int(share * len(layers))]


def _optimizer(module: torch.nn.Module, frozen, settings: FinetuneSettings):
    classifier = find_layer(module, None)
    own = list(classifier.parameters()) if classifier is not None else []
    others = {id(parameter) for parameter in own}
    for layer in frozen:
        for parameter in layer.parameters(recurse=False):
            parameter.requires_grad_(False)
            others.add(id(parameter))
    rest = [p for p in module.parameters() if id(p) not in others]
    rate = settings.learning_rate
    groups = [
        {"params": rest, "full_rate": rate},
        {"params": own, "full_rate": rate * settings.classifier_factor},
    ]
    return torch.optim.SGD(
        [group for group in groups if group["params"]],
        lr=rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.momentum > 0,
    )


def finetune_and_extract(
    images: ImageTable,
    source: list[str],
    out: str | PathLike,
    *,
    backbone: str,
    train_images: ImageTable | None = None,
    weights: str | PathLike | None = None,
    size: int | None = None,
    settings: dict[str, Any] | None = None,
    small: float = 0.2,
    stratify: bool = False,
    division_seed: int | None = None,
    random_state: int = 0,
    skip_bad: bool = False,
    **options: Any,
) -> DomainArchive:
    """Fine-tune a backbone on the sources' Large images, then run it on all images.

    Beside `out` lies ``OUT.checkpoint`` while the work lasts, which the same call
    continues after a kill, and ``OUT.weights.safetensors`` when it is done.

    Parameters
    ----------
    train_images : ImageTable, optional
        Images of its own to learn from, all of the sources', as DomainNet's train
        lists; no image of `images` is then held out.
    size : int, optional
        Side of the images in pixels, where it is not the backbone's own.
    settings : dict
        Fields of :class:`FinetuneSettings`.
    small, stratify, division_seed
        Share and draw of the Small images.
        The seed is `random_state` where it is None.
    **options
        ``workers``, ``device`` and ``progress``.
    """
    beside = Path(f"{out}.weights.safetensors")
    check_output(beside, inputs=[] if weights is None else [weights])
    network = load_backbone(
        backbone,
        weights=None if weights is None else Path(weights),
        n_classes=len(images.class_names),
        size=size,
        random_state=random_state,
    )
    chosen = FinetuneSettings(**settings or {})
    checkpoint = Path(f"{out}.checkpoint")
    seed = random_state if division_seed is None else division_seed
    held_out = None
    recorded: dict[str, Any] = {"division": {"separate": True}}
    if train_images is None:
        held_out = split_large_small(images, small, seed, stratify=stratify)
        recorded = division_record(small, seed, stratify=stratify)
    curve = finetune(
        images if train_images is None else train_images,
        network,
        source,
        checkpoint,
        small=held_out,
        settings=chosen,
        random_state=random_state,
        **options,
    )
    _save_weights(network.module, beside)
    record = {"kind": "finetune", "source": source, "random_state": random_state}
    record |= {**asdict(chosen), "small": small, "curve": curve}
    archive = extract(
        images,
        network,
        out,
        logits=True,
        dtype="float32",
        skip_bad=skip_bad,
        metadata=recorded | {"head": record},
        **options,
    )
    checkpoint.unlink()
    return archive


def _save_weights(module, path: Path) -> None:
    from safetensors.torch import save_file

    state = {name: value.contiguous() for name, value in module.state_dict().items()}
    with tensors_path(path) as temporary:
        save_file(state, temporary)
