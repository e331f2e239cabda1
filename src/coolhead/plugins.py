"""Objects of the user, named as ``python:MODULE:NAME``.

The only place, with `lazy`, where a module is found by a string.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

PREFIX = "python:"


def is_plugin(name: str) -> bool:
    """Whether a name points to an object of the user."""
    return name.startswith(PREFIX)


def load_plugin(name: str) -> Any:
    """The object behind ``python:MODULE:NAME``; the current folder counts."""
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
        raise ValueError(f"{name}: {module} has no {wanted}")
    return getattr(found, wanted)
