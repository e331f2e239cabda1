"""Compare a calibrated module and its ONNX graph with the calibrator in NumPy."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from coolhead.models.dense import find_class_axis
from coolhead.torch.calibrated.agreement import (
    TOLERANCE,
    Answers,
    Ask,
    Batch,
    ask_numpy,
    check_agreement,
    hostile_batches,
)
from coolhead.torch.calibrated.module import CalibratedModule
from coolhead.torch.calibrated.reading import features_at, rows_at
from coolhead.torch.calibrated.softmax import CalibratedSoftmax

CHECKED_SIZES = (1, 7)
# Of the pixels of a batch, so many are compared.
MOST_PLACES = 4096

Run = Callable[[Sequence[np.ndarray]], Answers]


def check_torch(
    net: CalibratedModule | CalibratedSoftmax, inputs: tuple[Tensor, ...]
) -> None:
    """Compare torch with NumPy on rows of the example and hostile ones made of them."""
    softmax = net if isinstance(net, CalibratedSoftmax) else net.softmax
    ask = ask_numpy(softmax.calibrator, softmax.outputs)
    for batch in hostile_batches(*_observed(net, inputs)):
        given = [torch.tensor(part, device=inputs[0].device) for part in _given(batch)]
        found = softmax.details(*given)
        answers = {name: _numpy(getattr(found, name)) for name in softmax.outputs}
        check_agreement("torch", answers, ask, batch)


def check_onnx(
    net: CalibratedModule | CalibratedSoftmax,
    inputs: tuple[Tensor, ...],
    names: Sequence[str],
    outputs: Sequence[str],
    path: Path,
) -> int:
    """Compare onnxruntime with NumPy at several batch sizes; the number of ties."""
    run = _runner(path, names, outputs)
    if isinstance(net, CalibratedModule):
        return sum(
            _compare_network(net, [_resized(tensor, n_rows) for tensor in inputs], run)
            for n_rows in CHECKED_SIZES
        )
    ask = ask_numpy(net.calibrator, net.outputs)
    batches = hostile_batches(*_observed(net, inputs))
    for n_rows in CHECKED_SIZES:
        fewer = _observed(net, tuple(_resized(tensor, n_rows) for tensor in inputs))
        batches.append(Batch(f"{n_rows} rows", *fewer))
    return sum(
        check_agreement("ONNX", run(_given(batch)), ask, batch) for batch in batches
    )


def _runner(path: Path, names: Sequence[str], outputs: Sequence[str]) -> Run:
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


def _compare_network(net: CalibratedModule, inputs: list[Tensor], run: Run) -> int:
    """Compare the whole with the network in torch and its calibrator in NumPy."""
    logits, features = net._observe(*inputs)
    batch = Batch(f"{len(inputs[0])} rows of the example", *_rows(logits, features))
    ask_calibrator: Ask = ask_numpy(net.softmax.calibrator, net.softmax.outputs)

    def ask(logits: np.ndarray, features: np.ndarray | None) -> Answers:
        seen = {} if features is None else {"features": features}
        return {**ask_calibrator(logits, features), "logits": logits, **seen}

    answers = run([_numpy(tensor) for tensor in inputs])
    if logits.ndim > 2:
        answers = _of_places(answers, logits.shape)
    # Two runtimes round a network's layers more than they round a temperature.
    return check_agreement("ONNX", answers, ask, batch, rounding=TOLERANCE)


def _observed(
    net: CalibratedModule | CalibratedSoftmax, inputs: Sequence[Tensor]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Logits and, if used, features that reach the calibrator."""
    seen: Any = net._observe(*inputs) if isinstance(net, CalibratedModule) else inputs
    return _rows(*seen)


def _rows(
    logits: Tensor, features: Tensor | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, k) and (n, d), of pixels or tokens a sample."""
    if logits.ndim > 2:
        logits, features = rows_at(logits, features)
        logits = logits[_sample(len(logits))]
        features = None if features is None else features[_sample(len(features))]
    return _numpy(logits), None if features is None else _numpy(features)


def _sample(n_rows: int) -> slice:
    return slice(None, None, -(-n_rows // MOST_PLACES))


def _of_places(answers: Answers, shape: Sequence[int]) -> Answers:
    """What a graph says of every pixel or token, as `_rows` has them.

    shape : of the logits.
    """
    axis = find_class_axis(tuple(shape))
    places = (*shape[:axis], *shape[axis + 1 :])
    found = {}
    for name, array in answers.items():
        if name == "features":
            rows = _numpy(features_at(torch.from_numpy(array), places))
        elif array.ndim == len(shape):
            rows = np.moveaxis(array, axis, -1).reshape(-1, shape[axis])
        else:
            rows = array.reshape(-1)
        found[name] = rows[_sample(len(rows))]
    return found


def _given(batch: Batch) -> list[np.ndarray]:
    """The inputs of `CalibratedSoftmax`."""
    both = [batch.logits, batch.features]
    return [np.ascontiguousarray(part) for part in both if part is not None]


def _numpy(tensor: Tensor) -> np.ndarray:
    found = tensor.detach().cpu()
    return (found.float() if found.dtype == torch.bfloat16 else found).numpy()


def _resized(tensor: Tensor, n_rows: int) -> Tensor:
    """`n_rows` rows, the given ones over and over."""
    return tensor[torch.arange(n_rows, device=tensor.device) % len(tensor)]
