"""What can be set for each kind of head, as frozen values with checked names."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any


@dataclass(frozen=True)
class LogisticSettings:
    """Multinomial logistic regression (scikit-learn)."""

    C: float = 1.0
    max_iter: int = 1000


@dataclass(frozen=True)
class MlpSettings:
    """One or more hidden ReLU layers trained by Adam (scikit-learn, no torch).

    ``patience`` as for ``erm``.
    """

    hidden: tuple[int, ...] = (512,)
    alpha: float = 1e-4
    learning_rate: float = 1e-3
    batch_size: int = 128
    epochs: int = 15
    patience: int = 0


@dataclass(frozen=True)
class ErmSettings:
    """Empirical risk minimisation on one or several sources (torch).

    The defaults are the head the project's measurements use: one hidden layer of
    512 ReLU units, dropout 0.5, AdamW at 1e-3 with weight decay 1e-2, batches of
    128, 15 epochs. ``hidden=()`` is a linear head. ``patience`` ends training after
    that many epochs in a row without a lower loss on the source's calibration (Small)
    rows, and returns the epoch of the lowest; 0 trains all epochs.
    """

    hidden: tuple[int, ...] = (512,)
    dropout: float = 0.5
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    batch_size: int = 128
    epochs: int = 15
    patience: int = 0
    balance_domains: bool = True


@dataclass(frozen=True)
class MldgSettings(ErmSettings):
    """Meta-learning domain generalisation: ERM plus the loss after an inner step.

    ``inner_step`` None tries each of ``inner_steps`` and keeps the one with the
    lowest loss on the sources' Small rows. ``meta_test`` is the number of source
    domains held out at each step, half of them when None.
    """

    inner_step: float | None = None
    inner_steps: tuple[float, ...] = (0.01, 0.1, 0.5)
    beta: float = 1.0
    second_order: bool = True
    meta_test: int | None = None


KINDS: dict[str, type] = {
    "logistic": LogisticSettings,
    "mlp": MlpSettings,
    "erm": ErmSettings,
    "mldg": MldgSettings,
}
TORCH_KINDS = ("erm", "mldg")


def head_settings(kind: str, **changes: Any) -> Any:
    """Return the settings of `kind` with `changes`; refuse unknown names."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; found {kind!r}")
    known = [field.name for field in fields(KINDS[kind])]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise ValueError(f"kind={kind!r} has no setting {unknown}; it has {known}")
    if "hidden" in changes:
        changes["hidden"] = _widths(changes["hidden"])
    settings = KINDS[kind](**changes)
    _check_ranges(asdict(settings))
    return settings


def _widths(hidden: Any) -> tuple[int, ...]:
    widths = tuple(hidden) if isinstance(hidden, Iterable) else (hidden,)
    if not all(_is_count(width, WIDEST) for width in widths):
        raise ValueError(
            f"hidden must hold positive layer widths up to {WIDEST}; found {hidden!r}"
        )
    return tuple(map(int, widths))


def _is_count(value: Any, most: int) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and 1 <= int(value) <= most


WIDEST, MOST_STEPS = 2**16, 10**6
RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (
        "epochs batch_size max_iter meta_test",
        lambda value: _is_count(value, MOST_STEPS),
        f"must be a whole number from 1 to {MOST_STEPS}",
    ),
    (
        "patience",
        lambda value: value == 0 or _is_count(value, MOST_STEPS),
        f"must be a whole number from 0 to {MOST_STEPS}",
    ),
    ("C learning_rate inner_step", lambda value: value > 0, "must be positive"),
    ("alpha weight_decay beta", lambda value: value >= 0, "must not be negative"),
    ("dropout", lambda value: 0 <= value < 1, "must lie in [0, 1)"),
)


def _check_ranges(values: dict[str, Any]) -> None:
    for names, holds, rule in RULES:
        for name in names.split():
            value = values.get(name)
            number = isinstance(value, Real)
            if value is not None and not (number and holds(value)):
                raise ValueError(f"{name} {rule}; found {value!r}")


class BestEpoch:
    """Remembers the learning curve and, for early stopping, the best parameters."""

    def __init__(self, patience: int):
        self.patience = patience
        self.curve: list[dict[str, float]] = []
        self.best: Any = None
        self.best_epoch = 0

    def is_over(self, record: dict[str, float], parameters: Any) -> bool:
        """Add one epoch; True when `patience` epochs have brought nothing."""
        self.curve.append(record)
        if not self.patience:
            return False
        if record["small_loss"] <= min(entry["small_loss"] for entry in self.curve):
            self.best_epoch = len(self.curve)
            self.best = deepcopy(parameters)
        return len(self.curve) - self.best_epoch >= self.patience

    def result(self, parameters: Any) -> Any:
        """Return the best epoch's parameters, or the last ones without patience."""
        return self.best if self.patience else parameters
