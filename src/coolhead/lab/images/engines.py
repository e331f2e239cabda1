"""Requests to end that wait for a moment, for what runs would swallow them."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import torch

from coolhead.lab.images.backbones import Backbone
from coolhead.lab.images.transform import ImageTransform, read_plain
from coolhead.models.libraries import frozen
from coolhead.torch.features import feature_reader


@contextmanager
def signals_held() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP wait until the block is over.

    Exporters turn whatever is raised inside them into errors of their own, an
    interrupt too: then it would pass for a network that they do not know.
    """
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # What is ignored stays so; what Python did not set it cannot set back.
            if number is not None and callable(signal.getsignal(number)):
                before[number] = signal.signal(number, lambda n, _: came.append(n))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


ENGINES = ("auto", "onnx", "torch")
# Of the largest value; features in half precision are rounded by 5e-4.
TOLERANCE = 1e-4

Answers = dict[str, np.ndarray]


@dataclass
class TorchEngine:
    """Threads read images; the network takes them batch by batch.

    The last bits of a result may depend on the size of its batch.
    """

    forward: Callable[[torch.Tensor], Sequence[torch.Tensor]]
    outputs: tuple[str, ...]
    batch_size: int
    device: str
    name = "torch"
    packages = ("torch",)
    read = staticmethod(read_plain)

    def finish(self, values: np.ndarray) -> Answers:
        """Run the network on a batch."""
        # Convolutions are faster where the channels of a pixel lie together.
        pixels = torch.from_numpy(values)
        found = self.forward(pixels.to(self.device, memory_format=torch.channels_last))
        arrays = [part.float().cpu().numpy() for part in found]
        return dict(zip(self.outputs, arrays, strict=True))


@dataclass
class OnnxEngine:
    """Each thread reads one image after the other and runs the network on it.

    One image at a time in a session of one thread: the result can not depend on a
    batch or on the number of workers, the data stay in the cache, and there are
    never more busy threads than workers.
    """

    session: Any
    outputs: tuple[str, ...]
    n_features: int
    batch_size = 1
    name = "onnx"
    packages = ("torch", "onnx", "onnxruntime")

    def read(self, row: int, path: Path, transform: ImageTransform) -> np.ndarray | str:
        """Return the features and perhaps logits of one image in one row."""
        pixels = read_plain(row, path, transform)
        return pixels if isinstance(pixels, str) else self.run(pixels)

    def run(self, pixels: np.ndarray) -> np.ndarray:
        """Return the same of pixels (3, s, s)."""
        found = self.session.run(None, {"image": pixels[None]})
        return np.concatenate([part[0] for part in found])

    def finish(self, values: np.ndarray) -> Answers:
        """Cut the rows into features and logits."""
        parts = np.split(values, [self.n_features], axis=1)
        return dict(zip(self.outputs, parts, strict=False))


Engine = TorchEngine | OnnxEngine


def check_device(device: str) -> None:
    """Refuse a device that torch does not know, or does not have here."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = " ".join(str(error).split()).partition(". ")[0][:200]
        msg = f"device is {device!r}, which torch cannot use here ({reason})"
        raise ValueError(f"{msg}; wanted one such as cpu") from error


@contextmanager
def open_engine(
    wanted: str,
    network: Backbone,
    probe: np.ndarray,
    *,
    n_classes: int | None,
    batch_size: int,
    device: str,
) -> Iterator[Engine]:
    """Yield the engine wanted, tried on a few images; "auto" is the fastest that fits.

    Parameters
    ----------
    wanted : {"auto", "onnx", "torch"}
    probe : (m, 3, s, s)
        Images on which ONNX Runtime must agree with torch to `TOLERANCE` of the
        largest value. Where it does not, "auto" warns and takes torch, "onnx" raises.
    n_classes : int or None
        Width of the logits, where they are wanted.
    """
    outputs = ("features",) if n_classes is None else ("features", "logits")
    module = network.module.to(device)
    with frozen(module), feature_reader(module, network.feature_layer) as read:
        engine = TorchEngine(
            lambda pixels: read(pixels)[: len(outputs)], outputs, batch_size, device
        )
        answers = engine.finish(probe)
        if n_classes is not None:
            _check_width(answers["logits"], n_classes)
        yield _onnx_or_torch(wanted, engine, module, probe, answers)


def _check_width(logits: np.ndarray, n_classes: int) -> None:
    if logits.ndim != 2 or logits.shape[1] != n_classes:
        raise ValueError(
            f"the network gives outputs of shape {logits.shape}, the images have "
            f"{n_classes} classes: leave logits out"
        )


def _onnx_or_torch(
    wanted: str,
    engine: TorchEngine,
    module: torch.nn.Module,
    probe: np.ndarray,
    answers: Answers,
) -> Engine:
    if wanted == "torch" or engine.device != "cpu":
        return engine
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        if wanted == "auto":
            return engine
        raise ImportError(
            f"engine onnx needs: pip install 'coolhead[onnx]' ({error})"
        ) from error
    try:
        with signals_held():
            faster = _export(engine, module, probe, answers["features"].shape[1])
        _compare(faster.finish(np.stack([faster.run(x) for x in probe])), answers)
    # Exporters and sessions fail in many ways on networks that they do not know.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        if wanted == "onnx":
            raise RuntimeError(
                f"engine onnx can not run this network, engine torch can: {reason}"
            ) from error
        msg = f"torch runs the network, for ONNX Runtime can not: {reason}"
        warn(msg, stacklevel=5)
        return engine
    return faster


def _export(
    engine: TorchEngine, module: torch.nn.Module, probe: np.ndarray, n_features: int
) -> OnnxEngine:
    import onnxruntime

    from coolhead.torch.onnx import quiet, trace

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    file = BytesIO()
    # An exporter that fails prints the whole graph.
    with quiet(), redirect_stdout(StringIO()):
        graph = _Graph(module, engine)
        trace(graph, (torch.from_numpy(probe[:1]),), ["image"], file)
    session = onnxruntime.InferenceSession(
        file.getvalue(), options, providers=["CPUExecutionProvider"]
    )
    return OnnxEngine(session, engine.outputs, n_features)


class _Graph(torch.nn.Module):
    """The network with features, and perhaps logits, as its outputs."""

    def __init__(self, module: torch.nn.Module, engine: TorchEngine):
        super().__init__()
        self.module, self.run, self.outputs = module, engine.forward, engine.outputs
        self.eval()

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.run(image))


def _compare(found: Answers, wanted: Answers) -> None:
    for name, values in wanted.items():
        largest = np.abs(values).max()
        difference = np.abs(found[name] - values).max()
        if not difference <= TOLERANCE * largest:
            raise ValueError(
                f"{name} of the images tried differ by {difference:.2g} from "
                f"torch's; wanted at most {TOLERANCE:g} of the largest, {largest:.3g}"
            )
