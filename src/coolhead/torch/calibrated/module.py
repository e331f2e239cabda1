"""A network with calibrated probabilities in place of its logits."""

from threading import get_ident
from typing import Any, NamedTuple, Self

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from coolhead.calibrators.details import find_clusters
from coolhead.torch.calibrated import (  # noqa: F401  (all register theirs)
    learned,
    offset,
    shift_aware,
)
from coolhead.torch.calibrated.reading import find_layer, pool
from coolhead.torch.calibrated.temperature import (
    Exact,
    NearestCenter,
    temperature_module,
)


class ModuleDetails(NamedTuple):
    """What a calibrated network can say about each row.

    probabilities : (n, k) calibrated; logits : (n, k) of the network; temperature :
    (n,); covered : (n,) bool, False where the calibration data had nothing like this
    row, None where the calibrator has no clusters to tell.
    """

    probabilities: Tensor
    logits: Tensor
    temperature: Tensor
    covered: Tensor | None


class CalibratedSoftmax(nn.Module):
    """Calibrated probabilities from logits (n, k) and, if used, features (n, d).

    Parameters
    ----------
    calibrator : a fitted calibrator with a temperature, such as `TemperatureEnsemble`.

    Binary scores (n,) are taken as the logits [0, s]. Half-precision logits give
    single-precision probabilities.
    """

    def __init__(self, calibrator: Any):
        super().__init__()
        check_is_fitted(calibrator)
        self.temperature = temperature_module(calibrator)
        clusters = find_clusters(calibrator)
        self.coverage = None if clusters is None else Coverage(clusters)
        self.n_classes: int = calibrator.n_classes_
        self.n_features: int | None = calibrator.n_features_
        self.eval()

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        logits = self._checked(logits, features)
        return _softmax(logits, self._temperature(logits, features))

    def details(self, logits: Tensor, features: Tensor | None = None) -> ModuleDetails:
        """Probabilities with the logits, temperature and coverage of each row."""
        logits = self._checked(logits, features)
        temperature = self._temperature(logits, features)
        covered = None if self.coverage is None else self.coverage(features)
        probabilities = _softmax(logits, temperature)
        return ModuleDetails(probabilities, logits, temperature, covered)

    def _temperature(self, logits: Tensor, features: Tensor | None) -> Tensor:
        temperature = self.temperature(logits, features)
        if features is None or self.n_features is None:
            return temperature
        # A broken feature has no nearest centre and no distance: it must not end as
        # a plausible probability.
        total = features.double().sum(dim=1)
        return torch.where(total.isnan() | total.isinf(), torch.nan, temperature)

    def _checked(self, logits: Tensor, features: Tensor | None) -> Tensor:
        if logits.ndim == 1:
            logits = torch.stack([torch.zeros_like(logits), logits], dim=1)
        _check_width("logits", logits, self.n_classes)
        if self.n_features is not None:
            _check_width("features", features, self.n_features)
        return logits


class Coverage(Exact):
    """Whether each row lies within the radius of its nearest cluster."""

    squared_radii: Tensor

    def __init__(self, clusters: Any):
        super().__init__()
        self.nearest = NearestCenter(clusters)
        self.keep(squared_radii=clusters.radii**2)

    def forward(self, features: Tensor) -> Tensor:
        nearest, squared = self.nearest(features)
        return squared <= self.squared_radii[nearest]


class CalibratedModule(nn.Module):
    """Any network in, calibrated probabilities out.

    Parameters
    ----------
    model : network that returns logits (n, k): a tensor, an object or dictionary with
        `logits`, or a pair (logits, features).
    calibrator : fitted on logits (and features) of that network.
    feature_layer : name of the layer whose output is the features (n, d), or whose
        map (n, c, h, w) is averaged to them; by default the input of the classifier,
        as in `extract`. Not used where the calibrator needs no features or `model`
        returns them itself.

    The module starts in evaluation mode: logits with dropout are not the logits that
    were calibrated.
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
            self.capture = Capture.of(model, feature_layer)
        self.eval()

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        """Calibrated probabilities (n, k)."""
        return self.softmax(*self._observe(*inputs, **named))

    def details(self, *inputs: Any, **named: Any) -> ModuleDetails:
        """Probabilities with the logits, temperature and coverage of each row."""
        return self.softmax.details(*self._observe(*inputs, **named))

    def _observe(self, *inputs: Any, **named: Any) -> tuple[Tensor, Tensor | None]:
        """Logits and features of one call of the network."""
        logits, features = _split(self.model(*inputs, **named))
        if self.softmax.n_features is None:
            return logits, None
        seen = None if self.capture is None else self.capture.take()
        features = seen if features is None else features
        return logits, pool(features, self.feature_layer or "the network")


class Capture:
    """A hook that keeps what passed through a layer, for each thread apart."""

    def __init__(self):
        self.seen: dict[int, Any] = {}

    @classmethod
    def of(cls, model: nn.Module, feature_layer: str | None) -> Self | None:
        """Keep the output of the named layer, or the input of the classifier."""
        capture, layer = cls(), find_layer(model, feature_layer)
        if layer is None:
            return None
        if feature_layer is None:
            layer.register_forward_pre_hook(capture.keep_input)
        else:
            layer.register_forward_hook(capture.keep_output)
        return capture

    def keep_input(self, layer: nn.Module, inputs: tuple) -> None:
        self.seen[_thread()] = inputs[0]

    def keep_output(self, layer: nn.Module, inputs: tuple, output: Any) -> None:
        self.seen[_thread()] = output

    def take(self) -> Any:
        return self.seen.pop(_thread(), None)


def _thread() -> int:
    return 0 if torch.compiler.is_compiling() else get_ident()


def _split(output: Any) -> tuple[Any, Any]:
    """(logits, features or None) from what a network returned."""
    if isinstance(output, dict):
        output = output.get("logits")
    output = getattr(output, "logits", output)
    if isinstance(output, tuple) and len(output) == 2:
        return output
    if not isinstance(output, Tensor):
        raise TypeError(
            f"the model returned a {type(output).__name__}; wanted logits (n, k), a "
            "pair (logits, features), or an object with logits"
        )
    return output, None


def _check_width(name: str, rows: Tensor | None, width: int) -> None:
    if rows is None:
        raise ValueError(f"{name} is missing: this calibrator uses it; wanted (n, d)")
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)}; wanted (n, {width}), as in fit"
        )


def _softmax(logits: Tensor, temperature: Tensor) -> Tensor:
    exact = logits if logits.dtype == torch.float64 else logits.float()
    # The maximum goes first: large logits over a small T would lose their difference.
    shifted = exact - exact.amax(dim=1, keepdim=True)
    inverse = temperature.reciprocal().to(exact.dtype)
    return torch.softmax(shifted * inverse[:, None], dim=1)
