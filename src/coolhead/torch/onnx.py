"""Export to ONNX, compared with NumPy before the file appears."""

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from coolhead.io.files import atomic_path
from coolhead.torch.features import rows_at
from coolhead.torch.module import CalibratedModule
from coolhead.torch.softmax import CalibratedSoftmax

TOLERANCE = 1e-5
# Two runtimes round a network's layers more than they round a temperature.
NETWORK_TOLERANCE = 1e-4
# Where a temperature jumps, on the edge of a bin or between two centres, rounding
# decides, and two runtimes round differently. A wrong graph is wrong in many rows.
MOST_APART = 0.01
CHECKED_SIZES = (1, 7)
MOST_ROWS = 4096


def export_onnx(
    net: Any,
    path: str | Path,
    example: Any = None,
    *,
    outputs: tuple[str, ...] = ("probabilities",),
    exporter: str = "auto",
) -> Path:
    """Write a calibrated network, or a calibrator alone, as one ONNX file.

    The graph must agree with the calibrator in NumPy: temperatures to 1e-5 of their
    size, probabilities to 1e-5, the same coverage. A calibrator alone is also tried
    with logits up to 1e4, ties, and features that are zero, constant or a million times
    too large; so is the calibrator of a network, in torch. The graph of a network is
    compared with torch to 1e-4, at other batch sizes than the example's. Up to 1 % of
    the numbers may differ by rounding; a warning says so.

    Parameters
    ----------
    net : CalibratedModule, CalibratedSoftmax or a fitted calibrator
        The last two become a graph with the inputs `logits` (n, k) and, if used,
        `features` (n, d).
    path : str or Path
        File to write; it appears whole and checked, or not at all.
    example : Tensor or tuple of Tensor, default=None
        Input of `net`, with the batch in front. Not needed for a calibrator alone.
    outputs : tuple of str, default=("probabilities",)
        Names out of "probabilities", "temperature" and "covered", as far as the
        calibrator has them, and of a network "logits" and "features", which a
        `DriftMonitor` watches.
    exporter : {"auto", "trace", "dynamo"}, default="auto"
        "trace" is fast; "dynamo" is torch.export, for networks that tracing gets
        wrong; "auto" traces, and takes dynamo if the traced graph fails its check.

    Returns
    -------
    path : Path

    Raises
    ------
    RuntimeError
        The graph differs. A module that loaded the state of another must have been
        built from the same calibrator.

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
    known = {"trace": [False], "dynamo": [True], "auto": [False, True]}
    if exporter not in known:
        raise ValueError(f"exporter is {exporter!r}; wanted one of {sorted(known)}")
    graph = _Outputs(net, outputs)
    inputs = _example_inputs(net, example)
    names = _input_names(net, len(inputs))
    errors = []
    with atomic_path(path) as part, torch.no_grad():
        for dynamo in known[exporter]:
            try:
                with _quiet():
                    _export(graph, inputs, names, part, dynamo)
                apart = check_graph(net, inputs, names, outputs, part)
                break
            except Exception as error:
                errors.append(error)
        else:
            raise errors[-1]
    if apart:
        warnings.warn(
            f"up to {apart:.1%} of the numbers compared differ: rounding decides "
            "there, and onnxruntime may differ from NumPy",
            stacklevel=2,
        )
    return Path(path)


class _Outputs(nn.Module):
    """The network with the wanted outputs as a plain tuple."""

    def __init__(self, net: Any, outputs: tuple[str, ...]):
        super().__init__()
        if not outputs or not set(net.outputs).issuperset(outputs):
            raise ValueError(
                f"outputs is {outputs!r}; wanted names out of {sorted(net.outputs)}"
            )
        self.net, self.outputs = net, outputs
        self.eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        found = self.net.details(*inputs)
        return tuple(getattr(found, name) for name in self.outputs)


def _export(
    graph: _Outputs,
    inputs: tuple[Tensor, ...],
    names: list[str],
    path: Path,
    dynamo: bool,
) -> None:
    """Write a graph by running the network once, or by torch.export."""
    axes = {name: {0: "batch"} for name in [*names, *graph.outputs]}
    settings: dict[str, Any] = {"dynamic_axes": axes}
    if dynamo:
        batch = torch.export.Dim("batch")
        settings = {"dynamic_shapes": (tuple({0: batch} for _ in inputs),)}
        settings |= {"external_data": False, "verbose": False}
    torch.onnx.export(
        graph,
        inputs,
        path,
        dynamo=dynamo,
        input_names=names,
        output_names=list(graph.outputs),
        **settings,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters: the check afterwards shows whether the graph is right."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    # Tracing that fails prints its graph, although torch says that its log is off.
    unlogged = patch.object(torch._C, "_jit_onnx_log", lambda *_: None, create=True)
    try:
        with warnings.catch_warnings(), unlogged:
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


def typical_rows(calibrator: Any, n_rows: int = 64) -> tuple[np.ndarray, ...]:
    """Return logits and, if used, features like those of the fit, float32."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(n_rows, calibrator.n_classes_))
    n_features = getattr(calibrator, "n_features_", None)
    if n_features is None:
        return (logits.astype(np.float32),)
    features = 3 * rng.normal(size=(n_rows, n_features))
    clusters = getattr(calibrator, "clusters_", None)
    if clusters is not None:
        # About as many within the radius of a cluster as outside.
        nearest = np.arange(n_rows) % len(clusters.centers)
        spread = clusters.radii[nearest, None] / np.sqrt(n_features)
        features = clusters.centers[nearest] + spread * features / 3
        if clusters.scaling == "standardize":
            features = features * clusters.scale + clusters.shift
    return logits.astype(np.float32), features.astype(np.float32)


def _input_names(net: nn.Module, n_inputs: int) -> list[str]:
    """Return the names of the network's arguments, as far as it has names."""
    model = net.model if isinstance(net, CalibratedModule) else net
    positional = [
        name
        for name, parameter in inspect.signature(model.forward).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    named = positional[:n_inputs]
    return named + [f"input_{index}" for index in range(len(named), n_inputs)]


Answers = dict[str, Any]


class Batch(NamedTuple):
    """Rows to compare on; features are None if the calibrator uses none."""

    name: str
    logits: np.ndarray
    features: np.ndarray | None = None


def check_graph(
    net: Any,
    inputs: tuple[Tensor, ...],
    names: Sequence[str],
    outputs: Sequence[str],
    path: Path,
) -> float:
    """Compare a graph with NumPy and torch; return the largest share that differs."""
    whole, run = isinstance(net, CalibratedModule), _runner(path, names, outputs)
    softmax, apart = net.softmax if whole else net, []
    for batch in hostile_batches(*_observed(net, inputs)):
        given = [np.ascontiguousarray(part) for part in batch[1:] if part is not None]
        if whole:
            # The graph takes no logits: its calibrator is compared in torch.
            tensors = [torch.tensor(part, device=inputs[0].device) for part in given]
            answers = _numbers(softmax.details(*tensors), softmax.outputs)
        else:
            answers = run(given)
        wanted = softmax.calibrator.details(*batch[1:])._asdict()
        pair = f"{'torch' if whole else 'ONNX'} and NumPy"
        apart.append(check_agreement(pair, answers, wanted, batch.name))
    for n_rows in CHECKED_SIZES:
        some = [tensor[torch.arange(n_rows) % len(tensor)] for tensor in inputs]
        wanted, answers = _numbers(net.details(*some), outputs), run(_arrays(some))
        settings = f"{n_rows} rows of the example", NETWORK_TOLERANCE
        apart.append(check_agreement("ONNX and torch", answers, wanted, *settings))
    return max(apart)


def check_agreement(
    pair: str,
    answers: Answers,
    wanted: Answers,
    where: str,
    tolerance: float = TOLERANCE,
) -> float:
    """Compare the outputs of two runtimes.

    Parameters
    ----------
    pair : str
        Names of the runtimes, for the error.
    answers, wanted : dict of str to ndarray
        By the names of `CalibratedModule.outputs`.
    where : str
        What was compared, for the error.
    tolerance : float, default=1e-5
        Of temperatures in relation to them, of probabilities as they are.

    Returns
    -------
    share : float
        Largest share of the numbers of one output that differ.

    Raises
    ------
    RuntimeError
        More than 1 % of the numbers differ.
    """
    largest = 0.0
    for name, found in answers.items():
        found, exact = (np.asarray(each, np.float64) for each in (found, wanted[name]))
        if found.shape != exact.shape:
            raise RuntimeError(
                f"{pair} differ: {name} has shape {found.shape}; wanted {exact.shape}"
            )
        relative = 0 if name == "probabilities" else tolerance
        absolute = 0 if name == "temperature" else tolerance
        close = np.isclose(found, exact, rtol=relative, atol=absolute)
        share = float(np.mean(~close))
        if share > MOST_APART:
            difference = np.abs(found - exact)[~close].max()
            raise RuntimeError(
                f"{pair} differ by {difference:.1e} in {name}, in {share:.0%} of the "
                f"numbers ({where}); wanted at most {tolerance:.0e}"
            )
        largest = max(largest, share)
    return largest


def hostile_batches(
    logits: np.ndarray, features: np.ndarray | None = None
) -> list[Batch]:
    """Return the given rows, and others made of them that reach guards and bounds."""
    largest = float(np.abs(logits).max()) or 1.0
    tied = logits.copy()
    tied[:, 1] = tied[:, 0] = logits.max(axis=1)
    batches = [
        Batch("ordinary rows", logits, features),
        Batch("logits up to 100", logits * (100 / largest), features),
        Batch("logits up to 1e4", logits * (1e4 / largest), features),
        Batch("two largest logits tied", tied, features),
        Batch("equal logits", np.zeros_like(logits), features),
    ]
    if features is None:
        return batches
    constant = np.broadcast_to(features[:1], features.shape)
    return [
        *batches,
        Batch("features times 1e3", logits, features * 1e3),
        Batch("features times 1e6", logits, features * 1e6),
        Batch("features of zero", logits, np.zeros_like(features)),
        Batch("constant features", logits, constant),
    ]


def _runner(
    path: Path, names: Sequence[str], outputs: Sequence[str]
) -> Callable[[Sequence[np.ndarray]], Answers]:
    session = onnxruntime.InferenceSession(
        path.read_bytes(), providers=["CPUExecutionProvider"]
    )
    # An exporter leaves out an input that nothing depends on.
    declared = {node.name for node in session.get_inputs()}

    def run(arrays: Sequence[np.ndarray]) -> Answers:
        feed = dict(zip(names, arrays, strict=True))
        found: Any = session.run(None, {name: feed[name] for name in declared})
        return dict(zip(outputs, found, strict=True))

    return run


def _observed(net: Any, inputs: tuple[Tensor, ...]) -> list[np.ndarray]:
    """Return logits and, if used, features of the calibrator; of many rows a few."""
    rows: Any = net._observe(*inputs) if isinstance(net, CalibratedModule) else inputs
    rows = rows_at(*rows) if rows[0].ndim > 2 else rows
    step = -(-len(rows[0]) // MOST_ROWS)
    return _arrays([part[::step] for part in rows if part is not None])


def _numbers(details: Any, names: Sequence[str]) -> Answers:
    found = _arrays([getattr(details, name) for name in names])
    return dict(zip(names, found, strict=True))


def _arrays(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    several = [tensor.detach().cpu() for tensor in tensors]
    return [(t.float() if t.dtype == torch.bfloat16 else t).numpy() for t in several]
