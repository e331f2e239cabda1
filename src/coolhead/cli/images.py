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
EngineOption = Annotated[
    str, typer.Option(help="auto, onnx (ONNX Runtime, on a CPU) or torch.")
]
PixelsOption = Annotated[
    bool, typer.Option("--all-pixels", help="Decode JPEGs at their full size.")
]
WorkersOption = Annotated[
    int | None, typer.Option(help="Threads that read images; one per core if none.")
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, mps.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave unreadable images out.")
]


def list_folder(folder: Path, *, skip_bad: bool) -> Any:
    """The images of a folder; where it departs from what was published is told."""
    from coolhead.datasets import list_images

    images = list_images(folder, skip_bad=skip_bad, decode=True, progress=True)
    for difference in images.differences:
        print(f"note: {difference}")
    return images


def training_settings(**options: Any) -> dict[str, Any]:
    """Those that were given; the others are left to what is trained."""
    return {name: value for name, value in options.items() if value is not None}
