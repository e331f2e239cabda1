"""What `NewDomain` accepts."""

from collections.abc import Sequence
from typing import Any

KINDS = ("left_out", "batch", "labels")


def check_calibrator(calibrator: Any) -> Any:
    if not hasattr(calibrator, "_temperature") or not hasattr(
        calibrator, "_check_query"
    ):
        raise TypeError(
            f"calibrator is a {type(calibrator).__name__}; wanted a fitted calibrator "
            "that divides the logits by a temperature, such as AutoCalibrator"
        )
    return calibrator


def check_use(use: Sequence[str]) -> tuple[str, ...]:
    kinds = (use,) if isinstance(use, str) else tuple(use)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(
            f"evidence {unknown[0]!r} is not known; wanted some of {', '.join(KINDS)}"
        )
    return kinds
