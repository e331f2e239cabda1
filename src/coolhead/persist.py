"""Fitted calibrators as files that cannot run code: skops, never pickle.

A file is a zip archive: what skops writes, and `coolhead.json` with the version of
the format, the class and the metadata, so it can be read without loading anything.
"""

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coolhead import __version__, baselines, calibrators, shift
from coolhead.files import atomic_path, check_input

FORMAT = "coolhead calibrator"
FORMAT_VERSION = 2
HEADER = "coolhead.json"
SCHEMA = "schema.json"
MAX_BYTES = 2**30
# Beyond this size, numbers that pack into a hundredth of their room are no numbers.
SMALL_BYTES, MAX_RATIO = 2**24, 100
MAX_SCHEMA_BYTES = 2**26
MAX_WIDTH = 2**24
OWN_ROOMS = ("calibrators", "baselines", "shift", "numerics")


def save_calibrator(
    calibrator: Any,
    path: str | os.PathLike,
    *,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write a fitted calibrator; the file appears whole or not at all.

    metadata : JSON values, e.g. what the calibrator was fitted on.
    """
    from skops.io import dumps

    check_is_fitted(calibrator)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "coolhead_version": __version__,
        "class": type(calibrator).__name__,
        "metadata": _plain_json(metadata or {}),
    }
    content = dumps(calibrator, compression=ZIP_DEFLATED)
    _refuse_foreign_types(content, (), f"this {type(calibrator).__name__}")
    buffer = io.BytesIO(content)
    with ZipFile(buffer, "a", compression=ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1, ensure_ascii=False))
    with atomic_path(path) as temporary:
        try:
            temporary.write_bytes(buffer.getvalue())
        except OSError as error:
            reason = f"cannot write {os.fspath(path)}: {error.strerror}"
            raise OSError(reason) from error


def load_calibrator(path: str | os.PathLike, *, trusted: Sequence[str] = ()) -> Any:
    """Read a calibrator; nothing in the file is executed.

    Types other than coolhead's own calibrators and what skops itself holds for safe
    (NumPy, SciPy and scikit-learn) are refused by name before anything is built.

    trusted : full names of further types to allow, such as those of your own members
        of an ensemble.
    """
    path = Path(path)
    content = _read(path)
    read_header(path)
    from skops.io import loads

    own = _refuse_foreign_types(content, trusted, str(path))
    try:
        calibrator = loads(content, trusted=own)
        found = f"{type(calibrator).__module__}.{type(calibrator).__qualname__}"
        known = found in trusted or found in _own_types()
        wanted = known and hasattr(calibrator, "predict_proba")
        if wanted:
            _try_out(calibrator)
    except Exception as error:
        # A damaged or forged file can fail anywhere, with any error.
        raise ValueError(_damaged(path, error)) from error
    if not wanted:
        raise ValueError(f"{path} holds a {found}; wanted a fitted calibrator")
    return calibrator


def predicts_from_logits(calibrator: Any) -> bool:
    """False for a `CalibratedClassifier`, which wants what its classifier wants."""
    return "logits" in signature(calibrator.predict_proba).parameters


def _try_out(calibrator: Any) -> None:
    """Predict two rows, so that a forged file fails now and not in service."""
    check_is_fitted(calibrator)
    _check_temperatures(calibrator)
    if not predicts_from_logits(calibrator):
        return
    n_classes, n_features = calibrator.n_classes_, _width(calibrator)
    if not 2 <= n_classes <= MAX_WIDTH or not 0 <= n_features <= MAX_WIDTH:
        raise ValueError(f"{n_classes} classes and {n_features} features")
    logits = np.zeros((2, n_classes))
    logits[1, 0] = 2.0
    features = np.zeros((2, n_features)) if n_features else None
    with np.errstate(all="ignore"):
        probabilities = calibrator.predict_proba(logits, features)
        if hasattr(calibrator, "temperature"):
            _refuse_impossible(calibrator.temperature(logits, features), "T(x)")
    if probabilities.shape != logits.shape or not np.isfinite(probabilities).all():
        raise ValueError("it does not predict probabilities")


def _check_temperatures(calibrator: Any) -> None:
    for part in _parts(calibrator):
        for name, value in vars(part).items():
            if name.endswith(("temperature_", "temperatures_")):
                _refuse_impossible(value, name)


def _refuse_impossible(temperature: Any, name: str) -> None:
    array = np.asarray(temperature, float)
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{name} is not positive and finite everywhere")


def _width(calibrator: Any) -> int:
    """Number of features of the first part that uses any."""
    widths = (getattr(part, "n_features_", None) for part in _parts(calibrator))
    return next((width for width in widths if width), 0)


def _parts(value: Any) -> Iterator[Any]:
    """A calibrator and all estimators that it is made of."""
    if isinstance(value, BaseEstimator):
        yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """What the file says about itself: versions, class and metadata.

    A calibrator written by skops directly has no header and counts as format 0.
    """
    path = Path(path)
    try:
        with ZipFile(io.BytesIO(_read(path))) as archive:
            if HEADER not in archive.namelist():
                return {"format": FORMAT, "format_version": 0, "metadata": {}}
            header = json.loads(archive.read(HEADER))
            found = header["format_version"]
            newer = header["format"] != FORMAT or found > FORMAT_VERSION
            writer = str(header.get("coolhead_version", "a newer version"))
            header["metadata"] = dict(header["metadata"])
    except Exception as error:
        raise ValueError(_damaged(path, error)) from error
    if newer:
        raise ValueError(
            f"{path} has format {found!r} of coolhead {writer}; this coolhead reads up "
            f"to {FORMAT_VERSION}: install coolhead {writer} or newer"
        )
    if found < FORMAT_VERSION:
        raise ValueError(
            f"{path} was written by coolhead {writer}, whose calibrators are others "
            "than today's; fit again with coolhead fit PREDICTIONS --out "
            f"{path.name}, or with save_calibrator"
        )
    return header


def _read(path: Path) -> bytes:
    """The bytes of a zip file of reasonable size."""
    check_input(path, "a calibrator file")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; wanted a calibrator file")
    content = path.read_bytes()
    if not content:
        raise ValueError(f"{path} is empty (0 bytes); wanted a calibrator file")
    if content[:1] == b"\x80":
        raise ValueError(
            f"{path} looks like a pickle, which may run code when it is read and is "
            "never loaded; save with coolhead.save_calibrator"
        )
    try:
        size = _unpacked_size(content)
    except Exception as error:
        raise ValueError(_damaged(path, error)) from error
    most = min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * len(content)))
    if size > most:
        raise ValueError(f"{path} unpacks to {size} bytes; wanted at most {most}")
    return content


def _unpacked_size(content: bytes) -> int:
    """Bytes of all members, each as often as the calibrator is made from it."""
    with ZipFile(io.BytesIO(content)) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if len(sizes) != len(archive.infolist()):
            raise ValueError("a member is there twice")
        if sizes.get(SCHEMA, 0) > MAX_SCHEMA_BYTES:
            raise ValueError(f"{SCHEMA} takes {sizes[SCHEMA]} bytes")
        if SCHEMA not in sizes:
            return sum(sizes.values())
        named = _named_members(json.loads(archive.read(SCHEMA)))
    return sum(max(1, named[name]) * size for name, size in sizes.items())


def _named_members(schema: Any) -> Counter[str]:
    """How many nodes are read from each file; skops builds nodes of one id once."""
    found: dict[Any, str] = {}
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "file" in node:
                found[node.get("__id__") or id(node)] = str(node["file"])
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return Counter(found.values())


def _refuse_foreign_types(
    content: bytes, trusted: Sequence[str], holder: str
) -> list[str]:
    """The types of coolhead in a skops file; any other is refused by name."""
    from skops.io import get_untrusted_types

    try:
        names = get_untrusted_types(data=content)
    except Exception as error:
        raise ValueError(_damaged(holder, error)) from error
    known = {*trusted, *_own_types()}
    foreign = [name for name in names if name not in known]
    if foreign:
        raise ValueError(
            f"{holder} holds types that are not coolhead's and are not loaded: "
            f"{', '.join(foreign)}"
        )
    return names


@cache
def _own_types() -> frozenset[str]:
    """Full names of the calibrators and records defined in `OWN_ROOMS`.

    A name that a file of ours merely imports is not its own, or a forged file could
    reach anything through us.
    """
    for room in (baselines, calibrators, shift):
        # Each name is imported on first use, and its file with all it is made of.
        for name in room.__all__:
            getattr(room, name)
    rooms = tuple(f"coolhead.{room}." for room in OWN_ROOMS)
    return frozenset(
        f"{place}.{name}"
        for place, module in list(sys.modules.items())
        if place.startswith(rooms)
        for name, found in vars(module).items()
        if isinstance(found, type) and found.__module__ == place and _is_record(found)
    )


def _is_record(found: type) -> bool:
    named = is_dataclass(found) or hasattr(found, "_fields")
    return named or issubclass(found, BaseEstimator)


def _plain_json(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is not plain JSON: {error}") from error


def _damaged(path: Path | str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200] or "unreadable"
    return f"{path} is no calibrator file, or is damaged ({reason})"
