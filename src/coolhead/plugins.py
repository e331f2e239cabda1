"""Objects of the user: ``python:MODULE:NAME``, or methods of installed packages.

The only place, with `lazy`, where a module is found by a string.
"""

import sys
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from coolhead.suggest import suggest

PREFIX = "python:"
METHODS = "coolhead.methods"


def installed_methods() -> dict[str, EntryPoint]:
    """Methods that packages offer under the entry point ``coolhead.methods``."""
    return {point.name: point for point in entry_points(group=METHODS)}


def is_plugin(name: str) -> bool:
    """Whether a name points to an object of the user."""
    return name.startswith(PREFIX) or name in installed_methods()


def load_plugin(name: str) -> Any:
    """The object behind ``python:MODULE:NAME`` or the name of an installed method.

    The current folder counts as a place of modules.
    """
    if not name.startswith(PREFIX) and name in installed_methods():
        return _load_installed(name)
    _, _, place = name.partition(":")
    module, _, wanted = place.partition(":")
    if not module or not wanted:
        raise ValueError(f"{name!r} names no object; wanted python:MODULE:NAME")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = import_module(module)
    except ImportError as error:
        raise ImportError(f"{name}: cannot import {module}: {error}") from error
    if not hasattr(found, wanted):
        known = [own for own in vars(found) if not own.startswith("_")]
        raise ValueError(f"{name}: {module} has no {wanted}{suggest(wanted, known)}")
    return getattr(found, wanted)


def full_name(found: type) -> str:
    """MODULE.CLASS, as files name their types."""
    return f"{found.__module__}.{found.__qualname__}"


def _load_installed(name: str) -> Any:
    point = installed_methods()[name]
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"the method {name!r} of an installed package ({point.value}) cannot be "
            f"imported: {error}"
        ) from error
