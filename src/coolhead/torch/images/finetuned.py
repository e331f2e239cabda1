"""From images to the archive of a network fine-tuned on its sources."""

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from coolhead.archive import DomainArchive
from coolhead.archive.formats.safetensors import tensors_path
from coolhead.datasets.divide import division_record, split_large_small
from coolhead.datasets.images import ImageTable
from coolhead.files import check_output
from coolhead.torch.images.backbones import load_backbone
from coolhead.torch.images.extraction import extract
from coolhead.torch.images.finetuning import FinetuneSettings, finetune


def finetune_and_extract(
    images: ImageTable,
    source: list[str],
    out: str | PathLike,
    *,
    backbone: str,
    train_images: ImageTable | None = None,
    weights: str | PathLike | None = None,
    size: int | None = None,
    all_pixels: bool = False,
    engine: str = "auto",
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
    engine : {"auto", "onnx", "torch"}
        What runs the network once it is trained, as for :func:`extract`.
    settings : dict
        Fields of :class:`FinetuneSettings`.
    small, stratify, division_seed : share and draw of the Small images.
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
        all_pixels=all_pixels,
        random_state=random_state,
    )
    chosen = FinetuneSettings(**settings or {})
    checkpoint = Path(f"{out}.checkpoint")
    seed = random_state if division_seed is None else division_seed
    held_out = None
    told: dict[str, Any] = {"division": {"separate": True}}
    if train_images is None:
        held_out = split_large_small(images, small, seed, stratify=stratify)
        told = division_record(small, seed, stratify=stratify)
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
        engine=engine,
        skip_bad=skip_bad,
        metadata=told | {"head": record},
        **options,
    )
    checkpoint.unlink()
    return archive


def _save_weights(module, path: Path) -> None:
    from safetensors.torch import save_file

    state = {name: value.contiguous() for name, value in module.state_dict().items()}
    with tensors_path(path) as temporary:
        save_file(state, temporary)
