"""Imports on first use: names of a package, and packages that an extra brings.

The only place, with `plugins`, where a module is found by a string.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

EXTRAS = {
    "polars": "files",
    "safetensors": "files",
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "report",
    "jinja2": "report",
    "PIL": "lab",
    "pydantic": "lab",
    "torch": "torch",
    "timm": "vision",
    "torchvision": "vision",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "dask": "dask",
    "distributed": "dask",
    "lightgbm": "models",
    "xgboost": "models",
    "catboost": "models",
    "transformers": "models",
    "mlflow": "mlflow",
}


@contextmanager
def needs(what: str) -> Iterator[None]:
    """Name the extra that brings a package which an import inside does not find.

    Parameters
    ----------
    what : str
        What needs the package, the beginning of the sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS or "pip install" in str(error):
            raise
        raise ModuleNotFoundError(
            f"{what} needs {package}: pip install 'coolhead[{EXTRAS[package]}]'",
            name=error.name,
        ) from error


def lazy_names(
    package: str,
    homes: Mapping[str, list[str]],
    subpackages: tuple[str, ...] = (),
    moved: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` of a package.

    Parameters
    ----------
    package : str
        Full name of the package.
    homes : mapping of str to list of str
        Modules of the package, and the names that each defines.
    subpackages : tuple of str, default=()
        Subpackages that are namespaces of their own.
    moved : mapping of str to str, default=None
        Names of the version before, and the full name of the object in this one. They
        work with a `DeprecationWarning`, and are not listed.
    """
    home = {name: module for module, names in homes.items() for name in names}
    public, old = [*home, *subpackages], moved or {}

    def __getattr__(name: str) -> Any:
        if name in home:
            with needs(f"{package}.{name}"):
                found = imported(f"{package}.{home[name]}.{name}")
            # Python asks here no more for what the module itself holds.
            setattr(sys.modules[package], name, found)
            return found
        if name in subpackages:
            with needs(f"{package}.{name}"):
                return import_module(f"{package}.{name}")
        if name in old:
            return _moved_object(f"{package}.{name}", old[name])
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__, lambda: sorted(public), public


def _moved_object(before: str, now: str) -> Any:
    """Import an object by the name it has now, with a warning that names it."""
    warnings.warn(
        f"{before} is now {now}; the old name goes in the next version",
        DeprecationWarning,
        stacklevel=3,
    )
    with needs(now):
        return imported(now)


def imported(path: str) -> Any:
    """Import an object by its full name; it may be a module itself."""
    module, _, name = path.rpartition(".")
    found = import_module(module)
    return getattr(found, name) if hasattr(found, name) else import_module(path)


class MovedModule(ModuleType):
    """A module of the version before, with the names of its successor."""

    def __init__(self, before: str, now: str):
        super().__init__(before)
        self.__now = now
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _moved_object(f"{self.__name__}.{name}", f"{self.__now}.{name}")


def keep_old_modules(names: Mapping[str, str]) -> None:
    """Let `import` find modules of the version before: old name to new name."""
    for before, now in names.items():
        sys.modules.setdefault(before, MovedModule(before, now))
