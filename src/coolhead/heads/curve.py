"""The learning curve of a head, and when to stop."""

from copy import deepcopy
from typing import Any


class BestEpoch:
    """Remembers the learning curve and, for early stopping, the best parameters."""

    def __init__(self, patience: int | None):
        self.patience = patience
        self.curve: list[dict[str, float]] = []
        self.best: Any = None
        self.best_epoch = 0

    def is_over(self, record: dict[str, float], parameters: Any) -> bool:
        """Add one epoch; True when `patience` epochs have brought nothing."""
        self.curve.append(record)
        if self.patience is None:
            return False
        if record["small_loss"] <= min(entry["small_loss"] for entry in self.curve):
            self.best_epoch = len(self.curve)
            self.best = deepcopy(parameters)
        return len(self.curve) - self.best_epoch >= self.patience

    def result(self, parameters: Any) -> Any:
        """Return the best epoch's parameters, or the last ones without patience."""
        return parameters if self.patience is None else self.best
