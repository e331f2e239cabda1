"""What was given: a calibrator of logits, or something that predicts from X."""

from typing import Any


def check_calibrator(calibrator: Any, *, temperature: bool = False) -> Any:
    """Refuse what does not predict from logits, or has no temperature if one is asked.

    A scikit-learn wrapper predicts from X: given logits, it would take them for that.
    """
    if not hasattr(calibrator, "uses_features"):
        raise TypeError(
            f"calibrator is a {type(calibrator).__name__}; wanted a calibrator of "
            "logits: of a CalibratedClassifier that is its calibrator_"
        )
    if temperature and not hasattr(calibrator, "temperature"):
        raise TypeError(
            f"calibrator is a {type(calibrator).__name__}; wanted a fitted calibrator "
            "that divides the logits by a temperature, such as AutoCalibrator"
        )
    return calibrator
