"""What `fit` and `compare` are told of the domains the classifier was trained on."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from coolhead.archive import DomainArchive

SourceOption = Annotated[
    str | None,
    typer.Option(
        help="Domains the classifier was trained on, as in a,b: held-out rows of "
        "the same file."
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(help="File with features of rows the classifier was trained on."),
]


def split_names(text: str | None, kind: str = "domain") -> list[str] | None:
    """The names in 'a,b', or None; `kind` says what they are names of."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(f"{text!r} names no {kind}; wanted names as in a,b")
    return names


def find_sources(calibrators: Sequence[Any], source: str | None) -> list[str]:
    """The source domains, refused where no method could tell them apart."""
    names = split_names(source)
    if names and not any("source" in method.takes for method in calibrators):
        treat = _told(calibrators, "treats", "treat")
        raise typer.BadParameter(f"{treat} all domains alike: leave --source out")
    return names or []


def read_reference(calibrators: Sequence[Any], path: Path | None) -> Any:
    """Features of training rows, refused where no method knows what to do with them."""
    from coolhead.archive import load_archive

    if path is None:
        return None
    if not any("reference" in method.takes for method in calibrators):
        do = _told(calibrators, "does", "do")
        raise typer.BadParameter(
            f"{do} not look at training rows: leave --reference out"
        )
    features = load_archive(path).features
    if features is None:
        raise ValueError(f"{path} has no features; wanted those of training rows")
    return features


def load_labelled(
    predictions: Path, kind: str, domains: str | None, sources: Sequence[str]
) -> "DomainArchive":
    """The labelled rows of these domains, as in a,b, and of the source."""
    from coolhead.archive import load_archive

    wanted = split_names(domains)
    if wanted is not None:
        wanted = list(dict.fromkeys([*wanted, *sources]))
    return load_archive(predictions, input=kind, labelled=True, domains=wanted)


def _told(calibrators: Sequence[Any], one: str, several: str) -> str:
    names = list(dict.fromkeys(type(method).__name__ for method in calibrators))
    return f"{', '.join(names)} {one if len(names) == 1 else several}"
