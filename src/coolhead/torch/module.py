"""A network with calibrated probabilities in place of its logits."""

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from types import MethodType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from coolhead.calibrators.fitted import FittedMethods
from coolhead.extras import needs
from coolhead.io.calibrators import load_calibrator, read_header
from coolhead.io.files import atomic_path, check_input, check_output_folder
from coolhead.models.dense import find_class_axis
from coolhead.models.libraries import batches, call, frozen
from coolhead.models.outputs import scores_in
from coolhead.numerics.checks import readable
from coolhead.torch.features import Capture, classes_last, pool, rows_at
from coolhead.torch.softmax import CalibratedSoftmax, ModuleDetails

NETWORK, CALIBRATOR = "network.safetensors", "calibrator.skops"


class CalibratedModule(FittedMethods, nn.Module):
    """A network that returns calibrated probabilities.

    It starts in evaluation mode: dropout would change the logits.

    Parameters
    ----------
    model : torch.nn.Module
        Returns logits (n, k), (n, k, h, w) or (n, t, k), or margins of class 1, (n,) or
        (n, 1): a tensor, an object or dictionary with `logits`, a pair (logits,
        features), or a longer tuple that begins with logits.
    calibrator : Calibrator
        Fitted on logits (and features) of that network.
    feature_layer : str, default=None
        Name of the layer whose output is the features (n, d), or whose map (n, c, h, w)
        is averaged to them, or, for logits per pixel, read at its position; by default
        the input of the classifier, as in `extract`. Not used if the calibrator needs
        no features or `model` returns them itself.

    Examples
    --------
    >>> import coolhead as ch
    >>> import torch
    >>> network = torch.nn.Linear(4, 2)
    >>> cal = ch.TemperatureScaling().fit([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> ch.torch.CalibratedModule(network, cal)(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, model: nn.Module, calibrator: Any, feature_layer: str | None = None
    ):
        super().__init__()
        self.model = model
        self.softmax = CalibratedSoftmax(calibrator)
        self.feature_layer = feature_layer
        self.capture = None
        if self.softmax.n_features is not None:
            self.capture, _ = Capture.of(model, feature_layer)
        # torch.export reads names of arguments, as in dynamic_shapes={"images": ...}.
        self.forward = MethodType(_with_arguments_of(model), self)
        self.eval()

    @property
    def calibrator(self) -> Any:
        """The calibrator behind the network, for `NewDomain` and `save_calibrator`."""
        return self.softmax.calibrator

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of `details`."""
        used = self.softmax.n_features is not None
        return (*self.softmax.outputs, "logits", *["features"] * used)

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        """Return calibrated probabilities (n, k); takes what the network takes.

        Logits (n, k, h, w) per pixel or (n, t, k) per token keep their shape.
        """
        logits, features = self._observe(*inputs, **named)
        if logits.ndim <= 2:
            return self.softmax(logits, features)
        return _at_positions(self.softmax(*rows_at(logits, features)), logits)

    def details(self, *inputs: Any, **named: Any) -> ModuleDetails:
        """Return probabilities with logits, temperature and coverage of each row."""
        logits, features = self._observe(*inputs, **named)
        if logits.ndim <= 2:
            found = self.softmax.details(logits, features)
            return found._replace(features=features)
        found = self.softmax.details(*rows_at(logits, features))
        temperature, covered = (
            None if part is None else part.reshape(classes_last(logits).shape[:-1])
            for part in (found.temperature, found.covered)
        )
        probabilities = _at_positions(found.probabilities, logits)
        return ModuleDetails(probabilities, logits, temperature, covered, features)

    def outputs_of(self, loader: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return logits and, if they are used, features of all rows of a loader.

        Parameters
        ----------
        loader : DataLoader, or one batch
            Batches are inputs, or tuples that begin with them; labels are not read.
        """
        parts = []
        with frozen(self.model):
            for batch in batches(loader):
                logits, features = self._split(call(self.model, batch))
                if logits.ndim > 2:
                    logits, features = rows_at(logits, features)
                known = [part for part in (logits, features) if part is not None]
                parts.append([np.asarray(readable(part, "outputs")) for part in known])
        if not parts:
            raise ValueError("the loader gave no batch; wanted at least one")
        logits, *features = map(np.concatenate, zip(*parts, strict=True))
        return logits, features[0] if features else None

    def with_calibrator(self, calibrator: Any) -> "CalibratedModule":
        """Return the same network with another fitted calibrator."""
        return CalibratedModule(self.model, calibrator, self.feature_layer)

    def monitor(self, *rows: Any, **settings: Any) -> Any:
        """Return the `DriftMonitor` of the calibrator; see `FittedMethods`."""
        return self.calibrator.monitor(*rows, **settings)

    def save(self, path: str | os.PathLike, **settings: Any) -> None:
        """Write the calibrator and the weights of the network into a folder.

        Parameters
        ----------
        path : str or path-like
            Folder, which is made if it does not exist.
        **settings
            Other arguments of `save_calibrator`.
        """
        folder = check_output_folder(path)
        folder.mkdir(parents=True, exist_ok=True)
        with needs("save"):
            from safetensors.torch import save_model
        with atomic_path(folder / NETWORK) as temporary:
            save_model(self.model, str(temporary))
        # A kill between the two files leaves a pair that `load` refuses.
        about = {
            "weights": _digest(folder / NETWORK),
            "feature_layer": self.feature_layer,
        }
        metadata = {**(settings.pop("metadata", None) or {}), **about}
        self.calibrator.save(folder / CALIBRATOR, metadata=metadata, **settings)

    @classmethod
    def load(
        cls, folder: str | os.PathLike, model: nn.Module, *, trusted: Sequence[str] = ()
    ) -> Self:
        """Read a folder written by `save`; nothing in it is executed.

        Parameters
        ----------
        folder : str or path-like
            A folder that `save` wrote.
        model : torch.nn.Module
            A network of the same architecture, whose weights are replaced.
        trusted : sequence of str, default=()
            As for `load_calibrator`.
        """
        weights = check_input(Path(folder) / NETWORK, "the weights that save wrote")
        calibrator = load_calibrator(Path(folder) / CALIBRATOR, trusted=trusted)
        about = read_header(Path(folder) / CALIBRATOR)["metadata"]
        if about.get("weights") != _digest(weights):
            raise ValueError(
                f"{folder} holds a calibrator and the weights of another network; "
                "wanted both files of one save"
            )
        with needs("load"):
            from safetensors.torch import load_model
        try:
            load_model(model, weights)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(
                f"{weights} does not fit this {type(model).__name__} ({reason}); "
                "wanted a network of the same architecture"
            ) from error
        return cls(model, calibrator, about.get("feature_layer"))

    def _observe(self, *inputs: Any, **named: Any) -> tuple[Tensor, Tensor | None]:
        """Return logits and features of one call of the network."""
        return self._split(self.model(*inputs, **named))

    def _split(self, output: Any) -> tuple[Tensor, Tensor | None]:
        """Return logits, and features if used, of what the network returned."""
        logits, features = split_output(output)
        if self.softmax.n_features is None:
            return logits, None
        seen = None if self.capture is None else self.capture.take()
        features = seen if features is None else features
        if logits.ndim > 2:
            if features is None or features.ndim != logits.ndim:
                raise ValueError(
                    f"logits has shape {tuple(logits.shape)}, and this calibrator uses "
                    "features; wanted feature_layer, the name of a layer that gives a "
                    "map of them, or a calibrator without, such as TemperatureScaling()"
                )
            return logits, features
        return logits, pool(features, self.feature_layer or "the network")


def _at_positions(rows: Tensor, logits: Tensor) -> Tensor:
    """Bring rows (m, k) of `rows_at` into the shape of the logits."""
    axis = find_class_axis(tuple(logits.shape))
    return rows.reshape(classes_last(logits).shape).movedim(logits.ndim - 1, axis)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_arguments_of(model: nn.Module) -> Callable:
    """Return `CalibratedModule.forward` with the signature of the network's own."""
    try:
        own = signature(model.forward)
    except ValueError:  # a traced network has no names for its arguments
        return CalibratedModule.forward

    @wraps(CalibratedModule.forward)
    def forward(self: CalibratedModule, *inputs: Any, **named: Any) -> Tensor:
        return CalibratedModule.forward(self, *inputs, **named)

    itself = Parameter("self", Parameter.POSITIONAL_ONLY)
    forward.__signature__ = own.replace(  # pyright: ignore[reportAttributeAccessIssue]
        parameters=[itself, *own.parameters.values()], return_annotation=Tensor
    )
    return forward


def split_output(output: Any) -> tuple[Tensor, Tensor | None]:
    """Return logits and, if the network returned them too, features.

    One unit of output is the margin of class 1: its logits are [0, m].
    """
    logits, features = scores_in(output), None
    # Of more than a pair only the first is known: (logits, hidden states, ...).
    if type(output) is tuple and len(output) == 2 and isinstance(output[1], Tensor):
        features = output[1]
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"the model returned a {type(output).__name__}; wanted logits (n, k), a "
            "pair (logits, features), or an object with logits"
        )
    if logits.ndim == 1:
        logits = logits[:, None]
    if _is_one_unit(logits):
        logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
    return logits, features


def _is_one_unit(logits: Tensor) -> bool:
    """Return whether these are (n, 1), margins of class 1, as of binary networks."""
    if not torch.jit.is_tracing():  # pyright: ignore[reportPrivateImportUsage]
        return logits.ndim == 2 and logits.shape[1] == 1
    with warnings.catch_warnings():
        # Tracing warns that the answer becomes part of the graph, as it should.
        warnings.simplefilter("ignore")
        return logits.ndim == 2 and bool(logits.shape[1] == 1)
