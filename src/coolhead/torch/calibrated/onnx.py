"""Export to ONNX, compared with NumPy in onnxruntime before the file appears."""

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
from coolhead.torch.calibrated.agreement import (
    TOLERANCE,
    Batch,
    ask_numpy,
    check_agreement,
    hostile_batches,
    typical_rows,
)
from coolhead.torch.calibrated.module import CalibratedModule, CalibratedSoftmax

CHECKED_SIZES = (1, 7)


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
    outputs : names out of "probabilities", "logits" (of a network), "temperature" and
        "covered", as far as the calibrator has them.
    exporter : "trace" (fast), "dynamo" (torch.export, for networks that tracing gets
        wrong), or "auto": trace, and dynamo if the traced graph fails its check.

    The graph must say what the calibrator says in NumPy: temperatures to 1e-5 of their
    size, probabilities to 1e-5, the same coverage, at other batch sizes than the
    example's too. A calibrator alone is also tried with logits up to 1e4, ties, and
    features that are zero, constant or a million times too large. Rows where rounding
    decides, such as one as near to one cluster as to another, may differ; a warning
    tells how many there were.

    Raises
    ------
    RuntimeError : torch or onnxruntime differs from NumPy. A module that loaded the
        state of another must have been built from the same calibrator.
    """
    if not isinstance(net, nn.Module):
        net = CalibratedSoftmax(net)
    graph = _Outputs(net, outputs)
    inputs = _example_inputs(net, example)
    names = _input_names(net, len(inputs))
    errors = []
    with atomic_path(path) as part, torch.no_grad():
        batches = _check_torch(net, inputs)
        for export in _exporters(exporter):
            try:
                with _quiet():
                    export(graph, inputs, names, part)
                n_ties = _check(graph, inputs, names, part, batches)
                break
            except Exception as error:
                errors.append(error)
        else:
            raise errors[-1]
    if n_ties:
        warnings.warn(
            f"{n_ties} of the rows compared are ties: rounding decides there, and "
            "onnxruntime may differ from NumPy",
            stacklevel=2,
        )
    return Path(path)


class _Outputs(nn.Module):
    """The network with the wanted outputs as a plain tuple."""

    def __init__(self, net: Any, outputs: tuple[str, ...]):
        super().__init__()
        whole = isinstance(net, CalibratedModule)
        # The logits of a calibrator alone are its input.
        allowed = {*getattr(net, "softmax", net).outputs, *["logits"] * whole}
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


def _check_torch(net: nn.Module, inputs: tuple[Tensor, ...]) -> list[Batch]:
    """Compare torch with NumPy on ordinary and hostile rows, and return those rows."""
    softmax: Any = getattr(net, "softmax", net)
    logits, features = (
        net._observe(*inputs) if softmax is not net else (*inputs, None)[:2]
    )
    batches = hostile_batches(_numpy(logits), _numpy(features))
    ask = ask_numpy(softmax.calibrator, softmax.outputs)
    for batch in batches:
        given = [None if each is None else _like(each, inputs[0]) for each in batch[1:]]
        found = softmax.details(*given)
        answers = {name: _numpy(getattr(found, name)) for name in softmax.outputs}
        check_agreement("torch", answers, ask, batch)
    return batches


def _check(
    graph: _Outputs,
    inputs: tuple[Tensor, ...],
    names: list[str],
    path: Path,
    batches: list[Batch],
) -> int:
    """Compare onnxruntime with NumPy, for batches of several sizes; number of ties."""
    session = onnxruntime.InferenceSession(
        path.read_bytes(), providers=["CPUExecutionProvider"]
    )
    # An exporter leaves out an input that nothing depends on.
    declared = {node.name for node in session.get_inputs()}

    def run(arrays: list[Any]) -> dict[str, np.ndarray]:
        feed = dict(zip(names, arrays, strict=True))
        found: Any = session.run(None, {name: feed[name] for name in declared})
        return dict(zip(graph.outputs, found, strict=True))

    resized = [[_resized(t, n_rows) for t in inputs] for n_rows in CHECKED_SIZES]
    net: Any = graph.net
    if isinstance(net, CalibratedModule):
        return sum(_compare_network(net, batch, run) for batch in resized)
    small = [Batch(f"{len(t[0])} rows", *(*map(_numpy, t), None)[:2]) for t in resized]
    ask = ask_numpy(net.calibrator, net.outputs)
    return sum(
        check_agreement("ONNX", run([*batch[1 : 1 + len(inputs)]]), ask, batch)
        for batch in [*small, *batches]
    )


def _compare_network(net: CalibratedModule, inputs: list[Tensor], run: Callable) -> int:
    """Compare the whole with the network in torch and its calibrator in NumPy."""
    answers = run([_numpy(tensor) for tensor in inputs])
    logits, features = map(_numpy, net._observe(*inputs))
    ask_calibrator = ask_numpy(net.softmax.calibrator, net.softmax.outputs)

    def ask(logits: Any, features: Any) -> dict[str, np.ndarray]:
        return {**ask_calibrator(logits, features), "logits": logits}

    # Two runtimes round a network's layers more than they round a temperature.
    batch = Batch(f"{len(inputs[0])} rows of the example", logits, features)
    return check_agreement("ONNX", answers, ask, batch, rounding=TOLERANCE)


def _numpy(tensor: Tensor | None) -> Any:
    if tensor is None:
        return None
    found = tensor.detach().cpu()
    return (found.float() if found.dtype == torch.bfloat16 else found).numpy()


def _like(array: np.ndarray, tensor: Tensor) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(array), device=tensor.device)


def _resized(tensor: Tensor, n_rows: int) -> Tensor:
    """`n_rows` rows, the given ones over and over."""
    return tensor[torch.arange(n_rows, device=tensor.device) % len(tensor)]


def _example_inputs(net: nn.Module, example: Any) -> tuple[Tensor, ...]:
    if example is not None:
        return example if isinstance(example, tuple) else (example,)
    if not isinstance(net, CalibratedSoftmax):
        raise ValueError("example is missing; wanted an input of the network, a tensor")
    return tuple(torch.tensor(part) for part in typical_rows(net.calibrator))


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
