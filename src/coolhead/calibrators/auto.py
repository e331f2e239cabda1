"""The recommended default calibrator."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.left_out import OutOfDomain
from coolhead.calibrators.parameters import Seed, parameters
from coolhead.calibrators.select import SelectByDomain
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.calibrators.temperature import TemperatureScaling


@parameters
class AutoCalibrator(TemperatureCalibrator):
    """Average shift-aware temperatures with simpler ones as left-out domains suggest.

    The candidates are the uncalibrated classifier, source-only, set-level and
    shift-aware temperatures. Every calibration domain is left out once. The candidates
    are averaged in log temperature with the weights of smallest loss there, shrunk
    towards the shift-aware one because few domains are weak evidence.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the sample of reference features.

    Attributes
    ----------
    selection_ : SelectByDomain
    bounds_ : tuple of float
        Lowest and highest log T: the best ones of the domains with a margin, and T = 1.
    names_, weights_ : ndarray of shape (n_candidates,)
        Candidates and their shares in log T.
    scores_ : ndarray of shape (n_candidates, n_domains)
        NLL on each left-out domain.
    domains_ : ndarray of shape (n_domains,)
        Names of the left-out domains.
    harmed_ : list of str
        Names of left-out domains that were better off uncalibrated, with weights that
        were found without them.
    evidence_ : Evidence
        Summary of the left-out domains, for new domains.
    temperature_ : float
        The candidates' set-level temperatures, averaged with the same weights.
    status_ : str
        How the average was chosen, and what was missing.

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

    def _learn(self, data: CalibrationData) -> OutOfDomain:
        shift_aware = ShiftAwareTemperature(random_state=self.random_state)
        shift_aware.fit_part(data)
        # The penalty of a left-out domain is chosen without it.
        variants = [
            ShiftAwareTemperature(penalty=penalty, random_state=self.random_state)
            for penalty in shift_aware.penalties_without_each()
        ]
        selection = SelectByDomain(
            [TemperatureScaling(), ShiftAwareTemperature()],
            combine="stack",
            prior=(0, 1),
        )
        selection.note_shapes(data.n_classes, data.features, data.classes)
        name = "ShiftAwareTemperature"
        left_out = selection.select(data, {name: shift_aware}, {name: variants})
        lowest, highest = shift_aware.bounds_
        self.bounds_ = selection.bounds_ = min(lowest, 0.0), max(highest, 0.0)
        self.selection_ = selection
        self.names_, self.weights_ = selection.names_, selection.weights_
        self.scores_, self.domains_ = selection.scores_, selection.domains_
        self.temperature_, self.harmed_ = selection.temperature_, selection.harmed_
        notes = [*selection.status_.split("; "), *shift_aware.status_.split("; ")]
        self.status_ = "; ".join(dict.fromkeys(notes))
        return left_out

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.selection_._temperature(logits, features)
