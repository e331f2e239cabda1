"""Features read on their way through a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def feature_reader(
    module: torch.nn.Module, feature_layer: str | None = None
) -> Iterator[Any]:
    """Yield a function: images (n, 3, h, w) → features (n, d), output (n, k).

    Features are the output of the layer of that name or, without a name, the input
    of the classifier. A network without linear layers gives its output as features.
    """
    seen: list[torch.Tensor] = []
    layer = find_layer(module, feature_layer)

    def keep_output(_, __, output):
        seen.append(output)

    def keep_input(_, inputs):
        seen.append(inputs[0])

    handle = None
    if layer is not None:
        handle = (
            layer.register_forward_hook(keep_output)
            if feature_layer
            else layer.register_forward_pre_hook(keep_input)
        )

    def read(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.clear()
        output = module(images)
        features = seen[-1] if seen else output
        return pool(features, feature_layer or "the network"), output

    try:
        yield read
    finally:
        if handle is not None:
            handle.remove()


def find_layer(
    module: torch.nn.Module, feature_layer: str | None
) -> torch.nn.Module | None:
    """Return the named layer, or the classifier: timm's own, else the last linear."""
    if feature_layer is not None:
        layers = dict(module.named_modules())
        if feature_layer not in layers:
            known = [name for name, _ in module.named_children()]
            raise ValueError(
                f"feature_layer {feature_layer!r} is not in the network; top: {known}"
            )
        return layers[feature_layer]
    own = getattr(module, "get_classifier", None)
    if callable(own) and isinstance(own(), torch.nn.Linear):
        return own()  # pyright: ignore[reportReturnType]
    linear = [m for m in module.modules() if isinstance(m, torch.nn.Linear)]
    return linear[-1] if linear else None


def pool(features: Any, name: str) -> torch.Tensor:
    """Average a (n, c, h, w) map over its places; leave (n, d) as it is."""
    if isinstance(features, torch.Tensor) and features.ndim == 4:
        return features.mean(dim=(2, 3))
    if isinstance(features, torch.Tensor) and features.ndim == 2:
        return features
    found = getattr(features, "shape", type(features).__name__)
    raise ValueError(
        f"features of {name} have shape {found}; wanted (n, d) or (n, c, h, w)"
    )
