"""Names of the methods that can be fitted on labelled predictions alone."""

from typing import Annotated, Any

import typer

DEFAULT_METHOD = "auto"
# Compared when nothing else is asked for: the paper's, the nearest rival, the default.
FIRST = ("set-level", "nearest-cluster", "regression", "ensemble", "md-ts", "auto")


def method_names() -> list[str]:
    """Methods fitted on calibration domains and nothing else, the paper's first."""
    from coolhead.experiment.methods import METHODS

    fit_only = [
        name
        for name, method in METHODS.items()
        if "calibration" in method.rows
        and not name.endswith("+source")
        and not method.sees_target
    ]
    return sorted(fit_only, key=lambda name: (name not in FIRST, fit_only.index(name)))


def build_method(name: str, n_clusters: int, random_state: int) -> Any:
    """A calibrator that is not fitted yet; an unknown name is a mistake of usage."""
    from coolhead.experiment.methods import find_method
    from coolhead.plugins import installed_methods, is_plugin
    from coolhead.suggest import suggest

    known = [*method_names(), *installed_methods()]
    if name not in known and not is_plugin(name):
        hint = suggest(name, known)
        raise typer.BadParameter(f"{name!r} is no method{hint}", param_hint="--method")
    return find_method(name).build(n_clusters=n_clusters, random_state=random_state)


def is_outside(name: str) -> bool:
    """Whether a method is none of the package's."""
    return name not in method_names()


def _complete_method(incomplete: str) -> list[str]:
    return [name for name in method_names() if name.startswith(incomplete)]


MethodOption = Annotated[
    str,
    typer.Option(
        help="Name of the method, such as auto, ensemble or set-level; or "
        "python:MODULE:CLASS, a calibrator of your own.",
        autocompletion=_complete_method,
    ),
]
ClustersOption = Annotated[
    int, typer.Option(min=1, help="Clusters, for the methods that use them.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of all random draws.")]
