"""The calibrator to take when there is no reason to take another."""

from typing import Any, Self

import numpy as np

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.select.calibrator import SelectByDomain
from coolhead.calibrators.shift_aware.calibrator import ShiftAwareTemperature
from coolhead.calibrators.temperature import TemperatureScaling


class AutoCalibrator(TemperatureCalibrator):
    """Shift-aware temperatures, moved towards simpler ones where left-out domains ask.

    The candidates are the classifier as it is, source-only, set-level and shift-aware
    temperatures. Every calibration domain is left out once; the candidates are averaged
    in log temperature with the weights that would have been best there, held back
    towards the shift-aware one because few domains are weak evidence.

    Parameters
    ----------
    random_state : of the sample of reference features.

    Attributes
    ----------
    selection_ : the fitted `SelectByDomain`.
    names_, weights_ : (m,) candidates and their shares in log T.
    scores_, domains_ : (m, domains) NLL on each left-out domain.
    bounds_ : lowest and highest log T: what some domain asked for, or T = 1.
    temperature_ : float, the candidates' set-level temperatures, averaged alike.
    status_ : str, how it was chosen and what was missing.
    """

    uses_features = True

    def __init__(self, *, random_state: Any = 0):
        self.random_state = random_state

    def fit(
        self,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        sample_domain: Any = None,
        source_domain: Any = None,
        reference_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from labelled calibration domains.

        Parameters
        ----------
        logits, labels, features : (n, k), (n,) and (n, d) of all calibration rows.
        sample_domain : (n,) domain of each row; two or more domains let it choose.
        source_domain : name or names in `sample_domain` of held-out source rows.
        reference_features : (r, d) features of rows the classifier was trained on.
        sample_weight : (n,) >= 0.
        """
        given = {
            "features": features,
            "sample_domain": sample_domain,
            "source_domain": source_domain,
            "reference_features": reference_features,
            "sample_weight": sample_weight,
        }
        shift_aware = ShiftAwareTemperature(random_state=self.random_state)
        # The ridge is chosen once, not again in every fold.
        ridge = shift_aware.fit(logits, labels, **given).ridge_
        candidates = [TemperatureScaling(), shift_aware.set_params(ridge=ridge)]
        selection = SelectByDomain(candidates, combine="stack", prior=(0, 1))
        return self._remember(selection.fit(logits, labels, **given))

    def _remember(self, selection: SelectByDomain) -> Self:
        self.selection_ = selection
        self.n_classes_ = self.n_features_in_ = selection.n_classes_
        self.n_features_ = selection.n_features_
        self.names_, self.weights_ = selection.names_, selection.weights_
        self.scores_, self.domains_ = selection.scores_, selection.domains_
        self.temperature_ = selection.temperature_
        shift_aware: Any = selection.candidates_[-1]
        lowest, highest = shift_aware.bounds_
        # One place clips, so that NumPy, torch and ONNX cannot disagree about it.
        self.bounds_ = selection.bounds_ = min(lowest, 0.0), max(highest, 0.0)
        notes = [*selection.status_.split("; "), *shift_aware.status_.split("; ")]
        self.status_ = "; ".join(dict.fromkeys(notes))
        return self

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.selection_._temperature(logits, features)
