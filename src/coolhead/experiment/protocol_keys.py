"""Every key of a protocol file, with what it means, read off the models."""

import json
from dataclasses import fields
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from coolhead.experiment.mistakes import models_in
from coolhead.experiment.protocol import Classifier, Protocol
from coolhead.heads.settings import KINDS


class Key(NamedTuple):
    """One key: its type and default in words, "" where it must be given."""

    name: str
    kind: str
    default: str
    meaning: str


class KeyTable(NamedTuple):
    """One table of the file."""

    heading: str
    meaning: str
    keys: list[Key]


def protocol_tables() -> list[KeyTable]:
    """Every table that a protocol file may hold, in the order of the file."""
    found = [_table("top of the file", Protocol)]
    for name, info in Protocol.model_fields.items():
        for model in models_in(info.annotation):
            heading = f"[{name}]"
            if model is Classifier:
                heading = f"[{name}.NAME]"
            elif "kind" in model.model_fields:
                (kind,) = get_args(model.model_fields["kind"].annotation)
                heading += f' kind = "{kind}"'
            found.append(_table(heading, model))
    for kind, settings in KINDS.items():
        heading = f'[classifiers.NAME] kind = "{kind}"'
        types = get_type_hints(settings)
        keys = [
            Key(field.name, _kind(types[field.name]), toml(field.default), "")
            for field in fields(settings)
        ]
        found.append(KeyTable(heading, _prose(settings.__doc__), keys))
    return found


def _table(heading: str, model: type[BaseModel]) -> KeyTable:
    keys = [
        Key(name, _kind(info.annotation), _default(info), meaning_of(info))
        for name, info in model.model_fields.items()
        if not models_in(info.annotation)
    ]
    return KeyTable(heading, _prose(model.__doc__), keys)


def meaning_of(info: FieldInfo) -> str:
    """What a key means, in one line."""
    return _prose(info.description)


def _prose(text: str | None) -> str:
    return " ".join((text or "").split())


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(inner[0])
    if origin is Literal:
        return ", ".join(toml(choice) for choice in inner)
    if origin is tuple:
        return f"list of {_kind(inner[0])}"
    if origin is UnionType or NoneType in inner:
        return _kind(next(part for part in inner if part is not NoneType))
    words = {"str": "text", "int": "integer", "float": "number", "bool": "true, false"}
    name = getattr(annotation, "__name__", str(annotation))
    return words.get(name, name.lower())


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return ""
    return toml(info.get_default(call_default_factory=True))


def toml(value: Any) -> str:
    """A value as a TOML file writes it; nothing, which TOML cannot say, as "none"."""
    if value is None:
        return "none"
    return json.dumps(list(value) if isinstance(value, tuple) else value)
