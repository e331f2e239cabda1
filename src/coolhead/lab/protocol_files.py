"""Protocols by name or path, with the changes that a command line makes to them."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
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

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from coolhead.io.archive import DomainArchive
from coolhead.lab.heads.settings import KINDS
from coolhead.lab.protocol import (
    Classifier,
    EvaluationSettings,
    Protocol,
    explain_mistakes,
    models_in,
)
from coolhead.plugins import suggest


def protocol_names() -> list[str]:
    """Names of the protocols inside the package."""
    folder = files("coolhead.lab") / "protocols"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def load_protocol(
    name_or_path: str | Path, settings: Sequence[str] = (), **changes: object
) -> Protocol:
    """Read a protocol by the name of a bundled one or by the path of a TOML file.

    settings : lines of TOML such as ``evaluation.draws=200`` that replace those keys.
    changes : replace top-level keys, for example ``seeds=[0, 1, 2]``.
    """
    text, place = _read(name_or_path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{place} is not valid TOML: {error}") from None
    for line in settings:
        content = _merged(content, _setting(line))
    given = {key: value for key, value in changes.items() if value is not None}
    return check_protocol(content | given, place)


def _setting(line: str) -> dict[str, Any]:
    """One key and value; a value that is no TOML is taken as text."""
    key, sign, value = line.partition("=")
    if not sign or not key.strip():
        raise ValueError(f"{line!r} sets nothing; wanted KEY=VALUE, as draws=200")
    try:
        return tomllib.loads(f"{key} = {value}")
    except tomllib.TOMLDecodeError:
        return tomllib.loads(f"{key} = {json.dumps(value)}")


def _merged(content: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Nested tables with those of `change` put in."""
    merged = dict(content)
    for key, value in change.items():
        deeper = isinstance(value, dict) and isinstance(content.get(key), dict)
        merged[key] = _merged(content[key], value) if deeper else value
    return merged


def change_protocol(protocol: Protocol, **changes: Any) -> Protocol:
    """The same protocol with other top-level keys, checked again."""
    content = protocol.model_dump() | changes
    return check_protocol(content, f"protocol {protocol.name}")


def check_protocol(content: dict[str, Any], place: str) -> Protocol:
    """The protocol of nested tables; mistakes are explained, with `place` in front."""
    try:
        return Protocol.model_validate(content)
    except ValidationError as error:
        raise ValueError(explain_mistakes(error, Protocol, place)) from None


def _read(name_or_path: str | Path) -> tuple[str, str]:
    path = Path(name_or_path)
    if path.is_file():
        return path.read_text(encoding="utf-8"), str(path)
    if str(name_or_path) in protocol_names():
        resource = files("coolhead.lab") / "protocols" / f"{name_or_path}.toml"
        return resource.read_text(encoding="utf-8"), f"protocol {name_or_path}"
    hint = suggest(str(name_or_path), protocol_names())
    raise ValueError(
        f"no protocol file or bundled protocol {str(name_or_path)!r}{hint}"
    )


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
        Key(name, _bounded(info), _default(info), meaning_of(info))
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


def _bounded(info: FieldInfo) -> str:
    """Type of a key, with the largest value where there is one."""
    most = [limit.le for limit in info.metadata if hasattr(limit, "le")]
    return ", at most ".join([_kind(info.annotation), *map(str, most)])


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return ""
    return toml(info.get_default(call_default_factory=True))


def toml(value: Any) -> str:
    """A value as a TOML file writes it; nothing, which TOML cannot say, as "none"."""
    if value is None:
        return "none"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


METHODS = [
    "uncalibrated",
    "source-only",
    "target-only",
    "set-level",
    "ensemble",
    "auto",
]
MOST_SPLITS_OF_ALL = 5


def new_protocol(archive: DomainArchive, path: Path, name: str) -> str:
    """The text of a protocol that runs on `archive`, every key with its meaning.

    Keys that need not be given stand there as comments, with their defaults.
    """
    sizes = {domain: n for domain, n in archive.domain_sizes().items() if n}
    if len(sizes) < 3:
        raise ValueError(
            f"{path} has {len(sizes)} domain(s): {', '.join(sizes)}; wanted three or "
            "more, to train on one, calibrate on others and test on one"
        )
    if archive.labels is None:
        raise ValueError(f"{path} has no labels; wanted them, to train and to test")
    content: dict[str, Any] = {
        "name": name,
        "title": f"{name}: one source, {len(sizes) - 2} calibration, one target",
        "data": _data(archive, path),
        "roles": {
            "domains": list(sizes),
            "source": 1,
            "calibration": len(sizes) - 2,
            "target": 1,
            "arrangement": "all" if len(sizes) <= MOST_SPLITS_OF_ALL else "cyclic",
        },
        "methods": {"names": METHODS, "clusters": 8},
        "evaluation": {"size": _size(min(sizes.values()))},
    }
    if archive.features is not None:
        content["classifiers"] = {"linear": {"kind": "logistic"}}
    Protocol.model_validate(content)
    return "\n".join(_lines(content)) + "\n"


def _data(archive: DomainArchive, path: Path) -> dict[str, Any]:
    if archive.features is not None:
        return {"kind": "archive", "path": str(path)}
    pattern = path.with_name(f"{path.stem}-{{source}}{path.suffix}")
    return {"kind": "trained", "pattern": str(pattern)}


def _size(smallest: int) -> int:
    """Rows of one resample: no more than half of the smallest domain's Large rows."""
    most = EvaluationSettings.model_fields["size"].default
    return max(1, min(most, int(0.4 * smallest)))


def _lines(content: dict[str, Any]) -> Iterator[str]:
    yield "# Run it with: coolhead sweep THIS-FILE --jobs 2"
    yield from _keys(Protocol, content)
    for name, info in Protocol.model_fields.items():
        models = models_in(info.annotation)
        if not models or (name == "classifiers" and name not in content):
            continue
        yield ""
        yield f"# {meaning_of(info)}"
        given = content.get(name, {})
        if Classifier in models:
            label, given = next(iter(given.items()))
            name = f"{name}.{label}"
        yield f"[{name}]"
        yield from _keys(_model_of(models, given), given)


def _model_of(models: list[Any], given: dict[str, Any]) -> Any:
    """The model of the kind that was chosen."""
    for model in models:
        kind = model.model_fields.get("kind")
        if kind is None or model is Classifier or given["kind"] in str(kind.annotation):
            return model
    raise ValueError(f"no kind of data {given['kind']!r}")


def _keys(model: Any, given: dict[str, Any]) -> Iterator[str]:
    for key, info in model.model_fields.items():
        if models_in(info.annotation):
            continue
        meaning = meaning_of(info)
        if meaning:
            yield f"# {meaning}"
        if key in given:
            yield f"{key} = {toml(given[key])}"
        else:
            yield f"# {key} = {toml(info.get_default(call_default_factory=True))}"
