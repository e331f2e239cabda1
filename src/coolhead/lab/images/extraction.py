"""Read images ahead of the network, in batches whose make-up never changes."""

import hashlib
import json
import re
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from joblib import cpu_count
from PIL import Image

from coolhead.io.archive import DomainArchive
from coolhead.io.files import (
    atomic_path,
    check_output,
    check_output_folder,
    only_one,
    write_text,
)
from coolhead.io.reading import load_archive
from coolhead.lab.images.backbones import Backbone, load_backbone, weights_checksum
from coolhead.lab.images.engines import (
    ENGINES,
    Answers,
    Engine,
    check_device,
    open_engine,
)
from coolhead.lab.images.table import BadImage, ImageTable, list_images, refuse_problems
from coolhead.lab.images.transform import ImageTransform, Reader, read_image, read_plain
from coolhead.models.libraries import frozen
from coolhead.progress import progress_bar
from coolhead.torch.features import feature_reader

READ_AHEAD = 2


@dataclass(frozen=True)
class BatchPlan:
    """Rows start … stop - 1 form one batch of a shard."""

    start: int
    stop: int
    shard: int
    ends_shard: bool

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.stop - self.start


@dataclass(frozen=True)
class ImageBatch:
    """What was read (b, ...) of the images of one batch, their rows, and the others."""

    plan: BatchPlan
    values: np.ndarray
    rows: np.ndarray
    problems: list[tuple[int, str]]


def plan_batches(n_rows: int, batch_size: int, shard_rows: int) -> list[BatchPlan]:
    """Cut rows into batches, and batches into shards of about `shard_rows` rows.

    The cut depends on the numbers alone: a run that goes on after a kill sees the
    same batches, hence computes the same bits.
    """
    per_shard = max(1, shard_rows // batch_size)
    starts = range(0, n_rows, batch_size)
    return [
        BatchPlan(
            start=start,
            stop=min(start + batch_size, n_rows),
            shard=number // per_shard,
            ends_shard=number % per_shard == per_shard - 1 or number == len(starts) - 1,
        )
        for number, start in enumerate(starts)
    ]


def read_batches(
    paths: Sequence[Path],
    plans: Sequence[BatchPlan],
    transform: ImageTransform,
    workers: int,
    *,
    reader: Reader = read_plain,
) -> Iterator[ImageBatch]:
    """Yield the batches in order, reading some ahead in threads.

    Threads, since Pillow decodes and resizes outside the interpreter's lock.
    """
    # Batches of few images must not leave workers idle.
    ahead = max(READ_AHEAD, 2 * workers // max((p.size for p in plans), default=1))
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[BatchPlan, list[Future]]] = deque()
        try:
            for plan in plans:
                rows = range(plan.start, plan.stop)
                jobs = [pool.submit(reader, i, paths[i], transform) for i in rows]
                waiting.append((plan, jobs))
                if len(waiting) > ahead:
                    yield _finish(*waiting.popleft())
            while waiting:
                yield _finish(*waiting.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _finish(plan: BatchPlan, jobs: list[Future]) -> ImageBatch:
    results = [job.result() for job in jobs]
    good = [i for i, found in enumerate(results) if not isinstance(found, str)]
    return ImageBatch(
        plan=plan,
        values=np.stack([results[i] for i in good]) if good else np.empty(0, "f4"),
        rows=plan.start + np.array(good, np.int64),
        problems=[
            (plan.start + i, found)
            for i, found in enumerate(results)
            if isinstance(found, str)
        ],
    )


MARK, LOCK = "coolhead-extraction.json", "coolhead-extraction.lock"
# The mark is the first thing written; what a kill leaves of that is no shard.
BEGUN = re.compile(rf"\.{MARK}\..*|{LOCK}")
OWN = re.compile(rf"\.?[0-9]{{6}}\..*safetensors|\.?{MARK}.*|{LOCK}")


class ShardFolder:
    """A folder of numbered shards that belong to one plan.

    The plan says everything that decides the content of a shard. A folder begun
    under another plan is refused: mixing the two would give a wrong archive. So is a
    folder without our mark, which is somebody else's, and one in use.
    """

    def __init__(self, folder: str | PathLike, plan: dict[str, Any]):
        self.folder = Path(folder)
        if not self.folder.parent.is_dir():
            raise FileNotFoundError(
                f"folder {self.folder.parent} does not exist: nowhere to write to"
            )
        self.plan = json.loads(json.dumps(plan))
        self._held = ExitStack()

    def __enter__(self) -> Self:
        check_output_folder(self.folder).mkdir(exist_ok=True)
        self._refuse_foreign()
        self._held.enter_context(only_one(self.folder / LOCK))
        try:
            self._begin()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _refuse_foreign(self) -> None:
        names = [path.name for path in self.folder.iterdir()]
        if MARK not in names and not all(map(BEGUN.fullmatch, names)):
            raise FileExistsError(
                f"{self.folder} is a folder that coolhead did not make; wanted none of "
                "that name, for the finished rows: move it, or write to another place"
            )

    def _begin(self) -> None:
        path = self.folder / MARK
        if path.exists():
            self._compare(self._read_mark(path))
            return
        write_text(path, json.dumps(self.plan))

    def _read_mark(self, path: Path) -> dict[str, Any]:
        try:
            begun = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            begun = None
        if not isinstance(begun, dict):
            msg = f"{path} is damaged: delete {self.folder}, and its rows are done anew"
            raise ValueError(msg)
        return begun

    def _compare(self, begun: dict[str, Any]) -> None:
        for key in dict.fromkeys([*self.plan, *begun]):
            if begun.get(key) != self.plan.get(key):
                raise ValueError(
                    f"{self.folder} was begun with {key}={begun.get(key)!r}, now it is "
                    f"{self.plan.get(key)!r}: run as before, or delete that folder"
                )

    def path(self, index: int) -> Path:
        """Return the file of one shard."""
        return self.folder / f"{index:06d}.safetensors"

    def write(self, index: int, arrays: dict[str, np.ndarray], notes: list) -> None:
        """Keep one finished shard; it appears whole or not at all."""
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        try:
            with atomic_path(self.path(index)) as temporary:
                save_file(arrays, temporary, metadata={"notes": json.dumps(notes)})
        except (OSError, SafetensorError) as error:
            raise OSError(
                f"cannot write to {self.folder} ({error}); finished rows are kept "
                "there, and the same command goes on from them"
            ) from error

    def read(self, index: int) -> tuple[dict[str, np.ndarray], list]:
        """Return the arrays and notes of one finished shard."""
        from safetensors import SafetensorError, safe_open

        path = self.path(index)
        try:
            with safe_open(path, framework="numpy") as file:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                return arrays, json.loads(file.metadata()["notes"])
        except (SafetensorError, TypeError, KeyError, ValueError) as error:
            msg = f"{path} is damaged ({error}): delete it, and its rows are done anew"
            raise ValueError(msg) from error

    def remove(self) -> None:
        """Delete the folder, once its rows are in the archive."""
        names = {path.name: path for path in self.folder.iterdir()}
        foreign = [name for name in names if not OWN.fullmatch(name)]
        for name in names.keys() - {*foreign, MARK, LOCK}:
            names[name].unlink()
        if foreign:
            warnings.warn(
                f"{self.folder} is kept: it holds {foreign[0]}, which coolhead did not "
                "write",
                stacklevel=3,
            )
            return
        (self.folder / MARK).unlink()
        (self.folder / LOCK).unlink()
        self.folder.rmdir()


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
    >>> transform = ch.lab.images.ImageTransform(size=32)
    >>> backbone = ch.lab.images.Backbone(network, transform)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("photo/cat", "photo/dog", "sketch/cat", "sketch/dog"):
    ...         Path(folder, "images", name).mkdir(parents=True)
    ...         Image.new("RGB", (64, 64)).save(Path(folder, "images", name, "1.png"))
    ...     out = f"{folder}/features.safetensors"
    ...     images = f"{folder}/images"
    ...     print(ch.lab.images.extract(images, backbone, out, engine="torch"))
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


def array_features(
    images: np.ndarray,
    backbone: Backbone | str,
    *,
    batch_size: int = 64,
    dtype: str = "float16",
    **transform: float,
) -> np.ndarray:
    """Return the (n, d) features of images (n, h, w, 3) uint8.

    Parameters
    ----------
    **transform
        Fields of the backbone's ImageTransform to change, such as ``size=112``.
    """
    if isinstance(backbone, str):
        backbone = load_backbone(backbone)
    prepare = replace(backbone.transform, **transform)
    parts = []
    module = backbone.module
    with frozen(module), feature_reader(module, backbone.feature_layer) as read:
        for start in range(0, len(images), batch_size):
            batch = images[start : start + batch_size]
            inputs = np.stack([prepare(Image.fromarray(image)) for image in batch])
            features, _ = read(torch.from_numpy(inputs))
            parts.append(features.numpy().astype(dtype))
    return np.concatenate(parts)
