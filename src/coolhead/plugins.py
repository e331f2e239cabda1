"""Objects of users by name, and suggestions for names that are unknown."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

MOST_LISTED = 20


def suggest(wrong: str, known: Iterable[str]) -> str:
    """Return '; did you mean X?' or the known names, to end an error message."""
    names = [str(name) for name in known]
    by_case = {name.casefold(): name for name in names}
    close = get_close_matches(wrong.casefold(), by_case, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {by_case[close[0]]!r}?"
    more = ", ..." if len(names) > MOST_LISTED else ""
    return f"; known: {', '.join(names[:MOST_LISTED]) or 'none'}{more}"


PREFIX = "python:"
METHODS = "coolhead.methods"


def installed_methods() -> dict[str, EntryPoint]:
    """Return the methods that packages offer as entry points ``coolhead.methods``."""
    return {point.name: point for point in entry_points(group=METHODS)}


def is_plugin(name: str) -> bool:
    """Return whether a name is that of an object of the user."""
    return name.startswith(PREFIX) or name in installed_methods()


def load_plugin(name: str) -> Any:
    """Return the object ``python:MODULE:NAME``, or an installed method by its name.

    Modules are also found in the current folder.
    """
    if not name.startswith(PREFIX) and name in installed_methods():
        return _load_installed(name)
    _, _, path = name.partition(":")
    module, _, wanted = path.partition(":")
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
    """Return MODULE.CLASS, as files name their types."""
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
