"""Whether another runtime says what NumPy says, on ordinary and on hostile rows.

Where a temperature jumps, at equal distance from two centres or on the edge of a bin,
rounding decides, and two runtimes round differently. Such a row is a tie: the other
runtime's answer lies within the range that NumPy's own answers span when logits and
features move by a few roundings of single precision. Ties may differ and are counted;
all other rows may not.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from coolhead.models.dense import find_class_axis
from coolhead.torch.features import features_at, rows_at
from coolhead.torch.module import CalibratedModule
from coolhead.torch.softmax import CalibratedSoftmax

TOLERANCE = 1e-5
ROUNDING = 2.0**-22
N_MOVES = 16
# More ties than this, and nothing has been compared.
MOST_TIES = 0.25

Answers = dict[str, np.ndarray]
Ask = Callable[[np.ndarray, np.ndarray | None], Answers]


class Batch(NamedTuple):
    """Rows to compare on; features are None where the calibrator uses none."""

    name: str
    logits: np.ndarray
    features: np.ndarray | None


def ask_numpy(calibrator: Any, names: tuple[str, ...]) -> Ask:
    """What the calibrator itself says, by the names of `CalibratedSoftmax.outputs`."""

    def ask(logits: np.ndarray, features: np.ndarray | None) -> Answers:
        found = calibrator.details(logits, features)._asdict()
        return {name: np.asarray(found[name], np.float64) for name in names}

    return ask


def check_agreement(
    runtime: str, answers: Answers, ask: Ask, batch: Batch, rounding: float = ROUNDING
) -> int:
    """Number of ties; an error where answers differ from NumPy's in other rows.

    Parameters
    ----------
    runtime : name of what gave the answers, for the error.
    answers : to be compared, by the names that `ask` gives.
    rounding : by which relative amount inputs move to find ties.

    Raises
    ------
    RuntimeError : relative difference of temperatures, or difference of probabilities,
        above 1e-5; other coverage; more than a quarter of the rows are ties.
    """
    wanted = ask(batch.logits, batch.features)
    answers = {name: np.asarray(answers[name], np.float64) for name in answers}
    apart = {name: _apart(name, answers[name], wanted[name]) for name in answers}
    # Written so that NaN, which no comparison holds for, is a difference.
    differs = ~np.all([each <= TOLERANCE for each in apart.values()], axis=0)
    if not differs.any():
        return 0
    rows = np.flatnonzero(differs)
    lowest, highest = _spans(ask, batch, wanted, rows, rounding)
    for name, found in answers.items():
        nearest = np.clip(found[rows], lowest[name], highest[name])
        beyond = _apart(name, found[rows], nearest)
        if not (beyond <= TOLERANCE).all():
            raise RuntimeError(
                f"{runtime} and NumPy differ by {np.max(apart[name]):.1e} in {name} "
                f"({batch.name}); wanted at most {TOLERANCE:.0e}"
            )
    if len(rows) > max(1, MOST_TIES * len(differs)):
        raise RuntimeError(
            f"{runtime} and NumPy cannot be compared ({batch.name}): rounding decides "
            f"in {len(rows)} of {len(differs)} rows"
        )
    return len(rows)


def hostile_batches(logits: np.ndarray, features: np.ndarray | None) -> list[Batch]:
    """The rows given, and others made of them that put guards and bounds to work."""
    logits = np.asarray(logits)
    surest = float(np.abs(logits).max()) or 1.0
    tied = logits.copy()
    tied[:, 1] = tied[:, 0] = logits.max(axis=1)
    batches = [
        Batch("ordinary rows", logits, features),
        Batch("logits up to 100", logits * (100 / surest), features),
        Batch("logits up to 1e4", logits * (1e4 / surest), features),
        Batch("two largest logits tied", tied, features),
        Batch("equal logits", np.zeros_like(logits), features),
    ]
    if features is None:
        return batches
    moved = {
        "features times 1e3": features * 1e3,
        "features times 1e6": features * 1e6,
        "features of zero": np.zeros_like(features),
        "constant features": np.broadcast_to(features[:1], features.shape),
    }
    for name, rows in moved.items():
        batches.append(Batch(name, logits, rows.astype(features.dtype)))
    return batches


def _apart(name: str, found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Difference of each row, (n,); of temperatures and logits in relation to them."""
    if found.shape != wanted.shape:
        raise RuntimeError(
            f"{name} has shape {found.shape}; wanted {wanted.shape}, as in NumPy"
        )
    with np.errstate(invalid="ignore"):
        apart = np.where(found == wanted, 0.0, np.abs(found - wanted))
    if name == "temperature":
        apart = apart / np.abs(wanted)
    elif name == "logits":
        apart = apart / np.maximum(1.0, np.abs(wanted))
    return apart.reshape(len(apart), -1).max(axis=1)


def _spans(
    ask: Ask, batch: Batch, wanted: Answers, rows: np.ndarray, rounding: float
) -> tuple[Answers, Answers]:
    """Smallest and largest answers of NumPy for rows whose inputs move a little."""
    rng = np.random.default_rng(0)
    # Rows as they are belong to the range, too: where all logits are equal, every move
    # leads away from the answer.
    several = [{name: found[rows] for name, found in wanted.items()}]
    for _ in range(N_MOVES):
        logits = _moved(batch.logits[rows], rounding, rng)
        features = batch.features
        if features is not None:
            features = _moved(features[rows], rounding, rng)
        several.append(ask(logits, features))
    names = several[0]
    lowest = {name: np.min([each[name] for each in several], axis=0) for name in names}
    highest = {name: np.max([each[name] for each in several], axis=0) for name in names}
    return lowest, highest


def _moved(rows: np.ndarray, rounding: float, rng: np.random.Generator) -> np.ndarray:
    """Rows with a uniform error, relative to the largest value of each."""
    size = rounding * np.maximum(np.abs(rows).max(axis=1, keepdims=True), rounding)
    return rows.astype(np.float64) + size * rng.uniform(-1, 1, size=rows.shape)


def typical_rows(calibrator: Any, n_rows: int = 64) -> tuple[np.ndarray, ...]:
    """Logits and, if used, features such as the calibrator may have seen, float32."""
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
