"""`coolhead train`: a classifier of one or several source domains, applied to all."""

from pathlib import Path
from typing import Annotated

import typer

from coolhead.cli.images import (
    BACKBONE,
    BackboneOption,
    DeviceOption,
    EngineOption,
    EpochsOption,
    FrozenOption,
    PixelsOption,
    RateOption,
    SizeOption,
    SkipOption,
    WeightsOption,
    WorkersOption,
    list_folder,
    training_settings,
)


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
    engine: EngineOption = "auto",
    all_pixels: PixelsOption = False,
    workers: WorkersOption = None,
    device: DeviceOption = "cpu",
    skip_bad: SkipOption = False,
) -> None:
    """Train on the Large rows of the sources; write outputs for every row."""
    from coolhead.cli.terminal import plain_warnings
    from coolhead.files import check_inputs, check_output

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
    from coolhead.torch.images.finetuned import finetune_and_extract

    images = list_folder(data, skip_bad=skip_bad)
    with plain_warnings():
        archive = finetune_and_extract(
            images,
            source,
            out,
            backbone=backbone,
            weights=weights,
            size=size,
            all_pixels=all_pixels,
            engine=engine,
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
    from coolhead.archive import load_archive
    from coolhead.datasets.divide import division_record, split_large_small
    from coolhead.heads import train_head

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
    told = result.metadata | division_record(small, seed)
    result = result.replace(metadata=told)
    result.save(out)
    _print_curve(head.curve)
    typer.echo(f"{out}: {result!r}")


def _print_curve(curve: list[dict[str, float]]) -> None:
    for entry in curve:
        numbers = [f"{name} {value:.4f}" for name, value in entry.items()]
        typer.echo(f"epoch {entry['epoch']:.0f}: " + ", ".join(numbers[1:]))
