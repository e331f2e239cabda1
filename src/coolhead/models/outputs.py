"""Outputs of models as logits, and the check for calibrators of logits."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coolhead.numerics.checks import (
    as_logits,
    check_probabilities,
    real_array,
    refuse_probabilities,
)
from coolhead.numerics.classes import scores_by_name
from coolhead.numerics.moments import pad_options


def check_calibrator(calibrator: Any, *, temperature: bool = False) -> Any:
    """Refuse an object that does not predict from logits, or has no temperature.

    A scikit-learn wrapper predicts from X, and would take logits for X.
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


class Reading(NamedTuple):
    """Logits (n, k), and whether they are logarithms of probabilities.

    Of those, -inf is a probability of exactly zero; of others it is a masked class.
    """

    logits: np.ndarray
    from_probabilities: bool = False


def from_probabilities(probabilities: Any, name: str) -> Reading:
    """Return logarithms of probabilities (n, k), or of class 1, (n,) or (n, 1)."""
    array = real_array(probabilities, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 1:
        array = np.column_stack([1 - array, array])
    return from_logarithms(_log(check_probabilities(array, name)))


def from_logarithms(logits: Any) -> Reading:
    """Return the log-probabilities (n, k) of a model itself."""
    return Reading(as_logits(logits, "the log-probabilities"), True)


def _log(array: np.ndarray) -> np.ndarray:
    # Half precision has few numbers near zero; its logarithms need more digits.
    wide = array if array.dtype == np.float64 else array.astype(np.float32)
    with np.errstate(divide="ignore"):
        return np.log(wide)


def sigmoids(scores: Any) -> Reading:
    """Return logits of one binary score per class: the logarithms of their sigmoids."""
    scores = real_array(scores, "the scores")
    return Reading(-np.logaddexp(0, -scores))


def read_output(output: Any, gives: str | None, classes: Any, name: str) -> Reading:
    """Return the logits of the output of a model or function."""
    if gives not in (None, "logits", "probabilities"):
        raise ValueError(f"gives is {gives!r}; wanted 'logits' or 'probabilities'")
    if _is_ragged(output):
        width = max(map(len, output))
        array, gives = pad_options(output, width), gives or "logits"
    elif _is_scores_by_class(output):
        array = _by_class(output, classes)
        gives = gives or ("probabilities" if _is_labelled(output[0]) else "logits")
    else:
        array = scores_in(output)
    if gives == "probabilities":
        return from_probabilities(array, name)
    array = real_array(array, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]  # one unit of output is the margin of class 1
    found = as_logits(array, name)
    if array.ndim == 2 and gives is None:
        try:
            refuse_probabilities(found, name)
        except ValueError as error:
            message = f"{error}, or say gives='probabilities'"
            raise ValueError(message) from None
    return Reading(found)


def scores_in(output: Any) -> Any:
    """Return the scores of an object, dictionary or tuple that holds more."""
    for name in ("logits", "predictions"):
        if isinstance(output, Mapping) and name in output:
            return scores_in(output[name])
        if hasattr(output, name):
            return scores_in(getattr(output, name))
    if isinstance(output, Mapping):
        raise TypeError(
            f"the model returned a dictionary of {', '.join(map(str, output))}; wanted "
            "one with logits"
        )
    if isinstance(output, tuple) and output and hasattr(output[0], "shape"):
        return output[0]  # (logits, features), (logits, hidden states, ...)
    return output


def _is_scores_by_class(output: Any) -> bool:
    if not isinstance(output, Sequence) or isinstance(output, str) or not len(output):
        return False
    first = output[0]
    return isinstance(first, Mapping) or _is_labelled(first)


def _is_ragged(output: Any) -> bool:
    """Return whether rows have their own number of options, as in multiple choice."""
    if not isinstance(output, list) or not output:
        return False
    numbers = all(isinstance(row, list | tuple | np.ndarray) for row in output)
    if not numbers or any(isinstance(row[0], Mapping) for row in output if len(row)):
        return False
    return len({len(row) for row in output}) > 1


def _is_labelled(row: Any) -> bool:
    """Return whether this is a row of a pipeline: dictionaries of label and score."""
    return (
        isinstance(row, Sequence)
        and len(row) > 0
        and isinstance(row[0], Mapping)
        and {"label", "score"} <= set(row[0])
    )


def _by_class(rows: Sequence[Any], classes: Any) -> np.ndarray:
    if isinstance(rows[0], Mapping) and set(rows[0]) == {"label", "score"}:
        raise ValueError(
            "the output names one class per row; wanted the scores of all classes, "
            "pipeline(..., top_k=None)"
        )
    if _is_labelled(rows[0]):
        rows = [{found["label"]: found["score"] for found in row} for row in rows]
    return scores_by_name(rows, classes)
