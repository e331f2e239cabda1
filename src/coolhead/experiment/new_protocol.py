"""A commented protocol file for an archive of the user."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coolhead.archive import DomainArchive
from coolhead.experiment.mistakes import models_in
from coolhead.experiment.protocol import Classifier, EvaluationSettings, Protocol
from coolhead.experiment.protocol_keys import meaning_of, toml

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
