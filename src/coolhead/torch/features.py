"""Features of a network, read at one of its layers."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Self

import torch

from coolhead.models.dense import find_class_axis


@contextmanager
def feature_reader(
    module: torch.nn.Module, feature_layer: str | None = None
) -> Iterator[Any]:
    """Yield a function: images (n, 3, h, w) → features (n, d), output (n, k).

    Features are the output of the layer of that name or, without a name, the input
    of the classifier. A network without linear layers gives its output as features.
    """
    with captured(module, feature_layer) as capture:

        def read(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            output = module(images)
            seen = capture.take()
            features = output if seen is None else seen
            return pool(features, feature_layer or "the network"), output

        yield read


@contextmanager
def captured(model: torch.nn.Module, feature_layer: str | None) -> Iterator["Capture"]:
    """Yield a `Capture` whose hook is removed from the network afterwards."""
    capture, hook = Capture.of(model, feature_layer)
    try:
        yield capture
    finally:
        if hook is not None:
            hook.remove()


class Capture:
    """A hook that keeps the input or output of a layer, for each thread apart."""

    def __init__(self):
        self.seen: dict[int, Any] = {}

    @classmethod
    def of(cls, model: torch.nn.Module, feature_layer: str | None) -> tuple[Self, Any]:
        """Keep the output of the named layer, or the input of the classifier.

        Also returns the hook, to remove it; None if there is no layer.
        """
        capture, layer = cls(), find_layer(model, feature_layer)
        if layer is None:
            return capture, None
        if feature_layer is None:
            return capture, layer.register_forward_pre_hook(capture.keep_input)
        return capture, layer.register_forward_hook(capture.keep_output)

    def keep_input(self, layer: torch.nn.Module, inputs: tuple) -> None:
        self.seen[_thread()] = inputs[0]

    def keep_output(self, layer: torch.nn.Module, inputs: tuple, output: Any) -> None:
        self.seen[_thread()] = output

    def take(self) -> Any:
        return self.seen.pop(_thread(), None)


def _thread() -> int:
    return 0 if torch.compiler.is_compiling() else get_ident()


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
    """Average a (n, c, h, w) map over its positions; return (n, d) unchanged."""
    if isinstance(features, torch.Tensor) and features.ndim == 4:
        return features.mean(dim=(2, 3))
    if isinstance(features, torch.Tensor) and features.ndim == 2:
        return features
    found = getattr(features, "shape", type(features).__name__)
    raise ValueError(
        f"features of {name} have shape {found}; wanted (n, d) or (n, c, h, w)"
    )


def classes_last(dense: torch.Tensor) -> torch.Tensor:
    """Return (n, k, h, w) as (n, h, w, k); (n, t, k) unchanged."""
    # Counted from the front: the ONNX exporter takes -1 for the name of a dimension.
    return dense.movedim(find_class_axis(tuple(dense.shape)), dense.ndim - 1)


def rows_at(
    logits: torch.Tensor, features: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return rows (m, k) and (m, d) of all positions of logits and features."""
    positions = classes_last(logits)
    rows = None if features is None else features_at(features, positions.shape[:-1])
    return positions.flatten(0, -2), rows


def features_at(features: torch.Tensor, positions: Any) -> torch.Tensor:
    """Return rows (m, d) of all positions of a map, as `coolhead.models.dense_rows`.

    Features are (n, d, h', w') for positions (n, h, w), or (n, t', d) for (n, t).
    """
    grid = classes_last(features)
    for dim in range(1, len(positions)):
        steps = torch.arange(positions[dim], device=grid.device)
        grid = grid.index_select(dim, steps * grid.shape[dim] // positions[dim])
    return grid.flatten(0, -2)
