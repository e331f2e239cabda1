"""The calibrator to take when there is no reason to take another."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.parameters import Seed, parameters
from coolhead.calibrators.select.calibrator import SelectByDomain
from coolhead.calibrators.shift_aware.calibrator import ShiftAwareTemperature
from coolhead.calibrators.temperature import TemperatureScaling


@parameters
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
    bounds_ : lowest and highest log T: what some domain asked for, or T = 1.
    names_, weights_ : (m,) candidates and their shares in log T.
    scores_, domains_ : (m, domains) NLL on each left-out domain.
    harmed_ : names of left-out domains that were better off uncalibrated.
    temperature_ : float, the candidates' set-level temperatures, averaged alike.
    status_ : str, how it was chosen and what was missing.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains()    # best T: 1, 1.5, 2, 3
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.AutoCalibrator().fit(
    ...     seen.logits, seen.labels, features=seen.features, sample_domain=seen.domains
    ... )
    >>> round(float(cal.temperature(unseen.logits, unseen.features).mean()), 1)
    1.9
    >>> cal.predict_proba(unseen.logits, unseen.features).shape
    (300, 3)
    """

    takes = ("features", "source", "reference")
    uses_features = True

    _: KW_ONLY
    random_state: Seed = 0

    def _learn(self, data: CalibrationData) -> None:
        data = data.without_weightless()
        shift_aware = ShiftAwareTemperature(random_state=self.random_state)
        shift_aware.fit_part(data)
        # The penalty is chosen once, not again in every fold.
        again = ShiftAwareTemperature(
            penalty=shift_aware.penalty_, random_state=self.random_state
        )
        selection = SelectByDomain(
            [TemperatureScaling(), again], combine="stack", prior=(0, 1)
        )
        selection.note_shapes(data.n_classes, data.features)
        selection.select(data, {"ShiftAwareTemperature": shift_aware})
        lowest, highest = shift_aware.bounds_
        self.bounds_ = selection.bounds_ = min(lowest, 0.0), max(highest, 0.0)
        self.selection_ = selection
        self.names_, self.weights_ = selection.names_, selection.weights_
        self.scores_, self.domains_ = selection.scores_, selection.domains_
        self.temperature_, self.harmed_ = selection.temperature_, selection.harmed_
        notes = [*selection.status_.split("; "), *shift_aware.status_.split("; ")]
        self.status_ = "; ".join(dict.fromkeys(notes))

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.selection_._temperature(logits, features)
