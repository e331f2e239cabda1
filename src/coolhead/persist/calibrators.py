"""A fitted calibrator written and read."""

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from sklearn.utils.validation import check_is_fitted

from coolhead import __version__
from coolhead.extras import needs
from coolhead.files import atomic_path, check_metadata
from coolhead.persist.container import (
    FORMAT,
    FORMAT_VERSION,
    HEADER,
    damaged,
    read_bytes,
    read_header,
)
from coolhead.persist.trial import try_out
from coolhead.persist.types import own_types, refuse_foreign_types

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
    metadata : JSON values, e.g. what the calibrator was fitted on.
    trusted : full names of further types to write, such as your own calibrator, or the
        trees inside a `CalibratedClassifier`. Who reads the file has to name them, too.

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
    refuse_foreign_types(content, trusted, name, WRITE + (ALONE if wrapped else ""))
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

    Parameters
    ----------
    trusted : full names of further types to allow, such as those of your own members
        of an ensemble.

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
    content = read_bytes(path)
    read_header(path)
    from skops.io import loads

    own = refuse_foreign_types(content, trusted, str(path), READ)
    try:
        with needs(str(path)):
            calibrator = loads(content, trusted=own)
        found = f"{type(calibrator).__module__}.{type(calibrator).__qualname__}"
        known = found in trusted or found in own_types()
        wanted = known and hasattr(calibrator, "predict_proba")
        if wanted:
            try_out(calibrator)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        # A damaged or forged file can fail anywhere, with any error.
        raise ValueError(damaged(path, error)) from error
    if not wanted:
        raise ValueError(f"{path} holds a {found}; wanted a fitted calibrator")
    return calibrator
