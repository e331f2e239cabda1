"""Protocols by name or path, with the changes that a command line makes to them."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coolhead.io.archive import DomainArchive
from coolhead.lab.protocol import EvaluationSettings, Protocol, explain_mistakes
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

    Parameters
    ----------
    name_or_path : str or Path
    settings : sequence of str, default=()
        Lines of TOML such as ``evaluation.draws=200`` that replace those keys.
    **changes : object
        Replace top-level keys, for example ``seeds=[0, 1, 2]``.

    Returns
    -------
    Protocol
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
        raise ValueError(explain_mistakes(error, place)) from None


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
    """The text of a protocol that runs on `archive`."""
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
    head = "# Run it with: coolhead sweep THIS-FILE. All keys: docs/protocol.md"
    return "\n".join([head, *_toml(content)]) + "\n"


def _data(archive: DomainArchive, path: Path) -> dict[str, Any]:
    if archive.features is not None:
        return {"kind": "archive", "path": str(path)}
    pattern = path.with_name(f"{path.stem}-{{source}}{path.suffix}")
    return {"kind": "trained", "pattern": str(pattern)}


def _size(smallest: int) -> int:
    """Rows of one resample: no more than half of the smallest domain's Large rows."""
    most = EvaluationSettings.model_fields["size"].default
    return max(1, min(most, int(0.4 * smallest)))


def _toml(content: dict[str, Any], name: str = "") -> Iterator[str]:
    """The lines of nested tables of plain values."""
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    for key in [key for key in content if key not in tables]:
        yield f"{key} = {json.dumps(content[key])}"
    for key, table in tables.items():
        if not all(isinstance(value, dict) for value in table.values()):
            yield f"\n[{name}{key}]"
        yield from _toml(table, f"{name}{key}.")
