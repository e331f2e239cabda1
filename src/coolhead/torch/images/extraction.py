"""Features of images by any network, as an archive; resumable row by row."""

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np
import torch
from joblib import cpu_count

from coolhead.archive import DomainArchive, load_archive
from coolhead.datasets.folders import list_images
from coolhead.datasets.images import BadImage, ImageTable, refuse_problems
from coolhead.files import check_output
from coolhead.progress import progress_bar
from coolhead.torch.images.backbones import Backbone, load_backbone
from coolhead.torch.images.batches import ImageBatch, plan_batches, read_batches
from coolhead.torch.images.engines import (
    ENGINES,
    Answers,
    Engine,
    check_device,
    open_engine,
)
from coolhead.torch.images.shards import ShardFolder
from coolhead.torch.images.transform import ImageTransform, read_image
from coolhead.torch.images.weights import weights_checksum

SHARD_ROWS = 512
PROBED = 4


def extract(
    images: ImageTable | str | PathLike,
    backbone: Backbone | torch.nn.Module | str,
    out: str | PathLike,
    *,
    transform: ImageTransform | None = None,
    feature_layer: str | None = None,
    logits: bool = False,
    dtype: str = "float16",
    engine: str = "auto",
    batch_size: int = 64,
    workers: int | None = None,
    device: str = "cpu",
    skip_bad: bool = False,
    metadata: dict[str, Any] | None = None,
    progress: bool = False,
) -> DomainArchive:
    """Run every image through a network and write its features to one archive.

    Finished rows are kept in the folder ``OUT.parts`` until the archive is written:
    after a kill, the same call goes on from them and gives the same bytes.

    Parameters
    ----------
    images : ImageTable or path of a folder
    backbone : Backbone, module or name
        A name is given to :func:`load_backbone`; a module needs `transform`.
    out : path of the archive
    feature_layer : str, optional
        Layer whose output is the features; by default the classifier's input.
    logits : bool
        Keep the network's output as well; its width must be the number of classes.
    dtype : {"float16", "float32"}
    engine : {"auto", "onnx", "torch"}
        What runs the network. "auto" is ONNX Runtime where it is installed and the
        device is a CPU, provided that it agrees with torch on a few images.
    batch_size : int
        Of torch; ONNX Runtime takes one image at a time.
    workers : int, optional
        Threads that read images, and run ONNX; by default one per core.
    skip_bad : bool
        Leave unreadable images out and list them in the metadata.
    metadata : dict, optional
        What else the archive's metadata should tell.

    Returns
    -------
    DomainArchive
        Memory-mapped from `out`.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2))
    >>> backbone = ch.torch.Backbone(network, ch.torch.ImageTransform(size=32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("photo/cat", "photo/dog", "sketch/cat", "sketch/dog"):
    ...         Path(folder, "images", name).mkdir(parents=True)
    ...         Image.new("RGB", (64, 64)).save(Path(folder, "images", name, "1.png"))
    ...     out = f"{folder}/features.safetensors"
    ...     print(ch.torch.extract(f"{folder}/images", backbone, out, engine="torch"))
    ...
    DomainArchive(4 rows, 2 classes, features 3072 x float16; photo 2, sketch 2)
    """
    workers = cpu_count() if workers is None else workers
    _check_options(dtype, engine, batch_size, workers, device)
    check_output(out)
    if not isinstance(images, ImageTable):
        images = list_images(
            images, skip_bad=skip_bad, decode=True, workers=workers, progress=progress
        )
    network = _as_backbone(backbone, transform, feature_layer)
    paths = [images.root / path for path in images.paths]
    n_classes = len(images.class_names) if logits else None
    options = {"n_classes": n_classes, "batch_size": batch_size, "device": device}
    with open_engine(engine, network, _probe(images, network), **options) as chosen:
        plan = _plan(images, network, chosen, n_classes, dtype, device)
        batches = plan_batches(len(images), chosen.batch_size, SHARD_ROWS)
        with (
            ShardFolder(f"{out}.parts", plan) as shards,
            progress_bar("images", len(images), shown=progress) as advance,
        ):
            missing = [b for b in batches if not shards.path(b.shard).exists()]
            advance(len(images) - sum(batch.size for batch in missing))
            found = read_batches(
                paths, missing, network.transform, workers, reader=chosen.read
            )
            for shard, outputs, problems in _shards(found, chosen, dtype, advance):
                shards.write(shard, outputs, problems)
            archive = _collect(shards, batches[-1].shard + 1, images, skip_bad)
            told = archive.metadata | (metadata or {})
            archive.replace(metadata=told).save(out)
            shards.remove()
    return load_archive(out)


def _as_backbone(backbone, transform, feature_layer) -> Backbone:
    if isinstance(backbone, str):
        backbone = load_backbone(backbone)
    elif isinstance(backbone, torch.nn.Module):
        if transform is None:
            raise ValueError(
                "transform is None: say how images become the module's inputs"
            )
        backbone = Backbone(backbone, transform, type(backbone).__name__)
    return Backbone(
        backbone.module,
        transform or backbone.transform,
        backbone.name,
        feature_layer or backbone.feature_layer,
    )


def _check_options(dtype, engine, batch_size, workers, device) -> None:
    if dtype not in ("float16", "float32") or batch_size < 1 or workers < 1:
        raise ValueError(
            "dtype must be float16 or float32, batch_size and workers at least 1; "
            f"found {dtype!r}, {batch_size}, {workers}"
        )
    if engine not in ENGINES or (engine == "onnx" and device != "cpu"):
        raise ValueError(
            f"engine must be one of {', '.join(ENGINES)}, and onnx runs on device cpu; "
            f"found {engine!r} on {device!r}"
        )
    check_device(device)


def _probe(images: ImageTable, network: Backbone) -> np.ndarray:
    """Return a few images, from all over the table, to try an engine on."""
    rows = np.linspace(0, len(images) - 1, PROBED).astype(int)
    read = [read_image(images.root / images.paths[i], network.transform) for i in rows]
    good = [pixels for pixels in read if not isinstance(pixels, str)]
    if not good:
        bad = zip(images.paths[rows], read, strict=True)
        refuse_problems(images.root, [BadImage(str(p), str(why)) for p, why in bad])
    return np.stack(good)


def _plan(
    images: ImageTable, network: Backbone, engine: Engine, n_classes, dtype, device
) -> dict[str, Any]:
    """Everything that decides the archive's rows; it becomes their provenance."""
    packages = ("coolhead", "pillow", *engine.packages)
    return {
        "backbone": network.name,
        "weights_sha256": weights_checksum(network.module),
        "feature_layer": network.feature_layer or "input of the classifier",
        "transform": network.transform.settings(),
        "logits": n_classes,
        "dtype": dtype,
        "engine": engine.name,
        "batch_size": engine.batch_size,
        "device": device,
        "n_images": len(images),
        "images_sha256": images.checksum(),
        "versions": {name: version(name) for name in packages},
    }


def _shards(
    batches: Iterator[ImageBatch], engine: Engine, dtype: str, advance
) -> Iterator[tuple[int, dict[str, np.ndarray], list]]:
    """Yield (shard, arrays, problems) as soon as all batches of a shard are done."""
    parts: list[dict[str, np.ndarray]] = []
    problems: list = []
    for batch in batches:
        problems += [[int(row), reason] for row, reason in batch.problems]
        if len(batch.rows):
            parts.append(_arrays(batch, engine.finish(batch.values), dtype))
        advance(batch.plan.size)
        if batch.plan.ends_shard:
            names = parts[0] if parts else {}
            arrays = {n: np.concatenate([p[n] for p in parts]) for n in names}
            yield batch.plan.shard, arrays, problems
            parts, problems = [], []


def _arrays(batch: ImageBatch, answers: Answers, dtype: str) -> dict[str, np.ndarray]:
    """Return the arrays of one batch in the wanted precision, checked."""
    with np.errstate(over="ignore"):  # told below, with the image's number
        arrays = answers | {"features": answers["features"].astype(dtype)}
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            row = batch.rows[np.argmin(np.isfinite(values).all(axis=1))]
            msg = f"{name} of image number {row} are not finite in {values.dtype}"
            msg += "; wanted finite numbers, which float32 may hold"
            raise ValueError(msg)
    return arrays | {"rows": batch.rows}


def _collect(
    shards: ShardFolder, n_shards: int, images: ImageTable, skip_bad: bool
) -> DomainArchive:
    """Put all shards together; unreadable images are refused or listed."""
    read = [shards.read(index) for index in range(n_shards)]
    notes = [note for _, notes in read for note in notes]
    bad = [BadImage(str(images.paths[row]), reason) for row, reason in notes]
    if bad and not skip_bad:
        refuse_problems(images.root, bad)
    parts = [arrays for arrays, _ in read if arrays]
    if not parts:
        raise ValueError(f"{images.root} holds no readable image")
    columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    kept = images.rows(columns.pop("rows"))
    checksum = hashlib.sha256(columns["features"].data).hexdigest()
    skipped = [str(problem) for problem in (*images.problems, *bad)]
    record = {**shards.plan, "skipped": skipped, "features_sha256": checksum}
    return DomainArchive(
        **columns,
        labels=kept.labels,
        domains=kept.domain_codes,
        domain_names=kept.domain_names,
        class_names=kept.class_names,
        ids=kept.ids,
        metadata={"extraction": record, "differences": list(images.differences)},
    )
