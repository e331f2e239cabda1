"""Every example in a docstring of the package runs and gives what it says."""

import doctest
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import pytest
from matplotlib import pyplot as plt

import coolhead

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from site_parts import reference

MODULES = [
    found.name for found in pkgutil.walk_packages(coolhead.__path__, "coolhead.")
]


# Each module of its own, because a failed example of one hides none of another.
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    plt.switch_backend("Agg")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
    plt.close("all")


def public_names():
    """Module and name of everything that the reference lists, and what it is."""
    top = reference.top_names()
    yield from (("coolhead", name, getattr(coolhead, name)) for name in top)
    for listed in reference.MODULES:
        module = reference.public_module(listed)
        for name in set(module.__all__) - set(top):
            yield listed, name, getattr(module, name)


def has_example(found):
    """Whether there is a section of examples, and Python in it."""
    # Its own docstring: that of a base class tells of another name.
    text = inspect.cleandoc(found.__doc__ or "")
    _, heading, examples = text.partition("\nExamples\n--------\n")
    return bool(heading and doctest.DocTestParser().get_examples(examples))


def test_every_public_name_has_an_example():
    found = list(public_names())
    # A constant has no docstring; its page shows its value.
    without = [
        f"{room}.{name}"
        for room, name, one in found
        if callable(one) and not has_example(one)
    ]
    assert len(found) > 140
    assert not without


def described():
    """A function.

    Examples
    --------
    >>> 1 + 1
    2
    """


class Described:
    __doc__ = described.__doc__


class Inherits(Described): ...


def undescribed():
    """A function. Examples: none, though the word is there."""


def empty():
    """A function.

    Examples
    --------
    None yet.
    """


def test_a_name_without_an_example_is_found():
    assert has_example(described)
    assert has_example(Described)
    assert not any(map(has_example, (Inherits, undescribed, empty)))
