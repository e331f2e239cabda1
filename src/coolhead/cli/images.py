"""Options that the commands for images share."""

from pathlib import Path
from typing import Annotated

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
