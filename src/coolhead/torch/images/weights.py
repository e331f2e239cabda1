"""Weights from local files: everything must fit, or the message says what does not."""

import hashlib
import warnings
from pathlib import Path
from typing import Any

import torch

from coolhead.torch.calibrated.reading import find_layer

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
        raise FileNotFoundError(f"weights file {path} does not exist")
    state, own = _read_state(path), module.state_dict()
    kept = _keep_classifier(module, state, own) if new_classifier else ""
    problems = _misfits(state, own)
    if problems:
        raise ValueError(
            f"weights file {path} does not fit {type(module).__name__}: {problems}"
        )
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
        raise ValueError(
            f"{type(module).__name__} has no linear layer to tell classes by"
        )
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
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    try:
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(
            f"weights file {path} is not a plain state dict ({error})"
        ) from error
    for key in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict):
        raise ValueError(
            f"weights file {path} holds a {type(state).__name__}; wanted a state dict"
        )
    return {name.removeprefix("module."): value for name, value in state.items()}


def weights_checksum(module: torch.nn.Module) -> str:
    """Return the SHA-256 of all parameters and buffers, in their order."""
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        bits = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(bits.numpy())
    return digest.hexdigest()
