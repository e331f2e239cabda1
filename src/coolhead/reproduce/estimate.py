"""How long the steps will take and how much disk, measured on a few images first."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coolhead.datasets.images import ImageTable
from coolhead.reproduce.steps import Recipe, Step

TRIED_IMAGES = 16


@dataclass(frozen=True)
class Cost:
    """Seconds and bytes of what is still to do."""

    seconds: float
    n_bytes: int


def estimate(steps: Sequence[Step], recipe: Recipe) -> Cost:
    """Try the recipe on a few images, and multiply.

    Trying also finds at once what would fail hours later: weights that do not fit,
    a backbone that is not installed, a device that is not there.
    """
    if not steps:
        return Cost(0.0, 0)
    with tempfile.TemporaryDirectory() as folder:
        read, width = _try_extraction(steps[0].images, recipe, Path(folder))
        learned, epochs = 0.0, 0
        if recipe.finetune is not None:
            epochs = _settings(recipe).epochs
            learned = _try_training(steps[0].images, recipe, Path(folder))
    seconds, n_bytes = 0.0, 0
    for step in steps:
        n_images, n_classes = len(step.images), len(step.images.class_names)
        # A fine-tuned network is also looked at after every epoch, on Small rows.
        looked_at = n_images + epochs * step.trained_rows // 4
        seconds += read * looked_at + learned * epochs * step.trained_rows
        n_bytes += n_images * (4 * (width + n_classes) if epochs else 2 * width)
    return Cost(seconds, n_bytes)


def _seconds_per_image(
    images: ImageTable, count: int, work: Callable[[ImageTable], Any]
) -> float:
    """From `count` images to three times as many: what starting costs drops out."""
    work(images.rows(slice(count)))
    taken = []
    for number in (count, 3 * count):
        rows = np.linspace(0, len(images) - 1, min(number, len(images)))
        some = images.rows(np.unique(rows.astype(int)))
        begun = time.monotonic()
        work(some)
        taken.append((time.monotonic() - begun, len(some)))
    (few, n_few), (many, n_many) = taken
    # On a busy machine the larger number may be the faster one.
    return (many - few) / (n_many - n_few) if many > few else many / n_many


def _try_extraction(
    images: ImageTable, recipe: Recipe, folder: Path
) -> tuple[float, int]:
    """Return the seconds per image, and the number of features."""
    from coolhead.torch.images.backbones import load_backbone
    from coolhead.torch.images.extraction import extract

    network = load_backbone(recipe.backbone, **recipe.network)
    options: dict[str, Any] = recipe.options | {"progress": False}
    widths = []

    def work(some: ImageTable) -> None:
        out = folder / f"{len(widths)}.safetensors"
        archive: Any = extract(some, network, out, skip_bad=recipe.skip_bad, **options)
        widths.append(archive.features.shape[1])

    return _seconds_per_image(images, TRIED_IMAGES, work), widths[0]


def _try_training(images: ImageTable, recipe: Recipe, folder: Path) -> float:
    """Return the seconds per image and epoch, of one epoch on a few images."""
    from coolhead.torch.images.backbones import load_backbone
    from coolhead.torch.images.finetuning import finetune

    n_classes = len(images.class_names)
    network = load_backbone(recipe.backbone, n_classes=n_classes, **recipe.network)
    settings = replace(_settings(recipe), epochs=1)
    options: dict[str, Any] = recipe.options | {"progress": False}
    options.pop("engine", None)

    def work(some: ImageTable) -> None:
        own = replace(settings, batch_size=min(settings.batch_size, len(some)))
        checkpoint = folder / "checkpoint"
        checkpoint.unlink(missing_ok=True)
        sources = list(some.domain_names)
        finetune(some, network, sources, checkpoint, settings=own, **options)

    return _seconds_per_image(images, settings.batch_size, work)


def _settings(recipe: Recipe):
    from coolhead.torch.images.finetuning import FinetuneSettings

    return FinetuneSettings(**recipe.finetune or {})
