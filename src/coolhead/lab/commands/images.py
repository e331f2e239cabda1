"""Options that the commands for images share."""

from pathlib import Path
from typing import Annotated, Any

import typer

BACKBONE = "efficientnet-lite0"
BackboneOption = Annotated[
    str,
    typer.Option(help=f"{BACKBONE}, timm:NAME, torchvision:NAME, python:MODULE:NAME."),
]
WeightsOption = Annotated[
    Path | None, typer.Option(help="Local state dict: .pth or .safetensors.")
]
SizeOption = Annotated[int | None, typer.Option(help="Side of the images in pixels.")]
FrozenOption = Annotated[
    float | None, typer.Option(help="Share of the first layers left as they are.")
]
EpochsOption = Annotated[int | None, typer.Option(help="Passes over the sources.")]
RateOption = Annotated[float | None, typer.Option(help="First learning rate.")]
WorkersOption = Annotated[
    int | None, typer.Option(help="Threads that read images; one per core if none.")
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, mps.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave unreadable images out.")
]


def list_folder(folder: Path, *, skip_bad: bool) -> Any:
    """Read a folder of images; print where it departs from what was published."""
    from coolhead.lab.images import list_images

    images = list_images(folder, skip_bad=skip_bad, decode=True, progress=True)
    for difference in images.differences:
        print(f"note: {difference}")
    return images


def training_settings(**options: Any) -> dict[str, Any]:
    """Those that were given; the others are left to what is trained."""
    return {name: value for name, value in options.items() if value is not None}


def extract(
    folder: Annotated[Path, typer.Argument(help="Images as domain/class/image.")],
    out: Annotated[Path, typer.Option(help="Archive to write (.safetensors).")],
    backbone: BackboneOption = BACKBONE,
    weights: WeightsOption = None,
    layer: Annotated[
        str | None, typer.Option(help="Layer to read; the classifier's input if none.")
    ] = None,
    logits: Annotated[
        bool,
        typer.Option(help="Keep the outputs: the network knows the classes."),
    ] = False,
    role: Annotated[
        str | None, typer.Option(help="Only the official list: train or test.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float16 or float32.")] = "float16",
    batch_size: Annotated[int, typer.Option(help="Images per batch.")] = 64,
    workers: WorkersOption = None,
    device: DeviceOption = "cpu",
    skip_bad: SkipOption = False,
) -> None:
    """Run images through a network; after a kill the same command goes on."""
    from coolhead.cli.terminal import plain_warnings
    from coolhead.io.files import check_input, check_inputs, check_output

    check_input(folder, "a folder of images")
    check_output(out, inputs=check_inputs(weights), endings=(".safetensors",))
    images = list_folder(folder, skip_bad=skip_bad)
    images = images if role is None else images.only(role)
    from coolhead.lab.images.backbones import load_backbone
    from coolhead.lab.images.extraction import extract as extract_features

    network = load_backbone(
        backbone,
        weights=weights,
        n_classes=len(images.class_names) if logits else None,
        feature_layer=layer,
        new_classifier=False,
    )
    with plain_warnings():
        archive = extract_features(
            images,
            network,
            out,
            logits=logits,
            dtype=dtype,
            batch_size=batch_size,
            workers=workers,
            device=device,
            skip_bad=skip_bad,
            progress=True,
        )
    for skipped in archive.metadata["extraction"]["skipped"]:
        typer.echo(f"skipped: {skipped}")
    typer.echo(f"{out}: {archive!r}")


def train(
    data: Annotated[
        Path, typer.Argument(help="Archive of features, or with --finetune images.")
    ],
    source: Annotated[
        list[str], typer.Option(help="Domain to train on; repeat for several.")
    ],
    out: Annotated[Path, typer.Option(help="Archive to write: logits and features.")],
    kind: Annotated[
        str, typer.Option(help="Head on features: mlp, logistic, erm or mldg.")
    ] = "mlp",
    finetune: Annotated[
        bool, typer.Option("--finetune", help="Train the whole backbone on images.")
    ] = False,
    backbone: BackboneOption = BACKBONE,
    weights: WeightsOption = None,
    size: SizeOption = None,
    frozen: FrozenOption = None,
    epochs: EpochsOption = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows per step.")] = None,
    learning_rate: RateOption = None,
    small: Annotated[float, typer.Option(help="Share of every domain held out.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of split and training.")] = 0,
    workers: WorkersOption = None,
    device: DeviceOption = "cpu",
    skip_bad: SkipOption = False,
) -> None:
    """Train a classifier on rows of the sources; write its outputs for every row."""
    from coolhead.cli.terminal import plain_warnings
    from coolhead.io.files import check_inputs, check_output

    inputs = check_inputs(data, weights)
    check_output(out, inputs=inputs, endings=(".safetensors",))
    if finetune:
        check_output(f"{out}.weights.safetensors", inputs=inputs)
    settings = training_settings(
        epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, frozen=frozen
    )
    if not finetune:
        _train_head(data, source, out, kind, settings, small, seed)
        return
    from coolhead.lab.images.finetuning import finetune_and_extract

    images = list_folder(data, skip_bad=skip_bad)
    with plain_warnings():
        archive = finetune_and_extract(
            images,
            source,
            out,
            backbone=backbone,
            weights=weights,
            size=size,
            settings=settings,
            small=small,
            random_state=seed,
            workers=workers,
            device=device,
            skip_bad=skip_bad,
            progress=True,
        )
    _print_curve(archive.metadata["head"]["curve"])
    typer.echo(f"{out}: {archive!r}")


def _train_head(data, source, out, kind, settings, small, seed) -> None:
    from coolhead.io.reading import load_archive
    from coolhead.lab.heads.train import train_head
    from coolhead.lab.images.divide import division_record, split_large_small

    if data.is_dir():
        raise ValueError(
            f"{data} is a folder: run coolhead extract first, or add --finetune"
        )
    archive = load_archive(data)
    mask = split_large_small(archive, small, seed)
    head = train_head(
        archive, source, kind=kind, small=mask, random_state=seed, **settings
    )
    result = head.apply(archive)
    recorded = result.metadata | division_record(small, seed)
    result = result.replace(metadata=recorded)
    result.save(out)
    _print_curve(head.curve)
    typer.echo(f"{out}: {result!r}")


def _print_curve(curve: list[dict[str, float]]) -> None:
    for entry in curve:
        numbers = [f"{name} {value:.4f}" for name, value in entry.items()]
        typer.echo(f"epoch {entry['epoch']:.0f}: " + ", ".join(numbers[1:]))
