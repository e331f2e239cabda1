"""The recommended default calibrator."""

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from coolhead.calibrators.base import TemperatureCalibrator
from coolhead.calibrators.class_offsets import (
    ClassOffsets,
    learn_class_offsets,
    left_out_problem,
    warn_of_class_bias,
)
from coolhead.calibrators.data import CalibrationData
from coolhead.calibrators.left_out import OutOfDomain, note_harm, warn_of_harm
from coolhead.calibrators.parameters import Seed, parameters
from coolhead.calibrators.select import SelectByDomain
from coolhead.calibrators.shift_aware import ShiftAwareTemperature
from coolhead.calibrators.temperature import TemperatureScaling
from coolhead.numerics.checks import check_choice
from coolhead.numerics.solver import Status

# So strong that the weights stay at the prior.
NO_CHOICE = 1e9
Choice = tuple[SelectByDomain, OutOfDomain, list[str]]
# Share of one temperature before any evidence, with features of the training data and
# without; chosen on development families (docs/class-offsets.md).
SET_LEVEL, SET_LEVEL_ALONE = 0.25, 0.5


@parameters
class AutoCalibrator(TemperatureCalibrator):
    """Average temperatures, and add class offsets, as left-out domains suggest.

    The candidates are the uncalibrated classifier, source-only, set-level (domains
    count the same) and shift-aware temperatures. Every calibration domain is left out
    once. The candidates are averaged in log temperature with the weights of smallest
    loss there. As few domains are weak evidence, the weights are shrunk towards three
    quarters shift-aware and one quarter set-level; without reference features, towards
    half of each.

    Class offsets, one number per class, are added to the scaled logits where left-out
    domains gain log loss and do not lose accuracy by them. Then predicted classes may
    differ from the classifier's.

    Without features it fits one temperature for all rows, under which domains count the
    same, and class offsets.

    Parameters
    ----------
    class_offsets : "auto" or False, default="auto"
        False keeps the predicted class of every row, here and in new domains.
    random_state : int, default=0
        Without effect since version 0.3: the sample of reference features is evenly
        spaced. Kept for calls and files of earlier versions.

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
    class_offsets_ : ndarray of shape (n_classes,)
        Added to the scaled logits; zeros where they did not help.
    left_out_accuracy_change_ : float
        By how much they change the accuracy of left-out domains, on average.
    temperature_ : float
        The candidates' set-level temperatures, averaged with the same weights.
    status_ : str
        How the average was chosen, what was missing, how much left-out domains vary,
        and whether they rule out harm in a new domain. No warning is no guarantee: a
        warning is raised only where a left-out domain loses by two standard errors.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains()    # best T: 1, 1.5, 2, 3
    >>> seen, unseen = data.select("site-0", "site-1", "site-2"), data.select("site-3")
    >>> cal = ch.AutoCalibrator().fit(
    ...     seen.logits, seen.labels, features=seen.features, sample_domain=seen.domains
    ... )
    >>> round(float(cal.temperature(unseen.logits, unseen.features).mean()), 1)
    1.7
    >>> cal.predict_proba(unseen.logits, unseen.features).shape
    (300, 3)
    """

    takes = ("features", "source", "reference")

    _: KW_ONLY
    class_offsets: bool | str = "auto"
    random_state: Seed = 0

    @property
    def uses_features(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """False after a fit without features."""
        return getattr(self, "n_features_", 0) is not None

    def _require(self, data: CalibrationData) -> None:
        """Accept any record: features are used where there are some."""

    def _learn(self, data: CalibrationData) -> OutOfDomain:
        check_choice(self.class_offsets, "class_offsets", "auto", False)
        if data.features is None:
            selection, left_out, notes = self._learn_one_temperature(data)
        else:
            selection, left_out, notes = self._learn_average(data)
        self.selection_, self.bounds_ = selection, selection.bounds_
        self.names_, self.weights_ = selection.names_, selection.weights_
        self.scores_, self.domains_ = selection.scores_, selection.domains_
        self.temperature_ = selection.temperature_
        learned = self._learn_offsets(data, left_out)
        if learned is not None:
            left_out = left_out.add_class_offsets(learned, data)
            change = 100 * self.left_out_accuracy_change_
            notes.append(
                f"class offsets: accuracy of left-out rows {change:+.1f} points"
                if learned.share
                else "no class offsets: left-out rows do not gain by them"
            )
        elif self.class_offsets:
            notes.append("no class offsets: one domain does not show a common bias")
        self.harmed_ = warn_of_harm(data, left_out, stacklevel=4)
        notes.append(note_harm(data, left_out, self.harmed_))
        if not data.domains_known:
            notes.append("no sample_domain: all rows count as one domain")
        elif not len(self.domains_):
            notes.append("fewer than two calibration domains: nothing left out")
        self.status_ = "; ".join(dict.fromkeys(notes))
        return left_out

    def _learn_one_temperature(self, data: CalibrationData) -> Choice:
        """Fit one temperature for all rows; domains count the same."""
        weights = "equal" if data.domains_known else "pooled"
        selection = SelectByDomain(
            [TemperatureScaling(domain_weights=weights)],
            combine="stack",
            penalty=NO_CHOICE,
        )
        selection.note_shapes(data.n_classes, None, data.classes)
        left_out = selection.select(data)
        return selection, left_out, ["no features: one temperature for all rows"]

    def _learn_average(self, data: CalibrationData) -> Choice:
        """Fit the candidates and the weights of their average."""
        shift_aware = ShiftAwareTemperature()
        shift_aware.fit_part(data)
        # The penalty of a left-out domain is chosen without it.
        variants = [
            ShiftAwareTemperature(penalty=penalty)
            for penalty in shift_aware.penalties_without_each()
        ]
        weights = "equal" if data.domains_known else "pooled"
        share = SET_LEVEL if data.reference is not None else SET_LEVEL_ALONE
        if not shift_aware.status_.startswith(str(Status.CONVERGED)):
            share = 0.0  # its temperature is at a limit: average without it
        selection = SelectByDomain(
            [TemperatureScaling(weights), ShiftAwareTemperature()],
            combine="stack",
            prior=(share, 1 - share),
        )
        selection.note_shapes(data.n_classes, data.features, data.classes)
        name = "ShiftAwareTemperature"
        left_out = selection.select(data, {name: shift_aware}, {name: variants})
        lowest, highest = shift_aware.bounds_
        selection.bounds_ = min(lowest, 0.0), max(highest, 0.0)
        notes = [*selection.status_.split("; "), *shift_aware.status_.split("; ")]
        return selection, left_out, notes

    def _learn_offsets(
        self, data: CalibrationData, left_out: OutOfDomain
    ) -> ClassOffsets | None:
        """Learn class offsets where left-out domains, or parts of one, gain by them."""
        folds, temperature = left_out.folds, left_out.temperature
        across_domains = folds.max(initial=-1) > 0
        if not across_domains or temperature is None:
            temperature = self._temperature(data.logits, data.features)
        # The class shares of one domain look like a bias of the classifier. Beside a
        # single calibration domain the source shows whether they are.
        alone = data.domains_known and len(data.domains.names) == 1
        if data.domains_known and not across_domains:
            folds = data.domains.codes
        rows = np.arange(len(data))
        if data.domains_known:
            rows = np.flatnonzero(folds >= 0)
        part = data.take(rows)
        problem = left_out_problem(
            part.logits, temperature[rows], part.labels, folds[rows], part.weights
        )
        self.class_offsets_, learned = np.zeros(data.n_classes), None
        self.left_out_accuracy_change_ = 0.0
        if self.class_offsets and not alone:
            learned = learn_class_offsets(problem, across_domains=across_domains)
            self.class_offsets_ = learned.offsets
            self.left_out_accuracy_change_ = float(learned.accuracy_changes.mean())
        warn_of_class_bias(problem, self.class_offsets_, data.classes, stacklevel=5)
        return learned

    def _temperature(self, logits: np.ndarray, features: Any) -> np.ndarray:
        return self.selection_._temperature(logits, features)
