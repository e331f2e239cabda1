"""Export to ONNX, checked with onnxruntime before the file appears."""

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from coolhead.files import atomic_path
from coolhead.torch.calibrated.module import CalibratedModule, CalibratedSoftmax

TOLERANCE = 1e-5
OUTPUTS = ("probabilities", "logits", "temperature", "covered")
CHECKED_ROWS = {CalibratedSoftmax: (1, 7, 1000), CalibratedModule: (1, 7)}


def export_onnx(
    net: Any,
    path: str | Path,
    example: Any = None,
    *,
    outputs: tuple[str, ...] = ("probabilities",),
    exporter: str = "auto",
) -> Path:
    """Write a calibrated network, or a calibrator alone, as one ONNX file.

    Parameters
    ----------
    net : `CalibratedModule`, `CalibratedSoftmax`, or a fitted calibrator; the last two
        become a graph with the inputs `logits` (n, k) and, if used, `features` (n, d).
    path : file to write; it appears whole and checked, or not at all.
    example : input of `net`, a tensor or a tuple of tensors, with the batch in front.
        Not needed for a calibrator alone.
    outputs : names out of "probabilities", "logits", "temperature", "covered".
    exporter : "trace" (fast), "dynamo" (torch.export, for networks that tracing gets
        wrong), or "auto": trace, and dynamo if the traced graph fails its check.

    Raises
    ------
    RuntimeError : onnxruntime does not reproduce torch to 1e-5, at other batch sizes
        than the example's too.
    """
    if not isinstance(net, nn.Module):
        net = CalibratedSoftmax(net)
    graph = _Outputs(net, outputs)
    inputs = _example_inputs(net, example)
    names = _input_names(net, len(inputs))
    errors = []
    with atomic_path(path) as part, torch.no_grad():
        for export in _exporters(exporter):
            try:
                with _quiet():
                    export(graph, inputs, names, part)
                _check(graph, inputs, names, part)
                break
            except Exception as error:
                errors.append(error)
        else:
            raise errors[-1]
    return Path(path)


class _Outputs(nn.Module):
    """The network with the wanted outputs as a plain tuple."""

    def __init__(self, net: Any, outputs: tuple[str, ...]):
        super().__init__()
        allowed = set(OUTPUTS)
        if isinstance(net, CalibratedSoftmax):
            allowed -= {"logits"}  # they are its input
        if getattr(net, "softmax", net).coverage is None:
            allowed -= {"covered"}  # no clusters, no coverage
        if not outputs or not allowed.issuperset(outputs):
            raise ValueError(
                f"outputs is {outputs!r}; wanted names out of {sorted(allowed)}"
            )
        self.net, self.outputs = net, outputs
        self.eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        found = self.net.details(*inputs)
        return tuple(getattr(found, name) for name in self.outputs)


def _exporters(exporter: str) -> tuple[Callable, ...]:
    known = {"trace": (_trace,), "dynamo": (_dynamo,), "auto": (_trace, _dynamo)}
    if exporter not in known:
        raise ValueError(f"exporter is {exporter!r}; wanted one of {sorted(known)}")
    return known[exporter]


def _trace(
    graph: _Outputs, inputs: tuple[Tensor, ...], names: list[str], path: Path
) -> None:
    torch.onnx.export(
        graph,
        inputs,
        path,
        dynamo=False,
        input_names=names,
        output_names=list(graph.outputs),
        dynamic_axes={name: {0: "batch"} for name in [*names, *graph.outputs]},
    )


def _dynamo(
    graph: _Outputs, inputs: tuple[Tensor, ...], names: list[str], path: Path
) -> None:
    batch = torch.export.Dim("batch")
    torch.onnx.export(
        graph,
        inputs,
        path,
        dynamo=True,
        external_data=False,
        verbose=False,
        input_names=names,
        output_names=list(graph.outputs),
        dynamic_shapes=(tuple({0: batch} for _ in inputs),),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters: the check afterwards says whether the graph is right."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _check(
    graph: _Outputs, inputs: tuple[Tensor, ...], names: list[str], path: Path
) -> None:
    """Compare onnxruntime with torch, for batches of several sizes."""
    session = onnxruntime.InferenceSession(
        path.read_bytes(), providers=["CPUExecutionProvider"]
    )
    # An exporter leaves out an input that nothing depends on.
    declared = {node.name for node in session.get_inputs()}
    for n_rows in CHECKED_ROWS[type(graph.net)]:
        batch = [_resized(tensor, n_rows) for tensor in inputs]
        wanted = graph(*batch)
        feed = {name: t.cpu().numpy() for name, t in zip(names, batch, strict=True)}
        found = session.run(None, {name: feed[name] for name in declared})
        for name, ours, theirs in zip(graph.outputs, wanted, found, strict=True):
            _compare(name, ours.cpu().double().numpy(), np.asarray(theirs))


def _compare(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    if ours.shape != theirs.shape:
        raise RuntimeError(
            f"ONNX gives {name} of shape {theirs.shape}; wanted {ours.shape}, as torch"
        )
    scale = np.maximum(1.0, np.abs(ours))
    apart = float(np.max(np.abs(ours - theirs) / scale))
    if not apart <= TOLERANCE:
        raise RuntimeError(
            f"ONNX and torch differ by {apart:.1e} in {name}; wanted at most "
            f"{TOLERANCE:.0e}"
        )


def _resized(tensor: Tensor, n_rows: int) -> Tensor:
    """`n_rows` rows, the given ones over and over."""
    return tensor[torch.arange(n_rows, device=tensor.device) % len(tensor)]


def _example_inputs(net: nn.Module, example: Any) -> tuple[Tensor, ...]:
    if example is not None:
        return example if isinstance(example, tuple) else (example,)
    if not isinstance(net, CalibratedSoftmax):
        raise ValueError("example is missing; wanted an input of the network, a tensor")
    widths = [net.n_classes, *([net.n_features] if net.n_features else [])]
    generator = torch.Generator().manual_seed(0)
    return tuple(3 * torch.randn(64, width, generator=generator) for width in widths)


def _input_names(net: nn.Module, n_inputs: int) -> list[str]:
    """Names of the network's arguments, as far as it has names for them."""
    model = net.model if isinstance(net, CalibratedModule) else net
    positional = [
        name
        for name, parameter in inspect.signature(model.forward).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    named = positional[:n_inputs]
    return named + [f"input_{index}" for index in range(len(named), n_inputs)]
