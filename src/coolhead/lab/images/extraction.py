"""Run a folder of images through a network, and keep its features in an archive."""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import cpu_count

from coolhead.io.archive import DomainArchive
from coolhead.io.files import check_output, check_output_folder, only_one, write_text
from coolhead.io.reading import load_archive
from coolhead.lab.images.backbones import Backbone, load_backbone, weights_checksum
from coolhead.lab.images.table import BadImage, ImageTable, list_images, refuse_problems
from coolhead.lab.images.transform import ImageTransform, Reader, read_plain
from coolhead.models.libraries import frozen
from coolhead.progress import progress_bar
from coolhead.torch.features import feature_reader

READ_AHEAD = 2


@dataclass(frozen=True)
class ImageBatch:
    """Arrays (b, ...) of the images of one batch, their rows, and unreadable images."""

    values: np.ndarray
    rows: np.ndarray
    problems: list[tuple[int, str]]


def read_batches(
    paths: Sequence[Path],
    batch_size: int,
    transform: ImageTransform,
    workers: int,
    *,
    reader: Reader = read_plain,
) -> Iterator[ImageBatch]:
    """Yield the batches in order, reading some ahead in threads.

    Threads, since Pillow decodes and resizes outside the interpreter's lock.
    """
    # Batches of few images must not leave workers idle.
    ahead = batch_size * max(READ_AHEAD, 2 * workers // batch_size)
    with ThreadPoolExecutor(workers) as pool:
        jobs = (pool.submit(reader, *job, transform) for job in enumerate(paths))
        waiting: deque[Future] = deque(islice(jobs, ahead))
        try:
            for start in range(0, len(paths), batch_size):
                waiting.extend(islice(jobs, batch_size))
                n_rows = min(batch_size, len(paths) - start)
                results = [waiting.popleft().result() for _ in range(n_rows)]
                yield _batch(start, results)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _batch(start: int, results: list[np.ndarray | str]) -> ImageBatch:
    numbered = list(enumerate(results, start))
    good = [(row, found) for row, found in numbered if isinstance(found, np.ndarray)]
    return ImageBatch(
        values=np.stack([found for _, found in good]) if good else np.empty(0, "f4"),
        rows=np.array([row for row, _ in good], np.int64),
        problems=[(row, found) for row, found in numbered if isinstance(found, str)],
    )


def check_device(device: str) -> None:
    """Refuse a device that torch does not know, or does not have here."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = " ".join(str(error).split()).partition(". ")[0][:200]
        msg = f"device is {device!r}, which torch cannot use here ({reason})"
        raise ValueError(f"{msg}; wanted one such as cpu") from error


Outputs = tuple[torch.Tensor, torch.Tensor]


@contextmanager
def open_network(
    backbone: Backbone, device: str = "cpu"
) -> Iterator[Callable[[np.ndarray], Outputs]]:
    """Yield a function: pixels (b, 3, s, s) to features (b, d) and outputs (b, k)."""
    module = backbone.module.to(device)
    with frozen(module), feature_reader(module, backbone.feature_layer) as read:

        def run(pixels: np.ndarray) -> Outputs:
            # Convolutions are faster where the channels of a pixel lie together.
            images = torch.from_numpy(pixels)
            return read(images.to(device, memory_format=torch.channels_last))

        yield run


MARK, LOCK = "coolhead-extraction.json", "coolhead-extraction.lock"
SHARD_ROWS = 1024


@contextmanager
def shard_folder(folder: Path, plan: dict[str, Any]) -> Iterator[Path]:
    """Hold a folder of finished rows; one that was begun under another plan is refused.

    The plan says everything that decides the content of a row: mixing the rows of two
    plans would give a wrong archive.
    """
    check_output_folder(folder).mkdir(exist_ok=True)
    mark = folder / MARK
    names = [path.name for path in folder.iterdir()]
    if MARK not in names and not all(name.startswith((".", LOCK)) for name in names):
        raise FileExistsError(
            f"{folder} is a folder that coolhead did not make; wanted none of that "
            "name, for the finished rows: move it, or write to another place"
        )
    with only_one(folder / LOCK):
        if not mark.exists():
            write_text(mark, json.dumps(plan))
        _compare_plans(folder, mark.read_text(encoding="utf-8"), plan)
        try:
            yield folder
        finally:
            if not any(folder.glob("[0-9]*.safetensors")):
                mark.unlink()
                (folder / LOCK).unlink()
                with suppress(OSError):  # files of others stay, and their folder
                    folder.rmdir()


def _compare_plans(folder: Path, begun: str, plan: dict[str, Any]) -> None:
    try:
        before = dict(json.loads(begun))
    except (ValueError, TypeError):
        raise ValueError(
            f"{folder / MARK} is damaged: delete {folder}, and its rows are done anew"
        ) from None
    for key, now in json.loads(json.dumps(plan)).items():
        if before.get(key) != now:
            raise ValueError(
                f"{folder} was begun with {key}={before.get(key)!r}, now it is "
                f"{now!r}: run as before, or delete that folder"
            )


def extract(
    images: ImageTable | str | PathLike,
    backbone: Backbone | str,
    out: str | PathLike,
    *,
    logits: bool = False,
    dtype: str = "float16",
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
    images : ImageTable or path-like
        A path is that of a folder.
    backbone : Backbone or str
        A name is given to :func:`load_backbone`.
    out : path-like
        Path of the archive.
    logits : bool, default=False
        Keep the network's output as well; its width must be the number of classes.
    dtype : {"float16", "float32"}, default="float16"
        Type of the numbers in the archive.
    batch_size : int, default=64
        Images in one pass of the network.
    workers : int, default=None
        Threads that read images; by default one per core.
    device : str, default="cpu"
        Device of the network, as torch names it.
    skip_bad : bool, default=False
        Leave unreadable images out and list them in the metadata.
    metadata : dict, default=None
        Further entries of the archive's metadata.
    progress : bool, default=False
        Show a progress bar.

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
    >>> transform = ch.lab.images.ImageTransform(size=32)
    >>> backbone = ch.lab.images.Backbone(network, transform)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("photo/cat", "photo/dog", "sketch/cat", "sketch/dog"):
    ...         Path(folder, "images", name).mkdir(parents=True)
    ...         Image.new("RGB", (64, 64)).save(Path(folder, "images", name, "1.png"))
    ...     out = f"{folder}/features.safetensors"
    ...     print(ch.lab.images.extract(f"{folder}/images", backbone, out))
    ...
    DomainArchive(4 rows, 2 classes, features 3072 x float16; photo 2, sketch 2)
    """
    workers = cpu_count() if workers is None else workers
    if dtype not in ("float16", "float32") or batch_size < 1 or workers < 1:
        raise ValueError(
            "dtype must be float16 or float32, batch_size and workers at least 1; "
            f"found {dtype!r}, {batch_size}, {workers}"
        )
    check_device(device)
    check_output(out)
    if not isinstance(images, ImageTable):
        images = list_images(
            images, skip_bad=skip_bad, decode=True, workers=workers, progress=progress
        )
    if isinstance(backbone, str):
        backbone = load_backbone(backbone)
    plan = {
        "backbone": backbone.name,
        "weights_sha256": weights_checksum(backbone.module),
        "feature_layer": backbone.feature_layer or "input of the classifier",
        "transform": backbone.transform.settings(),
        "logits": len(images.class_names) if logits else None,
        "dtype": dtype,
        "batch_size": batch_size,
        "device": device,
        "n_images": len(images),
        "images_sha256": images.checksum(),
        "versions": {name: version(name) for name in ("coolhead", "pillow", "torch")},
    }
    starts = range(0, len(images), max(1, SHARD_ROWS // batch_size) * batch_size)
    with (
        shard_folder(Path(f"{out}.parts"), plan) as folder,
        progress_bar("images", len(images), shown=progress) as advance,
        open_network(backbone, device) as run,
    ):
        paths = [folder / f"{start:09d}.safetensors" for start in starts]
        for start, path in zip(starts, paths, strict=True):
            rows = slice(start, start + starts.step)
            if path.exists():
                advance(len(images.paths[rows]))
                continue
            read = (images.rows(rows), backbone.transform, workers)
            _shard(*read, run, plan, skip_bad, advance).save(path)
        shards = [load_archive(path) for path in paths]
        skipped = [text for shard in shards for text in shard.metadata["skipped"]]
        archive: Any = DomainArchive.concat(shards)
        record = {
            **plan,
            "skipped": [*map(str, images.problems), *skipped],
            "features_sha256": hashlib.sha256(archive.features.data).hexdigest(),
        }
        recorded = {"extraction": record, "differences": list(images.differences)}
        archive.replace(metadata=recorded | (metadata or {})).save(out)
        for path in paths:
            path.unlink()
    return load_archive(out)


def _shard(
    images: ImageTable,
    transform: ImageTransform,
    workers: int,
    run: Callable[[np.ndarray], Outputs],
    plan: dict[str, Any],
    skip_bad: bool,
    advance: Callable[[int], None],
) -> DomainArchive:
    """The archive of some of the images."""
    names = ("features",) if plan["logits"] is None else ("features", "logits")
    parts, rows, bad = [], [], []
    paths = [images.root / path for path in images.paths]
    for batch in read_batches(paths, plan["batch_size"], transform, workers):
        bad += [BadImage(str(images.paths[row]), why) for row, why in batch.problems]
        if len(batch.rows):
            outputs = zip(names, run(batch.values), strict=False)
            parts.append({name: part.float().cpu().numpy() for name, part in outputs})
            rows.append(batch.rows)
        advance(len(batch.rows) + len(batch.problems))
    if bad and (not skip_bad or not parts):
        refuse_problems(images.root, bad)
    columns: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts]) for name in names
    }
    logits = columns.get("logits")
    if logits is not None and logits.shape[1:] != (plan["logits"],):
        raise ValueError(
            f"the network gives outputs of shape {logits.shape}, the images have "
            f"{plan['logits']} classes: leave logits out"
        )
    with np.errstate(over="ignore"):  # reported by the next line
        columns["features"] = columns["features"].astype(plan["dtype"])
    if not np.isfinite(columns["features"]).all():
        raise ValueError(
            f"features are not finite in {plan['dtype']}; wanted finite numbers, which "
            "float32 may hold"
        )
    kept = images.rows(np.concatenate(rows))
    return DomainArchive(
        **columns,
        labels=kept.labels,
        domains=kept.domain_codes,
        domain_names=kept.domain_names,
        class_names=kept.class_names,
        ids=kept.ids,
        metadata={"skipped": list(map(str, bad))},
    )
