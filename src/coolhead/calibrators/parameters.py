"""Parameters of a calibrator: the annotated attributes of its class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from sklearn.base import BaseEstimator

Class = TypeVar("Class", bound=type)


class AtLeast(NamedTuple):
    """The smallest value of a parameter."""

    least: float


Count = Annotated[int, AtLeast(1)]
Size = Annotated[int, AtLeast(0)]
NotNegative = Annotated[float, AtLeast(0)]
Seed = Size | np.random.RandomState | np.random.Generator | None

SEQUENCES = (list, tuple, Sequence)
SEVERAL = list | tuple | np.ndarray
# In words, and which values count as such; True is no number here.
PLAIN = {
    bool: ("True or False", bool | np.bool_),
    int: ("an integer", Integral),
    float: ("a number", Real),
    str: ("a string", str),
    NoneType: ("None", NoneType),
    np.random.RandomState: ("a RandomState", np.random.RandomState),
    np.random.Generator: ("a Generator", np.random.Generator),
}


@dataclass_transform()
def parameters(own: Class) -> Class:
    """Write the constructor that scikit-learn expects: it stores what it is given.

    What is annotated in the body of the class is a parameter, after `_: KW_ONLY` by
    name alone; a class without annotations of its own has those of its base. `fit`
    refuses values that the annotations do not allow (`check_parameters`).
    """
    # Two calibrators are equal if they are the same, and scikit-learn prints them.
    return dataclass(eq=False, repr=False)(own)


def check_parameters(estimator: Any) -> None:
    """Refuse the first parameter whose value is of a kind its annotation is not."""
    for name, kind in _annotations(type(estimator)).items():
        value = getattr(estimator, name)
        if _is_of(value, kind):
            continue
        found = f"is {value!r}"
        if isinstance(value, SEVERAL):
            within = [k for k in _choices(kind) if get_origin(k) in SEQUENCES]
            wrong = [v for k in within for v in value if not _is_of(v, get_args(k)[0])]
            found = f"holds {wrong[0]!r}" if wrong else found
        raise ValueError(f"{name} {found}; wanted {_words(kind)}")


@cache
def _annotations(own: type) -> dict[str, Any]:
    if not is_dataclass(own):
        return {}
    try:
        found = get_type_hints(own, include_extras=True)
    except NameError:
        # A class of somebody else may name types that only a type checker sees.
        return {}
    return {field.name: found[field.name] for field in fields(own)}


def _is_of(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Annotated:
        inner, bound = get_args(kind)
        return _is_of(value, inner) and bool(value >= bound.least)
    if origin in (Union, UnionType):
        return any(_is_of(value, one) for one in _choices(kind))
    if kind in PLAIN:
        truth = isinstance(value, bool) and kind is not bool
        return isinstance(value, PLAIN[kind][1]) and not truth
    if origin in SEQUENCES:
        return isinstance(value, SEVERAL) and all(
            _is_of(one, get_args(kind)[0]) for one in value
        )
    if origin is Callable:
        return callable(value)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator):
        return isinstance(value, kind)
    return True  # Any, and what users annotate otherwise


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _words(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        inner, bound = get_args(kind)
        return f"{_words(inner)} >= {bound.least}"
    if origin in (Union, UnionType):
        return " or ".join(map(_words, _choices(kind)))
    if kind in PLAIN:
        return PLAIN[kind][0]
    if origin in SEQUENCES:
        return f"a list ({_words(get_args(kind)[0])} each)"
    if origin is Callable:
        return "a function"
    return f"a {kind.__name__}"
