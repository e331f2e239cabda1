"""Rivals that estimate accuracy without labels, from the calibration domains.

Thresholds and regressions give every calibration domain the same weight.
"""

from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from coolhead.calibrators.estimators import accuracy_threshold
from coolhead.numerics.softmax import confidence


def rival_accuracies(
    set_level: Any, auto: Any, data: Any, domains: np.ndarray, batch: Any
) -> dict[str, float]:
    """Estimate the accuracy of the classifier's own predictions.

    Parameters
    ----------
    set_level, auto : TemperatureCalibrator
        One temperature, and temperatures of rows; both keep the predicted class.
    data, batch : Rows
        Labelled rows of calibration domains, and unlabelled rows of the target.
    domains : ndarray of shape (n_samples,)
        Domain of each labelled row.
    """
    right = data.logits.argmax(axis=1) == data.labels
    codes = np.unique(domains, return_inverse=True)[1]
    weights = 1 / np.bincount(codes)[codes]
    weights /= weights.sum()
    found: dict[str, float] = {}
    for name, calibrator in (("one temperature", set_level), ("Auto", auto)):
        known, new = (
            confidence(
                rows.logits, calibrator._temperature(rows.logits, rows.features)
            )[0].astype(np.float64)
            for rows in (data, batch)
        )
        found[f"mean confidence, {name}"] = float(new.mean())
        # Difference of confidences (Guillory et al. 2021).
        found[f"DoC, {name}"] = float(weights @ (right - known) + new.mean())
        threshold = accuracy_threshold(known, right, codes)
        found[f"ATC, {name}"] = float(np.mean(new > threshold))
        # Confidence-based performance estimation: confidence calibrated on the known
        # domains by isotonic regression, as NannyML does.
        line = IsotonicRegression(out_of_bounds="clip")
        line.fit(known, right, sample_weight=weights)
        found[f"CBPE, {name}"] = float(line.predict(new).mean())
    return found
