"""Export to ONNX, compared with NumPy in onnxruntime before the file appears."""

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coolhead.io.files import atomic_path
from coolhead.torch.comparison import check_onnx, check_torch, typical_rows
from coolhead.torch.module import CalibratedModule
from coolhead.torch.softmax import CalibratedSoftmax


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
    outputs : names out of "probabilities", "temperature" and "covered", as far as the
        calibrator has them, and of a network "logits" and "features", which a
        `DriftMonitor` watches.
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

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> cal = ch.TemperatureScaling().fit([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.torch.export_onnx(cal, f"{folder}/cal.onnx").name
    ...
    'cal.onnx'
    """
    if not isinstance(net, nn.Module):
        net = CalibratedSoftmax(net)
    if not isinstance(net, (CalibratedModule, CalibratedSoftmax)):
        raise TypeError(
            f"net is a {type(net).__name__}; wanted a CalibratedModule, a "
            "CalibratedSoftmax or a fitted calibrator"
        )
    graph = _Outputs(net, outputs)
    inputs = _example_inputs(net, example)
    names = _input_names(net, len(inputs))
    errors = []
    with atomic_path(path) as part, torch.no_grad():
        check_torch(net, inputs)
        for export in _exporters(exporter):
            try:
                with quiet():
                    export(graph, inputs, names, part)
                n_ties = check_onnx(net, inputs, names, outputs, part)
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
        softmax = getattr(net, "softmax", net)
        # Logits and features of a calibrator alone are its inputs.
        used = whole and softmax.n_features is not None
        allowed = {*softmax.outputs, *["logits"] * whole, *["features"] * used}
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
    known = {"trace": (trace,), "dynamo": (_dynamo,), "auto": (trace, _dynamo)}
    if exporter not in known:
        raise ValueError(f"exporter is {exporter!r}; wanted one of {sorted(known)}")
    return known[exporter]


def trace(graph: Any, inputs: tuple[Tensor, ...], names: list[str], path: Any) -> None:
    """Write a module whose `outputs` are their names, by running it once."""
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
def quiet() -> Iterator[None]:
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
