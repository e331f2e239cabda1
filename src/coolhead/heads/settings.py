"""What can be set for each kind of head, as frozen values with checked names."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class LogisticSettings:
    """Multinomial logistic regression (scikit-learn)."""

    C: float = 1.0
    max_iter: int = 1000


@dataclass(frozen=True)
class MlpSettings:
    """One or more hidden ReLU layers trained by Adam (scikit-learn, no torch)."""

    hidden: tuple[int, ...] = (512,)
    alpha: float = 1e-4
    learning_rate: float = 1e-3
    batch_size: int = 128
    epochs: int = 15
    patience: int | None = None


@dataclass(frozen=True)
class ErmSettings:
    """Empirical risk minimisation on one or several sources (torch).

    The defaults are the head the project's measurements use: one hidden layer of
    512 ReLU units, dropout 0.5, AdamW at 1e-3 with weight decay 1e-2, batches of
    128, 15 epochs. ``hidden=()`` is a linear head. ``patience`` stops after that
    many epochs without a lower loss on Small and returns the best epoch.
    """

    hidden: tuple[int, ...] = (512,)
    dropout: float = 0.5
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    batch_size: int = 128
    epochs: int = 15
    patience: int | None = None
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
    widths = (hidden,) if isinstance(hidden, int) else tuple(int(h) for h in hidden)
    if any(width < 1 for width in widths):
        raise ValueError(f"hidden must hold positive layer widths; found {widths}")
    return widths


RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (
        "epochs batch_size patience max_iter meta_test",
        lambda value: isinstance(value, int) and value >= 1,
        "must be a whole number of at least 1",
    ),
    ("C learning_rate inner_step", lambda value: value > 0, "must be positive"),
    ("alpha weight_decay beta", lambda value: value >= 0, "must not be negative"),
    ("dropout", lambda value: 0 <= value < 1, "must lie in [0, 1)"),
)


def _check_ranges(values: dict[str, Any]) -> None:
    for names, holds, rule in RULES:
        for name in names.split():
            value = values.get(name)
            if value is not None and not holds(value):
                raise ValueError(f"{name} {rule}; found {value!r}")
