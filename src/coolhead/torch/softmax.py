"""Calibrated probabilities in place of a softmax."""

from typing import Any, NamedTuple

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from coolhead.models.outputs import check_calibrator
from coolhead.torch.probabilities import Cooled, with_masks
from coolhead.torch.temperature import Exact, NearestCenter, possible


class ModuleDetails(NamedTuple):
    """Results of a calibrated network for each row.

    Attributes
    ----------
    probabilities : Tensor of shape (n_samples, n_classes)
        Calibrated probabilities.
    logits : Tensor of shape (n_samples, n_classes)
        Logits of the network.
    temperature : Tensor of shape (n_samples,) or None
        T(x); None for methods that change the scores otherwise.
    covered : Tensor of shape (n_samples,) or None
        False if the calibration data had no such rows; None if the calibrator has no
        clusters.
    features : Tensor of shape (n_samples, n_features) or None
        Features of the network; None if they are not used.
    """

    probabilities: Tensor
    logits: Tensor
    temperature: Tensor | None
    covered: Tensor | None
    features: Tensor | None = None


class CalibratedSoftmax(nn.Module):
    """Calibrated probabilities from logits (n, k) and, if used, features (n, d).

    Parameters
    ----------
    calibrator : Calibrator
        Fitted; not one that wraps code of other libraries.

    Notes
    -----
    Binary scores (n,) are taken as the logits [0, s]. Half-precision logits give
    single-precision probabilities. A class with the logit -inf has probability zero; a
    row with NaN or inf has NaN.

    Examples
    --------
    >>> import coolhead as ch
    >>> import torch
    >>> cal = ch.TemperatureScaling().fit([[4.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> ch.torch.CalibratedSoftmax(cal)(torch.tensor([[4.0, 0.0]]))
    tensor([[0.7500, 0.2500]])
    """

    def __init__(self, calibrator: Any):
        super().__init__()
        check_is_fitted(check_calibrator(calibrator))
        self.calibrator = calibrator
        self.probabilities = with_masks(calibrator)
        clusters = getattr(calibrator, "clusters_", None)
        self.coverage = None if clusters is None else Covered(clusters)
        self.n_classes: int = calibrator.n_classes_
        self.n_features: int | None = getattr(calibrator, "n_features_", None)
        self.eval()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of `details` beside the logits."""
        temperature = isinstance(self.probabilities, Cooled)
        covered = self.coverage is not None
        names = {"probabilities": True, "temperature": temperature, "covered": covered}
        return tuple(name for name, known in names.items() if known)

    def forward(self, logits: Tensor, features: Tensor | None = None) -> Tensor:
        """Return the calibrated probabilities."""
        return self._predict(*self._checked(logits, features))[0]

    def details(self, logits: Tensor, features: Tensor | None = None) -> ModuleDetails:
        """Return probabilities with logits, temperature and coverage of each row."""
        logits, features = self._checked(logits, features)
        probabilities, temperature = self._predict(logits, features)
        covered = None if self.coverage is None else self.coverage(features)
        return ModuleDetails(probabilities, logits, temperature, covered)

    def _predict(
        self, logits: Tensor, features: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return probabilities and temperature, NaN for rows with NaN or infinity."""
        # A broken feature has no nearest centre, a broken logit no bin: they must not
        # end as a plausible probability.
        total = torch.where(possible(logits), logits, 0.0).double().sum(dim=1)
        if features is not None:
            total = total + features.double().sum(dim=1)
        broken = total.isnan() | total.isinf()
        temperature = None
        if isinstance(self.probabilities, Cooled):
            temperature = self.probabilities.temperature(logits, features)
            temperature = torch.where(broken, torch.nan, temperature)
            probabilities = self.probabilities.probabilities(logits, temperature)
        else:
            probabilities = self.probabilities(logits, features)
            probabilities = torch.where(broken[:, None], torch.nan, probabilities)
        if logits.dtype != torch.float64:
            probabilities = probabilities.float()
        return probabilities, temperature

    def _checked(
        self, logits: Tensor, features: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        if logits.ndim == 1:
            logits = torch.stack([torch.zeros_like(logits), logits], dim=1)
        _check_width("logits", logits, self.n_classes)
        if self.n_features is None:
            return logits, None
        _check_width("features", features, self.n_features)
        return logits, features


class Covered(Exact):
    """Whether each row lies within the radius of its nearest cluster."""

    def __init__(self, clusters: Any):
        super().__init__()
        self.nearest = NearestCenter(clusters)
        self.keep(squared_radii=clusters.radii**2)

    def forward(self, features: Tensor) -> Tensor:
        nearest, squared = self.nearest(features)
        return squared <= self.squared_radii[nearest]


def _check_width(name: str, rows: Tensor | None, width: int) -> None:
    if rows is None:
        raise ValueError(f"{name} is missing: this calibrator uses it; wanted (n, d)")
    if torch.jit.is_tracing():  # pyright: ignore[reportPrivateImportUsage]
        # Here a shape is a tensor, and comparing it would freeze the answer.
        return
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)}; wanted (n, {width}), as in fit"
        )
