"""Every example in a docstring of the package runs and gives what it says."""

import doctest
import importlib
import pkgutil

import pytest

import coolhead

MODULES = [
    found.name for found in pkgutil.walk_packages(coolhead.__path__, "coolhead.")
]


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = map(importlib.import_module, MODULES)
    examples = [one for m in modules for one in finder.find(m) if one.examples]
    assert len(examples) >= 5


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
