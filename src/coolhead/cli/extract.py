"""`coolhead extract`: a folder of images becomes an archive of features."""

from pathlib import Path
from typing import Annotated

import typer

from coolhead.cli.images import (
    BACKBONE,
    BackboneOption,
    DeviceOption,
    EngineOption,
    PixelsOption,
    SkipOption,
    WeightsOption,
    WorkersOption,
    list_folder,
)


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
    engine: EngineOption = "auto",
    all_pixels: PixelsOption = False,
    batch_size: Annotated[int, typer.Option(help="Images per batch of torch.")] = 64,
    workers: WorkersOption = None,
    device: DeviceOption = "cpu",
    skip_bad: SkipOption = False,
) -> None:
    """Run images through a network; after a kill the same command goes on."""
    from coolhead.cli.terminal import plain_warnings
    from coolhead.files import check_input, check_inputs, check_output

    check_input(folder, "a folder of images")
    check_output(out, inputs=check_inputs(weights), endings=(".safetensors",))
    images = list_folder(folder, skip_bad=skip_bad)
    images = images if role is None else images.only(role)
    from coolhead.torch.images.backbones import load_backbone
    from coolhead.torch.images.extraction import extract as extract_features

    network = load_backbone(
        backbone,
        weights=weights,
        n_classes=len(images.class_names) if logits else None,
        feature_layer=layer,
        all_pixels=all_pixels,
        new_classifier=False,
    )
    with plain_warnings():
        archive = extract_features(
            images,
            network,
            out,
            logits=logits,
            dtype=dtype,
            engine=engine,
            batch_size=batch_size,
            workers=workers,
            device=device,
            skip_bad=skip_bad,
            progress=True,
        )
    record = archive.metadata["extraction"]
    for skipped in record["skipped"]:
        typer.echo(f"skipped: {skipped}")
    typer.echo(f"{out}: {archive!r}, computed by {record['engine']}")
