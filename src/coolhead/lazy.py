"""Names of a package that are imported on first use.

The only place, with `plugins`, where a module is found by a string.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from coolhead.extras import needs


def lazy_names(
    package: str, homes: dict[str, list[str]], rooms: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    homes : module of the package -> the names it gives.
    rooms : subpackages that are namespaces of their own.
    """
    home = {name: module for module, names in homes.items() for name in names}
    public = [*home, *rooms]

    def __getattr__(name: str) -> Any:
        if name in home:
            with needs(f"{package}.{name}"):
                return getattr(import_module(f"{package}.{home[name]}"), name)
        if name in rooms:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__, lambda: sorted(public), public
