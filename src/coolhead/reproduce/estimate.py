"""How long the steps will take and how much disk, measured on a few images first."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coolhead.datasets.images import ImageTable
from coolhead.experiment.protocol import Protocol
from coolhead.experiment.splits import make_splits
from coolhead.progress import heard_by, progress_bars
from coolhead.reproduce.steps import Recipe, Step

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
    from coolhead.torch.images.backbones import load_backbone
    from coolhead.torch.images.extraction import extract

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
    from coolhead.torch.images.backbones import load_backbone
    from coolhead.torch.images.finetuning import finetune

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
    from coolhead.torch.images.finetuning import FinetuneSettings

    return FinetuneSettings(**recipe.finetune or {})
