"""Fitted calibrators as files that cannot run code: skops, never pickle.

A file is a zip archive: what skops writes, and `coolhead.json` with the version of
the format, the class and the metadata, so it can be read without loading anything.
"""

import io
import json
import os
from collections.abc import Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coolhead.files import atomic_path

FORMAT = "coolhead calibrator"
FORMAT_VERSION = 1
HEADER = "coolhead.json"
MAX_BYTES = 2**30
MAX_WIDTH = 2**24
OWN_ROOMS = (
    "coolhead.calibrators",
    "coolhead.baselines",
    "coolhead.new_domain",
    "coolhead.shift",
    "coolhead.numerics",
)


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
        "coolhead_version": version("coolhead"),
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
    from skops.io import loads

    path = Path(path)
    content = _read(path)
    own = _refuse_foreign_types(content, trusted, str(path))
    read_header(path)
    try:
        calibrator = loads(content, trusted=own)
        found = f"{type(calibrator).__module__}.{type(calibrator).__qualname__}"
        wanted = hasattr(calibrator, "predict_proba") and (
            found in trusted or _is_own(found)
        )
        if wanted:
            _try_out(calibrator)
    except Exception as error:
        # A damaged or forged file can fail anywhere, with any error.
        raise ValueError(_damaged(path, error)) from error
    if not wanted:
        raise ValueError(f"{path} holds a {found}; wanted a fitted calibrator")
    return calibrator


def _try_out(calibrator: Any) -> None:
    """Predict two rows, so that a forged file fails now and not in service."""
    if "logits" not in signature(calibrator.predict_proba).parameters:
        return
    check_is_fitted(calibrator)
    n_classes, n_features = calibrator.n_classes_, _width(calibrator)
    if not 2 <= n_classes <= MAX_WIDTH or not 0 <= n_features <= MAX_WIDTH:
        raise ValueError(f"{n_classes} classes and {n_features} features")
    logits = np.zeros((2, n_classes))
    logits[1, 0] = 2.0
    features = np.zeros((2, n_features)) if n_features else None
    with np.errstate(all="ignore"):
        probabilities = calibrator.predict_proba(logits, features)
    if probabilities.shape != logits.shape or not np.isfinite(probabilities).all():
        raise ValueError("it does not predict probabilities")


def _width(calibrator: Any) -> int:
    return getattr(calibrator, "n_features_", None) or 0


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
    except Exception as error:
        raise ValueError(_damaged(path, error)) from error
    if newer:
        writer = header.get("coolhead_version", "a newer version")
        raise ValueError(
            f"{path} has format {found!r} of coolhead {writer}; this coolhead reads up "
            f"to {FORMAT_VERSION}: install coolhead {writer} or newer"
        )
    return header


def _read(path: Path) -> bytes:
    """The bytes of a zip file of reasonable size."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; wanted a calibrator file")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; wanted a calibrator file")
    content = path.read_bytes()
    if not content:
        raise ValueError(f"{path} is empty (0 bytes); wanted a calibrator file")
    if content[:1] == b"\x80":
        raise ValueError(
            f"{path} looks like a pickle, which may run code when it is read and is "
            "never loaded; save with coolhead.save_calibrator"
        )
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ValueError(_damaged(path, error)) from error
    if size > MAX_BYTES:
        raise ValueError(f"{path} unpacks to {size} bytes; wanted at most {MAX_BYTES}")
    return content


def _refuse_foreign_types(
    content: bytes, trusted: Sequence[str], holder: str
) -> list[str]:
    """The types of coolhead in a skops file; any other is refused by name."""
    from skops.io import get_untrusted_types

    try:
        names = get_untrusted_types(data=content)
    except Exception as error:
        raise ValueError(_damaged(holder, error)) from error
    foreign = [name for name in names if not (name in trusted or _is_own(name))]
    if foreign:
        raise ValueError(
            f"{holder} holds types that are not coolhead's and are not loaded: "
            f"{', '.join(foreign)}"
        )
    return names


def _is_own(name: str) -> bool:
    """True for a calibrator or a record defined in a file of one of `OWN_ROOMS`.

    A name that such a file merely imports is not its own, or a forged file could
    reach anything through us.
    """
    place, _, wanted = name.rpartition(".")
    if place not in _own_modules():
        return False
    found = vars(import_module(place)).get(wanted)
    if not isinstance(found, type) or found.__module__ != place:
        return False
    record = is_dataclass(found) or hasattr(found, "_fields")
    return record or issubclass(found, BaseEstimator)


@cache
def _own_modules() -> frozenset[str]:
    """Full names of all files of the rooms a calibrator may be made of."""
    return frozenset(
        found.name
        for room in OWN_ROOMS
        for found in walk_packages(import_module(room).__path__, f"{room}.")
    )


def _plain_json(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is not plain JSON: {error}") from error


def _damaged(path: Path | str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200] or "unreadable"
    return f"{path} is no calibrator file, or is damaged ({reason})"
