"""torch networks, over arrays, tensors, dictionaries of them, and data loaders."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from coolhead.models.outputs import Reading, read_output, scores_in
from coolhead.numerics.arrays import real_array


@contextmanager
def frozen(module: Any) -> Iterator[None]:
    """Put every layer in evaluation mode, record no gradients; undo both after."""
    import torch

    modes = [(layer, layer.training) for layer in module.modules()]
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for layer, training in modes:
            layer.training = training


def logits(model: Any, X: Any) -> Reading:
    """Logits of all batches, on the device of the network."""
    with frozen(model):
        parts = [_array(call(model, batch)) for batch in batches(X)]
    if not parts:
        raise ValueError("X has no batches; wanted at least one")
    return read_output(np.concatenate(parts), None, None, "the output of the network")


def batches(X: Any) -> Iterable[Any]:
    """A data loader as it is; everything else is one batch."""
    single = hasattr(X, "shape") or isinstance(X, Mapping | list | tuple)
    return [X] if single else X


def call(model: Any, batch: Any) -> Any:
    """The network's answer to a batch: a tensor, a dictionary, or (inputs, labels)."""
    if isinstance(batch, list | tuple):
        batch = batch[0]
    if isinstance(batch, Mapping):
        return model(**{name: on_device(model, part) for name, part in batch.items()})
    return model(on_device(model, batch))


def on_device(model: Any, values: Any) -> Any:
    """Values as a tensor where the network is."""
    import torch

    tensor = torch.as_tensor(values)
    place = next(iter(model.parameters()), tensor)
    # NumPy's numbers are doubles, which no network of single precision takes.
    single = tensor.dtype == torch.float64 and not isinstance(values, torch.Tensor)
    return tensor.to(place.device, place.dtype if single else tensor.dtype)


def _array(output: Any) -> np.ndarray:
    return real_array(scores_in(output), "the output of the network")
