"""What a protocol file may hold: its tables, their keys, and what each means."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from coolhead.datasets.bundled import CHECKSUMS
from coolhead.lab.heads.settings import KINDS, head_settings
from coolhead.metrics.bins import N_BINS
from coolhead.plugins import load_plugin, suggest


def explain_mistakes(error: ValidationError, place: str) -> str:
    """All mistakes of a file, with the place in the file and the keys that exist."""
    return f"{place}: " + "; ".join(map(_sentence, error.errors()))


def _sentence(mistake: Any) -> str:
    where = ".".join(map(str, mistake["loc"]))
    if mistake["type"] == "extra_forbidden":
        hint = suggest(str(mistake["loc"][-1]), _keys_of(Protocol))
        return f"unknown key {where!r}{hint}"
    if mistake["type"] == "missing":
        return f"missing key {where!r}"
    message = mistake["msg"].removeprefix("Value error, ")
    if "ctx" in mistake and isinstance(mistake["input"], int | float):
        message += f"; found {mistake['input']!r}"
    return f"{where}: {message}" if where else message


def _keys_of(model: type[BaseModel]) -> set[str]:
    """The keys of a table and of all tables in it."""
    inner = [
        m for info in model.model_fields.values() for m in models_in(info.annotation)
    ]
    return set(model.model_fields).union(*map(_keys_of, inner))


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a key's type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for arg in get_args(annotation) for found in models_in(arg)]


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
    n_images: int = Field(default=600, gt=0, le=100_000)
    """Pictures of each domain."""
    backbone: str = "efficientnet-lite0"
    """Network that turns pictures into features."""
    random_state: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the pictures."""


Data = Annotated[
    BundledData | ArchiveData | TrainedData | FormationsData | PythonData,
    Field(discriminator="kind"),
]


class Roles(Section):
    """How many domains train, calibrate and test, and out of which."""

    domains: tuple[str, ...]
    """Names of the domains, in an order that means something if there is one."""
    source: Positive
    """How many domains a classifier is trained on."""
    calibration: int = Field(ge=0)
    """How many domains the methods calibrate on."""
    target: Positive
    """How many domains are tested on, together."""
    calibrate_on: Literal["rest", "source"] = "rest"
    """Calibrate on domains of their own, or on held-out rows of the source."""
    arrangement: Literal["all", "cyclic"] = "all"
    """Every choice of roles, or one per domain, each in turn."""

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
    """Share of Small rows: those are calibrated on, Large rows train and test."""
    stratify: bool = False
    """Keep the proportions of the classes."""


class Classifier(BaseModel):
    """A head trained on features, with the settings of `coolhead.lab.heads`.

    Every setting of its kind is a key, too.
    """

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    kind: str
    """logistic, mlp, erm or mldg."""
    features: Literal["input", "penultimate"] = "input"
    """What calibrators see: the head's input, or its last hidden layer."""

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


Clusters = Annotated[int, Field(gt=0, le=10_000)]


class Methods(Section):
    """The methods that compete, by the names of `coolhead.methods`."""

    names: tuple[str, ...]
    """Names of the table, ``python:MODULE:CLASS``, or those of installed packages."""
    clusters: Clusters = 8
    """Clusters, for the methods that use them."""
    sensitivity: tuple[Clusters, ...] = ()
    """Numbers of clusters for a table of their own."""
    discriminator_rows: int = Field(default=20_000, gt=0, le=10**8)
    """Rows at most that density ratios are learned from."""
    label_draws: int = Field(default=3, gt=0, le=1000)
    """How often target labels are drawn for a method that sees some; its scores are
    averages over them."""

    @field_validator("names")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from coolhead.methods import find_method

        if not names:
            raise ValueError("names no method; wanted at least one")
        for name in names:
            find_method(name)
        if len(set(names)) != len(names):
            raise ValueError(f"a method is named twice: {', '.join(names)}")
        return names


# Row numbers of all resamples are held at once, four bytes each.
MOST_DRAWN = 10**9


class EvaluationSettings(Section):
    """How a split is scored: resamples, bins and paired bootstrap."""

    size: int = Field(default=1500, gt=0, le=10**6)
    """Rows of one resample of the target, as in the paper. Of a target with fewer rows,
    three quarters are drawn; ``subsample_size`` in the results is their number."""
    draws: int = Field(default=1000, gt=0, le=100_000)
    """Number of those resamples; ``size`` times ``draws`` is at most 10⁹."""
    bins: int = Field(default=N_BINS, gt=0, le=1000)
    """Bins of the ECE."""
    other_bins: int = Field(default=10, gt=0, le=1000)
    """Bins of a second ECE that stands beside it."""
    class_name: str | None = None
    """A class whose own ECE stands beside the mean over the classes."""
    bootstrap: int = Field(default=1000, gt=0, le=100_000)
    """Resamples of the paired bootstrap."""
    metrics: tuple[str, ...] = ()
    """Functions of the user, ``python:MODULE:FUNCTION``, of (correct, confidence), (n,)
    each, or of (labels, probabilities); every one becomes a column of a table."""

    @model_validator(mode="after")
    def _resamples_fit_in_memory(self) -> "EvaluationSettings":
        if self.size * self.draws > MOST_DRAWN:
            raise ValueError(
                f"size * draws is {self.size} * {self.draws}, "
                f"{4e-9 * self.size * self.draws:.2g} GB of row numbers; wanted at "
                f"most {MOST_DRAWN}"
            )
        return self

    @field_validator("metrics")
    @classmethod
    def _loadable(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            load_plugin(name)
        return names


Share = Annotated[float, Field(gt=0, le=1)]


class Ablation(Section):
    """What else the paper's methods are fitted on, and how else they are scored.

    Every entry is one more column of a table. Nothing is varied by default.
    """

    rows: tuple[Share, ...] = ()
    """Shares of the calibration rows of each domain."""
    domains: tuple[Positive, ...] = ()
    """Numbers of calibration domains, averaged over the choices. A number beyond those
    of a split adds the source."""
    bins: tuple[Positive, ...] = ()
    """Numbers of bins of the ECE, each with equal widths and with equal masses."""


Varied = Literal["classifier", "division", "clusters"]


# A name that becomes part of a file's: no separator, no leading dot.
FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$"


class Protocol(Section):
    """Everything that decides the numbers of an experiment."""

    name: str = Field(pattern=FILE_NAME)
    """Of the run: its folder, and the files in it."""
    title: str
    """Of the report."""
    data: Data
    """Where the rows come from."""
    roles: Roles
    """Which domains train, calibrate and test."""
    methods: Methods
    """What competes."""
    classifiers: dict[str, Classifier] = Field(default_factory=dict)
    """Heads by a name of yours, ``[classifiers.NAME]``; none for trained data."""
    division: Division = Division()
    """Which rows calibrate, and which train and test."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """How it is scored."""
    ablation: Ablation = Ablation()
    """What is varied besides."""
    seeds: tuple[int, ...] = (0,)
    """The whole experiment once for each."""
    vary: tuple[Varied, ...] = ("classifier", "division", "clusters")
    """What a seed changes."""
    paper: Literal["office_home", "domainnet"] | None = None
    """Whose published numbers stand beside ours."""
    order: str | None = None
    """Along what the domains are listed, as in "from drawn to photographed"; the report
    then looks for a shape over them."""

    @field_validator("seeds")
    @classmethod
    def _drawable(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        wrong = [seed for seed in seeds if not 0 <= seed < 2**32]
        if wrong:
            raise ValueError(f"found {wrong[0]}; wanted numbers from 0 to {2**32 - 1}")
        return seeds

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
