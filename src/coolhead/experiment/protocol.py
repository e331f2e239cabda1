"""The protocol of an experiment: a TOML file, checked before a minute is spent.

Every table of the file is a frozen value; an unknown key is refused with the key
that was probably meant. The text below a key is its documentation: docs/protocol.md and
`coolhead new-protocol` are made from it.
"""

import re
from dataclasses import fields
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from coolhead.experiment.protocol_data import Data, Positive, Section, TrainedData
from coolhead.heads.settings import KINDS, head_settings
from coolhead.plugins import load_plugin
from coolhead.suggest import suggest


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
    """A head trained on features, with the settings of `coolhead.heads`.

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


class Methods(Section):
    """The methods that compete, by the names of `coolhead.experiment.methods`."""

    names: tuple[str, ...]
    """Names of the table, ``python:MODULE:CLASS``, or those of installed packages."""
    clusters: Positive = 8
    """Clusters, for the methods that use them."""
    sensitivity: tuple[Positive, ...] = ()
    """Numbers of clusters for a table of their own."""
    discriminator_rows: Positive = 20_000
    """Rows at most that density ratios are learned from."""
    label_draws: Positive = 3
    """How often target labels are drawn for a method that sees some; its scores are
    averages over them."""

    @field_validator("names")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from coolhead.experiment.methods import find_method

        if not names:
            raise ValueError("names no method; wanted at least one")
        for name in names:
            find_method(name)
        if len(set(names)) != len(names):
            raise ValueError(f"a method is named twice: {', '.join(names)}")
        return names


class EvaluationSettings(Section):
    """How a split is scored: resamples, bins and paired bootstrap."""

    size: Positive = 1500
    """Rows of one resample of the target, as in the paper."""
    draws: Positive = 1000
    """Number of those resamples."""
    bins: Positive = 15
    """Bins of the ECE."""
    other_bins: Positive = 10
    """Bins of a second ECE that stands beside it."""
    bootstrap: Positive = 1000
    """Resamples of the paired bootstrap."""
    metrics: tuple[str, ...] = ()
    """Functions of the user, ``python:MODULE:FUNCTION``, of (correct, confidence), (n,)
    each; every one becomes a column of a table."""

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
        if min(seeds, default=0) < 0:
            raise ValueError(f"found {min(seeds)}; wanted numbers from 0 on")
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
