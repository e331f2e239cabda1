"""The protocol of an experiment: a TOML file, checked before a minute is spent.

Every table of the file is a frozen value; an unknown key is refused with the key
that was probably meant.
"""

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from coolhead.datasets.bundled import CHECKSUMS
from coolhead.heads.settings import KINDS, head_settings
from coolhead.plugins import load_plugin
from coolhead.suggest import suggest

Positive = Annotated[int, Field(gt=0)]


class Section(BaseModel):
    """One table of the file: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BundledData(Section):
    """A data set that ships with the package (features only)."""

    kind: Literal["bundled"]
    dataset: str

    @field_validator("dataset")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in CHECKSUMS:
            raise ValueError(f"unknown data set {name!r}{suggest(name, CHECKSUMS)}")
        return name


class PythonData(Section):
    """A function of the user, ``python:MODULE:FUNCTION``, that gives a DomainArchive.

    It has features, labels and domains; classifiers are trained on it.
    """

    kind: Literal["python"]
    load: str


class ArchiveData(Section):
    """One archive of features of all domains; classifiers are trained on it.

    `train_path` names a second archive when the classifier learns from other rows
    than those of `path` (DomainNet: its train lists). `images` is the folder that the
    ids of the rows start from; the report then shows pictures.
    """

    kind: Literal["archive"]
    path: Path
    train_path: Path | None = None
    images: Path | None = None


class TrainedData(Section):
    """Archives with logits, one per source set, made by a classifier of the user.

    `pattern` holds ``{source}``, replaced by the source domains joined with ``+``,
    and optionally ``{seed}``. `images` as for an archive.
    """

    kind: Literal["trained"]
    pattern: str
    images: Path | None = None

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
    backbone: str = "efficientnet-lite0"
    random_state: int = 0


Data = Annotated[
    BundledData | ArchiveData | TrainedData | FormationsData | PythonData,
    Field(discriminator="kind"),
]


class Roles(Section):
    """How many domains train, calibrate and test, and out of which."""

    domains: tuple[str, ...]
    source: Positive
    calibration: int = Field(ge=0)
    target: Positive
    calibrate_on: Literal["rest", "source"] = "rest"
    arrangement: Literal["all", "cyclic"] = "all"

    @model_validator(mode="after")
    def _enough_domains(self) -> "Roles":
        if len(set(self.domains)) != len(self.domains):
            raise ValueError(f"domains repeat a name: {', '.join(self.domains)}")
        calibration = 0 if self.calibrate_on == "source" else self.calibration
        if self.calibrate_on == "rest" and calibration == 0:
            raise ValueError("calibration is 0 but calibrate_on is 'rest'")
        wanted = self.source + calibration + self.target
        if wanted > len(self.domains):
            raise ValueError(
                f"source + calibration + target = {wanted} domains, "
                f"but domains lists {len(self.domains)}"
            )
        return self


class Division(Section):
    """Large and Small rows of each domain: one division shared by all splits."""

    small: float = Field(default=0.2, gt=0, lt=1)
    stratify: bool = False


class Classifier(BaseModel):
    """A head trained on features, with the settings of `coolhead.heads`.

    `features` says what the calibrators see: the head's input, or the activations
    of its last hidden layer.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    features: Literal["input", "penultimate"] = "input"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the head that the file gives."""
        return dict(self.model_extra or {})

    @model_validator(mode="after")
    def _known_settings(self) -> "Classifier":
        if self.kind not in KINDS:
            hint = suggest(self.kind, KINDS)
            raise ValueError(f"unknown kind {self.kind!r}{hint}")
        known = [field.name for field in fields(KINDS[self.kind])]
        for key in self.settings:
            if key not in known:
                raise ValueError(f"unknown key {key!r}{suggest(key, known)}")
        head_settings(self.kind, **self.settings)
        return self


class Methods(Section):
    """The methods that compete, by the names of `coolhead.experiment.methods`.

    `label_draws` : how often target labels are drawn for a method that sees some;
    its scores are averages over them.
    """

    names: tuple[str, ...]
    clusters: Positive = 8
    sensitivity: tuple[Positive, ...] = ()
    discriminator_rows: Positive = 20_000
    label_draws: Positive = 3

    @field_validator("names")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from coolhead.experiment.methods import find_method

        for name in names:
            find_method(name)
        if len(set(names)) != len(names):
            raise ValueError(f"a method is named twice: {', '.join(names)}")
        return names


class Evaluation(Section):
    """How a split is scored: resamples, bins and paired bootstrap.

    `metrics` are further functions of the user, ``python:MODULE:FUNCTION``, of
    (correct, confidence), (n,) each; every one becomes a column of its own table.
    """

    size: Positive = 1500
    draws: Positive = 1000
    bins: Positive = 15
    other_bins: Positive = 10
    bootstrap: Positive = 1000
    metrics: tuple[str, ...] = ()

    @field_validator("metrics")
    @classmethod
    def _loadable(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            load_plugin(name)
        return names


Varied = Literal["classifier", "division", "clusters"]


# A name that becomes part of a file's: no separator, no leading dot.
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$"


class Protocol(Section):
    """Everything that decides the numbers of an experiment.

    `order` says along what the list of domains runs, as in "from drawn to
    photographed"; the report then looks for a shape over them.
    """

    name: str = Field(pattern=FILE_NAME)
    title: str
    data: Data
    roles: Roles
    methods: Methods
    classifiers: dict[str, Classifier] = Field(default_factory=dict)
    division: Division = Division()
    evaluation: Evaluation = Evaluation()
    seeds: tuple[int, ...] = (0,)
    vary: tuple[Varied, ...] = ("classifier", "division", "clusters")
    paper: Literal["office_home", "domainnet"] | None = None
    order: str | None = None

    @field_validator("classifiers")
    @classmethod
    def _named_like_files(cls, classifiers: dict[str, Any]) -> dict[str, Any]:
        for name in classifiers:
            if not re.match(FILE_NAME, name):
                raise ValueError(
                    f"{name!r} is no name of a classifier; wanted letters, digits and "
                    "_ . + -, a letter or digit first"
                )
        return classifiers

    @model_validator(mode="after")
    def _classifiers_fit_the_data(self) -> "Protocol":
        if isinstance(self.data, TrainedData) == bool(self.classifiers):
            raise ValueError(
                "[classifiers.NAME] is needed unless data.kind is 'trained', "
                "which brings its own logits"
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds must be distinct and at least one: {self.seeds}")
        return self

    def seed_of(self, part: Varied, seed: int) -> int:
        """The seed of one part: the run's seed if that part varies, else 0."""
        return seed if part in self.vary else 0
