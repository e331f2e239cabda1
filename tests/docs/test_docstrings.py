"""Docstrings of the public names follow numpydoc as scikit-learn writes it."""

import inspect
import sys

import pytest
from pages import DOCS
from sklearn.externals._numpydoc.docscrape import NumpyDocString

import coolhead as ch

sys.path.insert(0, str(DOCS))
from site_parts import reference


def public_callables():
    """Functions, classes and methods on the pages of the reference, by full name."""
    modules = [ch, *map(reference.public_module, reference.MODULES)]
    for module in modules:
        for found in (getattr(module, name) for name in module.__all__):
            if not getattr(found, "__module__", "").startswith("coolhead."):
                continue
            name = f"{found.__module__}.{found.__qualname__}"
            yield name, found
            if inspect.isclass(found):
                for key, method in vars(found).items():
                    method = inspect.unwrap(getattr(method, "__func__", method))
                    if not key.startswith("_") and inspect.isfunction(method):
                        yield f"{name}.{key}", method


PUBLIC = dict(public_callables())


def faults(found):
    """What the section Parameters of a function or class lacks."""
    text = vars(found).get("__doc__") if inspect.isclass(found) else found.__doc__
    if not text:
        return ["no docstring"]
    entries = NumpyDocString(inspect.cleandoc(text))["Parameters"]
    # Extra keyword arguments have no type of their own.
    typed = [one for one in entries if not one.name.startswith("*")]
    lacking = [f"{one.name}: no type" for one in typed if not one.type]
    lacking += [f"{one.name}: no description below" for one in entries if not one.desc]
    names = [name.strip(" *") for one in entries for name in one.name.split(",")]
    if names:
        wanted = inspect.signature(found).parameters.keys() - {"self", "cls"}
        lacking += [f"{name}: not described" for name in sorted(wanted - set(names))]
    return lacking


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_parameters_have_a_type_and_a_description_below(name):
    assert faults(PUBLIC[name]) == []


@pytest.mark.parametrize(
    "name", [name for name in ch.__all__ if not inspect.ismodule(getattr(ch, name))]
)
def test_names_at_the_top_describe_their_parameters(name):
    found = getattr(ch, name)
    if name in {"Status", "DomainArchive"} or not callable(found):
        return
    if inspect.signature(found).parameters:
        assert NumpyDocString(inspect.getdoc(found))["Parameters"]


def test_faults_are_found():
    def scale(logits, labels, penalty):
        """Scale.

        Parameters
        ----------
        logits : rows of numbers
        labels
            The classes.
        """

    assert faults(scale) == [
        "labels: no type",
        "logits: no description below",
        "penalty: not described",
    ]
