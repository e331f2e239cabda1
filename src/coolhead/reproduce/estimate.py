"""How long the steps will take and how much disk, measured on a few images first."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coolhead.reproduce.steps import Recipe, Step

TRIED_IMAGES = 48


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
    read, width = _try_extraction(steps[0], recipe)
    seconds, n_bytes = 0.0, 0
    learned = _try_training(steps[0], recipe) if recipe.finetune is not None else 0.0
    epochs = _settings(recipe).epochs if recipe.finetune is not None else 0
    for step in steps:
        n_images, n_classes = len(step.images), len(step.images.class_names)
        # A fine-tuned network is also looked at after every epoch, on Small rows.
        looked_at = n_images + epochs * step.trained_rows // 4
        seconds += read * looked_at + learned * epochs * step.trained_rows
        n_bytes += n_images * (4 * (width + n_classes) if epochs else 2 * width)
    return Cost(seconds, n_bytes)


def _some(step: Step, count: int):
    rows = np.linspace(0, len(step.images) - 1, min(count, len(step.images)))
    return step.images.rows(np.unique(rows.astype(int)))


def _try_extraction(step: Step, recipe: Recipe) -> tuple[float, int]:
    """Return the seconds per image, and the number of features."""
    from coolhead.torch.images.backbones import load_backbone
    from coolhead.torch.images.extraction import extract

    images = _some(step, TRIED_IMAGES)
    network = load_backbone(recipe.backbone, weights=recipe.weights, size=recipe.size)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tried.safetensors"
        options: dict[str, Any] = recipe.options | {"progress": False}
        begun = time.monotonic()
        archive = extract(images, network, out, skip_bad=recipe.skip_bad, **options)
        seconds = time.monotonic() - begun
        return seconds / len(images), _width(archive.features)


def _width(features: Any) -> int:
    return features.shape[1]


def _try_training(step: Step, recipe: Recipe) -> float:
    """Return the seconds per image and epoch, of one epoch on a few images."""
    from coolhead.torch.images.backbones import load_backbone
    from coolhead.torch.images.finetuning import finetune

    network = load_backbone(
        recipe.backbone,
        weights=recipe.weights,
        size=recipe.size,
        n_classes=len(step.images.class_names),
    )
    settings = replace(_settings(recipe), epochs=1)
    images = _some(step, max(TRIED_IMAGES, 2 * settings.batch_size))
    settings = replace(settings, batch_size=min(settings.batch_size, len(images)))
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = recipe.options | {"progress": False}
        begun = time.monotonic()
        finetune(
            images,
            network,
            list(images.domain_names),
            Path(folder) / "tried",
            settings=settings,
            **options,
        )
        return (time.monotonic() - begun) / len(images)


def _settings(recipe: Recipe):
    from coolhead.torch.images.finetuning import FinetuneSettings

    return FinetuneSettings(**recipe.finetune or {})
