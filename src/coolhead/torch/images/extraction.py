"""Features of images by any network, as an archive; resumable row by row."""

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np
import torch

from coolhead.archive import DomainArchive, load_archive
from coolhead.datasets.folders import list_images
from coolhead.datasets.images import BadImage, ImageTable, refuse_problems
from coolhead.files import check_output
from coolhead.models.torch import frozen
from coolhead.progress import progress_bar
from coolhead.torch.calibrated.reading import feature_reader
from coolhead.torch.images.backbones import Backbone, load_backbone, weights_checksum
from coolhead.torch.images.batches import ImageBatch, plan_batches, read_batches
from coolhead.torch.images.shards import ShardFolder
from coolhead.torch.images.transform import ImageTransform

SHARD_ROWS = 512


def extract(
    images: ImageTable | str | PathLike,
    backbone: Backbone | torch.nn.Module | str,
    out: str | PathLike,
    *,
    transform: ImageTransform | None = None,
    feature_layer: str | None = None,
    logits: bool = False,
    dtype: str = "float16",
    batch_size: int = 64,
    workers: int = 2,
    device: str = "cpu",
    skip_bad: bool = False,
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
    skip_bad : bool
        Leave unreadable images out and list them in the metadata.

    Returns
    -------
    DomainArchive
        Memory-mapped from `out`.
    """
    if dtype not in ("float16", "float32") or batch_size < 1 or workers < 1:
        msg = (
            "dtype must be float16 or float32, batch_size and workers at least 1; "
            f"found {dtype!r}, {batch_size}, {workers}"
        )
        raise ValueError(msg)
    check_output(out)
    if not isinstance(images, ImageTable):
        images = list_images(images, skip_bad=skip_bad)
    network = _as_backbone(backbone, transform, feature_layer)
    plan = _plan(images, network, logits, dtype, batch_size, device)
    batches = plan_batches(len(images), batch_size, SHARD_ROWS)
    paths = [images.root / path for path in images.paths]
    with (
        ShardFolder(f"{out}.parts", plan) as shards,
        progress_bar("images", len(images), shown=progress) as advance,
    ):
        missing = [batch for batch in batches if not shards.path(batch.shard).exists()]
        advance(len(images) - sum(batch.size for batch in missing))
        found = read_batches(paths, missing, network.transform, workers)
        for shard, outputs, problems in _shards(found, network, plan, device, advance):
            shards.write(shard, outputs, problems)
        archive = _collect(shards, batches[-1].shard + 1, images, skip_bad)
        archive.save(out)
        shards.remove()
    return load_archive(out)


def _as_backbone(backbone, transform, feature_layer) -> Backbone:
    if isinstance(backbone, str):
        backbone = load_backbone(backbone)
    elif isinstance(backbone, torch.nn.Module):
        if transform is None:
            msg = "transform is None: say how images become the module's inputs"
            raise ValueError(msg)
        backbone = Backbone(backbone, transform, type(backbone).__name__)
    return Backbone(
        backbone.module,
        transform or backbone.transform,
        backbone.name,
        feature_layer or backbone.feature_layer,
    )


def _plan(
    images: ImageTable, network: Backbone, logits: bool, dtype: str, batch_size, device
) -> dict[str, Any]:
    """Everything that decides the archive's rows; it becomes their provenance."""
    digest = hashlib.sha256()
    for path in images.paths:
        digest.update(f"{path}\0{(images.root / path).stat().st_size}\0".encode())
    return {
        "backbone": network.name,
        "weights_sha256": weights_checksum(network.module),
        "feature_layer": network.feature_layer or "input of the classifier",
        "transform": network.transform.settings(),
        "logits": len(images.class_names) if logits else None,
        "dtype": dtype,
        "batch_size": batch_size,
        "device": device,
        "n_images": len(images),
        "images_sha256": digest.hexdigest(),
        "versions": {name: version(name) for name in ("coolhead", "torch", "pillow")},
    }


def _shards(
    batches: Iterator[ImageBatch], network: Backbone, plan: dict, device: str, advance
) -> Iterator[tuple[int, dict[str, np.ndarray], list]]:
    """Yield (shard, arrays, problems) as soon as all batches of a shard are done."""
    parts: list[dict[str, np.ndarray]] = []
    problems: list = []
    module = network.module.to(device)
    with frozen(module), feature_reader(module, network.feature_layer) as read:
        for batch in batches:
            problems += [[int(row), reason] for row, reason in batch.problems]
            if len(batch.rows):
                features, output = read(torch.from_numpy(batch.images).to(device))
                parts.append(_arrays(batch, features, output, plan))
            advance(batch.plan.size)
            if batch.plan.ends_shard:
                names = parts[0] if parts else {}
                arrays = {n: np.concatenate([p[n] for p in parts]) for n in names}
                yield batch.plan.shard, arrays, problems
                parts, problems = [], []


def _arrays(batch, features, output, plan: dict) -> dict[str, np.ndarray]:
    """Return the arrays of one batch in the wanted precision, checked."""
    with np.errstate(over="ignore"):  # told below, with the image's number
        arrays = {"features": features.float().cpu().numpy().astype(plan["dtype"])}
    if plan["logits"] is not None:
        if output.ndim != 2 or output.shape[1] != plan["logits"]:
            msg = (
                f"the network gives outputs of shape {tuple(output.shape)}, the images "
                f"have {plan['logits']} classes: leave logits out"
            )
            raise ValueError(msg)
        arrays["logits"] = output.float().cpu().numpy()
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
        msg = f"{images.root} holds no readable image"
        raise ValueError(msg)
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
