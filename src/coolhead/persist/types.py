"""The types that a calibrator file may hold."""

import sys
from collections.abc import Sequence
from dataclasses import is_dataclass
from functools import cache

from sklearn.base import BaseEstimator

from coolhead import baselines, calibrators, new_domain, shift
from coolhead.persist.container import damaged

# Types that hold numbers and settings in plain Python: of an imputer, of networks, of
# searches and of votes. Trees are not among them: a forged one reads anywhere.
HARMLESS = (
    "numpy.dtype",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._bunch.Bunch",
)
OWN_ROOMS = ("calibrators", "baselines", "new_domain", "shift", "numerics")


def refuse_foreign_types(
    content: bytes, trusted: Sequence[str], holder: str, remedy: str
) -> list[str]:
    """The types of coolhead in a skops file; any other is refused by name.

    remedy : what to do about it, where {trusted} stands for the names.
    """
    from skops.io import get_untrusted_types

    try:
        names = get_untrusted_types(data=content)
    except Exception as error:
        raise ValueError(damaged(holder, error)) from error
    known = {*trusted, *HARMLESS, *own_types()}
    foreign = [name for name in names if name not in known]
    if foreign:
        raise ValueError(
            f"{holder} holds types that are not coolhead's and are not loaded: "
            f"{', '.join(foreign)}; {remedy.format(trusted=foreign)}"
        )
    return names


@cache
def own_types() -> frozenset[str]:
    """Full names of the calibrators and records defined in `OWN_ROOMS`.

    A name that a file of ours merely imports is not its own, or a forged file could
    reach anything through us.
    """
    for room in (baselines, calibrators, new_domain, shift):
        # Each name is imported on first use, and its file with all it is made of.
        for name in room.__all__:
            getattr(room, name)
    rooms = tuple(f"coolhead.{room}." for room in OWN_ROOMS)
    return frozenset(
        f"{place}.{name}"
        for place, module in list(sys.modules.items())
        if place.startswith(rooms)
        for name, found in vars(module).items()
        if isinstance(found, type) and found.__module__ == place and _is_record(found)
    )


def _is_record(found: type) -> bool:
    named = is_dataclass(found) or hasattr(found, "_fields")
    return named or issubclass(found, BaseEstimator)
