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
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coolhead import (
    __version__,
    baselines,
    calibrators,
    classifier,
    new_domain,
    shift,
)
from coolhead.calibrators.offset import OffsetTemperature
from coolhead.extras import needs
from coolhead.io.files import atomic_path, check_input, check_metadata
from coolhead.numerics.classes import check_names

FORMAT = "coolhead calibrator"
FORMAT_VERSION = 2
HEADER = "coolhead.json"
SCHEMA = "schema.json"
MAX_BYTES = 2**30
# Beyond this size, real numbers do not pack into a hundredth of their bytes.
SMALL_BYTES, MAX_RATIO = 2**24, 100
MAX_SCHEMA_BYTES = 2**26


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """Return what the file says about itself: versions, class and metadata.

    A calibrator written by skops directly has no header and counts as format 0.
    """
    return _read(Path(path))[1]


def _read(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes and the header of a file of reasonable size."""
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
    header: dict[str, Any] = {"format": FORMAT, "format_version": 0, "metadata": {}}
    with _or_damaged(path), ZipFile(io.BytesIO(content)) as archive:
        size = _unpacked_size(archive)
        most = min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * len(content)))
        if size > most:
            raise ValueError(f"it unpacks to {size} bytes; wanted at most {most}")
        if HEADER in archive.namelist():
            header = dict(json.loads(archive.read(HEADER)))
            header["metadata"] = dict(header["metadata"])
        elif SCHEMA not in archive.namelist():
            raise ValueError(f"it holds no {SCHEMA}")
        found = header["format_version"]
        newer = header["format"] != FORMAT or found > FORMAT_VERSION
        older = HEADER in archive.namelist() and found < FORMAT_VERSION
    writer = header.get("coolhead_version", "a newer version")
    if newer:
        raise ValueError(
            f"{path} has format {found!r} of coolhead {writer}; this coolhead reads up "
            f"to {FORMAT_VERSION}: install coolhead {writer} or newer"
        )
    if older:
        raise ValueError(
            f"{path} was written by coolhead {writer}, whose calibrators are others "
            "than today's; fit again with coolhead fit PREDICTIONS --out "
            f"{path.name}, or with save_calibrator"
        )
    return content, header


def _unpacked_size(archive: ZipFile) -> int:
    """Return the bytes of all members, each as often as skops reads it."""
    sizes = {member.filename: member.file_size for member in archive.infolist()}
    if len(sizes) != len(archive.infolist()):
        raise ValueError("a member is there twice")
    if sizes.get(SCHEMA, 0) > MAX_SCHEMA_BYTES:
        raise ValueError(f"{SCHEMA} takes {sizes[SCHEMA]} bytes")
    if SCHEMA not in sizes:
        return sum(sizes.values())
    nodes = [n for n in _nodes(json.loads(archive.read(SCHEMA))) if "file" in n]
    # skops builds nodes of one id once.
    read = Counter({n.get("__id__") or id(n): str(n["file"]) for n in nodes}.values())
    return sum(max(1, read[name]) * size for name, size in sizes.items())


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all dictionaries of a JSON value."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


@contextmanager
def _or_damaged(holder: Path | str) -> Iterator[None]:
    """Raise any error as one of a damaged file: a forged one can fail anywhere."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or "unreadable"
        raise ValueError(
            f"{holder} is no calibrator file, or is damaged ({reason})"
        ) from error


# Types that hold numbers and settings in plain Python: of an imputer, of networks, of
# searches and of votes. Trees are not among them: a forged one reads anywhere.
HARMLESS = (
    "numpy.dtype",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._bunch.Bunch",
)
# Written without being named: their parsers crash on damaged trees, which harms who
# reads a file and not who writes it.
PACKAGES = ("sklearn", "lightgbm", "xgboost", "catboost")
# Types of others that objects of these packages hold.
BESIDE = {"collections.OrderedDict": "lightgbm", "builtins.object": "sklearn"}
OWN_PACKAGES = ("calibrators", "classifier", "baselines", "new_domain", "shift")
OWN_PACKAGES += ("numerics",)


def refuse_foreign_types(
    content: bytes, trusted: Sequence[str], holder: str, remedy: str
) -> list[str]:
    """Return the types of coolhead in a skops file; any other is refused by name.

    The text `remedy` says what to do, with the names in place of {trusted}.
    """
    from skops.io import get_untrusted_types

    with _or_damaged(holder):
        names = get_untrusted_types(data=content)
    known = {*trusted, *HARMLESS, *own_types()}
    packages = {name: BESIDE.get(name, name.partition(".")[0]) for name in names}
    foreign = [name for name in names if not {name, packages[name]} & known]
    if foreign:
        asked = {packages[n] if packages[n] in PACKAGES else n for n in foreign}
        raise ValueError(
            f"{holder} holds types that are not coolhead's and are not loaded: "
            f"{', '.join(foreign)}; {remedy.format(trusted=sorted(asked))}"
        )
    return names


@cache
def own_types() -> frozenset[str]:
    """Return full names of the calibrators and records defined in `OWN_PACKAGES`.

    Names that a module merely imports do not count, or a forged file could reach
    anything through them.
    """
    for package in (baselines, calibrators, classifier, new_domain, shift):
        # Each name is imported on first use, and its file with all it is made of.
        for name in package.__all__:
            getattr(package, name)
    own = tuple(f"coolhead.{package}." for package in OWN_PACKAGES)
    return frozenset(
        f"{module}.{name}"
        for module, content in list(sys.modules.items())
        if module.startswith(own)
        for name, found in vars(content).items()
        if isinstance(found, type) and found.__module__ == module
        if is_dataclass(found)
        or hasattr(found, "_fields")
        or issubclass(found, BaseEstimator)
    )


def with_present_names(content: bytes) -> bytes:
    """Return a file whose types have the modules that define them in this version.

    Earlier versions divided the package into other modules. No two classes have the
    same name, so the name of a class shows its module.
    """
    with ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema, moved = json.loads(members[SCHEMA]), False
    present = {name.rpartition(".")[2]: name for name in own_types()}
    for node in _nodes(schema):
        module, name = str(node.get("__module__")), node.get("__class__")
        if module.startswith("coolhead.") and name in present:
            node["__module__"] = present[name].rpartition(".")[0]
            moved = moved or node["__module__"] != module
    if not moved:
        return content
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", compression=ZIP_DEFLATED) as archive:
        for name, data in (members | {SCHEMA: json.dumps(schema).encode()}).items():
            archive.writestr(name, data)
    return buffer.getvalue()


MAX_WIDTH = 2**24


def predicts_from_logits(calibrator: Any) -> bool:
    """Return False for a `CalibratedClassifier`, which predicts from rows of X."""
    return hasattr(calibrator, "uses_features")


def try_out(calibrator: Any) -> None:
    """Predict two rows, so that a forged file fails now and not in service."""
    check_is_fitted(calibrator)
    parts = list(_parts(calibrator))
    for part in parts:
        for name, value in vars(part).items():
            if name.endswith(("temperature_", "temperatures_")):
                _refuse_impossible(value, name)
    if not predicts_from_logits(calibrator):
        return
    widths = [getattr(part, "n_features_", None) or 0 for part in parts]
    n_classes, n_features = calibrator.n_classes_, max(widths)
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


def _refuse_impossible(temperature: Any, name: str) -> None:
    array = np.asarray(temperature, float)
    if not (np.isfinite(array) & (array > 0)).all():
        raise ValueError(f"{name} is not positive and finite everywhere")


def _parts(value: Any) -> Iterator[Any]:
    """Yield a calibrator and all estimators that it is made of."""
    if isinstance(value, BaseEstimator):
        yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)


WRITE = "give trusted={trusted} to save_calibrator, and to load_calibrator again"
ALONE = ", or save calibrator_ alone and the estimator by its own means"
READ = (
    "give trusted={trusted} to load_calibrator if you know who wrote the file; "
    "coolhead --trust python:MODULE:CLASS does on the command line"
)


def save_calibrator(
    calibrator: Any,
    path: str | os.PathLike,
    *,
    metadata: dict[str, Any] | None = None,
    trusted: Sequence[str] = (),
) -> None:
    """Write a fitted calibrator; the file appears whole or not at all.

    Parameters
    ----------
    calibrator : Calibrator or CalibratedClassifier
        Fitted.
    path : str or PathLike
        The file to write.
    metadata : dict, default=None
        JSON values, such as the origin of the calibration data.
    trusted : sequence of str, default=()
        Full names of further types to write, such as your own calibrator, or names of
        packages. Estimators of scikit-learn, LightGBM, XGBoost and CatBoost are written
        without; to read their trees, `load_calibrator` needs the package.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ch.save_calibrator(cal, f"{folder}/cal.skops", metadata={"camera": "north"})
    ...
    """
    from skops.io import dumps

    check_is_fitted(calibrator)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "coolhead_version": __version__,
        "class": type(calibrator).__name__,
        "metadata": check_metadata(metadata),
    }
    content = dumps(calibrator, compression=ZIP_DEFLATED)
    name = f"this {type(calibrator).__name__}"
    wrapped = hasattr(calibrator, "calibrator_") and hasattr(calibrator, "estimator_")
    remedy = WRITE + (ALONE if wrapped else "")
    refuse_foreign_types(content, (*trusted, *PACKAGES), name, remedy)
    buffer = io.BytesIO(content)
    with ZipFile(buffer, "a", compression=ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1, ensure_ascii=False))
    with atomic_path(path) as temporary:
        temporary.write_bytes(buffer.getvalue())


def load_calibrator(path: str | os.PathLike, *, trusted: Sequence[str] = ()) -> Any:
    """Read a calibrator; nothing in the file is executed.

    Types other than coolhead's own calibrators and those that skops considers safe
    (NumPy, SciPy and scikit-learn) are refused by name before anything is built.

    Parameters
    ----------
    path : str or PathLike
        A file written by `save_calibrator`.
    trusted : sequence of str, default=()
        Full names of further types to allow, such as those of your own members of an
        ensemble, or names of packages, such as "lightgbm" for its boosters.

    Returns
    -------
    Calibrator or CalibratedClassifier
        As it was saved.

    Examples
    --------
    >>> import coolhead as ch
    >>> import tempfile
    >>> data = ch.datasets.simulate_domains([2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cal = ch.TemperatureScaling().fit(data.logits, data.labels)
    ...     ch.save_calibrator(cal, f"{folder}/cal.skops")
    ...     again = ch.load_calibrator(f"{folder}/cal.skops")
    ...
    >>> again.temperature_ == cal.temperature_
    True
    """
    path = Path(path)
    content, header = _read(path)
    from skops.io import loads

    with _or_damaged(path):
        content = with_present_names(content)
    own = refuse_foreign_types(content, trusted, str(path), READ)
    with _or_damaged(path):
        with needs(str(path)):
            calibrator = loads(content, trusted=own)
        found = f"{type(calibrator).__module__}.{type(calibrator).__qualname__}"
        known = found in trusted or found in own_types()
        wanted = known and hasattr(calibrator, "predict_proba")
        if wanted:
            try_out(calibrator)
    if not wanted:
        raise ValueError(f"{path} holds a {found}; wanted a fitted calibrator")
    _recall_classes(calibrator, header["metadata"].get("class_names"))
    return calibrator


def _recall_classes(calibrator: Any, names: Any) -> None:
    """Name the classes of a file by version 0.2, which kept them in the metadata.

    Metadata is free, so what cannot be the names of the columns is left alone.
    """
    inner = calibrator.base if isinstance(calibrator, OffsetTemperature) else calibrator
    if getattr(inner, "class_names_", None) is not None or not isinstance(names, list):
        return
    try:
        found = check_names(names, "class_names")
    except ValueError:
        return
    if len(found) == getattr(inner, "n_classes_", None):
        inner.class_names_ = found
