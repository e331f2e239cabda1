"""The table [data] of a protocol: where rows come from, one class for each kind.

The text below a key is its documentation: docs/protocol.md and `coolhead new-protocol`
are made from it.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from coolhead.datasets.bundled import CHECKSUMS
from coolhead.suggest import suggest

Positive = Annotated[int, Field(gt=0)]


class Section(BaseModel):
    """One table of the file: frozen, and strict about its keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True
    )


class BundledData(Section):
    """A data set that ships with the package (features only)."""

    kind: Literal["bundled"]
    dataset: str
    """Its name, as in `load_dataset`."""

    @field_validator("dataset")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in CHECKSUMS:
            raise ValueError(f"unknown data set {name!r}{suggest(name, CHECKSUMS)}")
        return name


class PythonData(Section):
    """A function of the user; classifiers are trained on what it gives."""

    kind: Literal["python"]
    load: str
    """``python:MODULE:FUNCTION``; gives an archive of features, labels, domains."""


class ArchiveData(Section):
    """One archive of features of all domains; classifiers are trained on it."""

    kind: Literal["archive"]
    path: Path
    """A file of any kind that `load_archive` reads, with features, labels, domains."""
    train_path: Path | None = None
    """A second archive, when classifiers learn from other rows than those of `path`."""
    images: Path | None = None
    """Folder that the ids of the rows start from; the report then shows pictures."""


class TrainedData(Section):
    """Archives with logits, one per source set, made by a classifier of the user."""

    kind: Literal["trained"]
    pattern: str
    """Path with ``{source}``, the source domains joined by ``+``, and perhaps
    ``{seed}``."""
    images: Path | None = None
    """Folder that the ids of the rows start from; the report then shows pictures."""

    @field_validator("pattern")
    @classmethod
    def _names_the_source(cls, pattern: str) -> str:
        if "{source}" not in pattern:
            raise ValueError(f"{pattern!r} must contain {{source}}")
        return pattern


class FormationsData(Section):
    """Simulated formations on ten maps, a stand-in for data never published."""

    kind: Literal["formations"]
    n_images: Positive = 600
    """Pictures of each domain."""
    backbone: str = "efficientnet-lite0"
    """Network that turns pictures into features."""
    random_state: int = 0
    """Seed of the pictures."""


Data = Annotated[
    BundledData | ArchiveData | TrainedData | FormationsData | PythonData,
    Field(discriminator="kind"),
]
