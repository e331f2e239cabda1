"""A calibrator applied to a file of predictions, from block to block."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coolhead.calibrators.base import PredictionDetails
from coolhead.io.files import check_output
from coolhead.io.predictions import PredictionFile
from coolhead.io.reading import Block, stream_blocks
from coolhead.io.write import ENDINGS, Written, write_blocks
from coolhead.monitor import DriftMonitor
from coolhead.numerics.classes import column_order, name_labels


def apply_calibrator(
    calibrator: Any,
    opened: PredictionFile,
    out: str | os.PathLike,
    *,
    input: str = "logits",
    monitor: DriftMonitor | None = None,
    progress: Callable[[int], None] | None = None,
    n_rows: int | None = None,
) -> int:
    """Write the calibrated probabilities of a file in constant memory.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    opened : PredictionFile
        Opened by `open_predictions`.
    out : str or PathLike
        A .parquet, .arrow or .csv table, or .npy for the probabilities alone.
    input : {"logits", "probabilities"}, default="logits"
        Content of the file.
    monitor : DriftMonitor, default=None
        Gets every block, with its labels if the file has them.
    progress : callable, default=None
        Called with the number of rows of every block that is done.
    n_rows : int, default=None
        Rows per block.

    Returns
    -------
    int
        Number of rows written.
    """
    check_output(out, inputs=[opened.path], endings=ENDINGS)
    check_columns(calibrator, opened)
    done = 0

    def blocks() -> Iterator[Written]:
        nonlocal done
        for block in stream_blocks(opened, scores=input, n_rows=n_rows):
            details = details_of(calibrator, block, opened)
            if monitor is not None:
                monitor_block(monitor, details, block)
            yield _written(details, block, opened.class_names)
            done += len(block)
            if progress is not None:
                progress(len(block))

    write_blocks(blocks(), out, opened.class_names)
    return done


def monitor_blocks(
    calibrator: Any, opened: PredictionFile, monitor: DriftMonitor, *, input: str
) -> None:
    """Count the rows of a file in constant memory.

    Parameters
    ----------
    calibrator : fitted.
    opened : by `open_predictions`.
    monitor : counts every block, labels included where the file has them.
    input : "logits" or "probabilities".
    """
    for block in stream_blocks(opened, scores=input):
        monitor_block(monitor, details_of(calibrator, block, opened), block)


def monitor_block(
    monitor: DriftMonitor, details: PredictionDetails, block: Block
) -> None:
    """Count a block, with its labels if it has some."""
    labels = block.labels
    if labels is not None:
        labels = name_labels(labels, monitor.classes)
    monitor.update(details, labels, features=block.features)


def check_columns(calibrator: Any, opened: PredictionFile) -> None:
    """Refuse a file that lacks what the calibrator needs, before it is read."""
    scores = opened.widths.get("logits", opened.widths.get("probabilities"))
    if scores is not None and scores != calibrator.n_classes_:
        raise ValueError(
            f"{opened.path} has scores of {scores} classes; wanted "
            f"{calibrator.n_classes_}, one column per class, as in fit"
        )
    names = getattr(calibrator, "class_names_", None)
    if names is not None and opened.class_names is not None:
        order = column_order(opened.class_names, names, len(names))
        if order is not None:
            raise ValueError(
                f"{opened.path} was opened with its columns in another order than the "
                "calibrator's; wanted open_predictions(path, calibrator.class_names_)"
            )
    if not calibrator.uses_features:
        return
    found = opened.widths.get("features")
    if found is None:
        raise ValueError(
            f"{opened.path} has no features, which this {type(calibrator).__name__} "
            f"needs (columns found: {', '.join(opened.widths)})"
        )
    wanted = calibrator.n_features_
    if found != wanted:
        raise ValueError(
            f"{opened.path} has {found} features per row; wanted {wanted}, as in fit"
        )


def details_of(
    calibrator: Any, block: Block, opened: PredictionFile
) -> PredictionDetails:
    """Return the details of a block; errors name the file."""
    try:
        return calibrator.details(block.logits, block.features)
    except ValueError as error:
        raise ValueError(f"{opened.path}: {error}") from error


def _written(
    details: PredictionDetails, block: Block, class_names: tuple[str, ...] | None
) -> Written:
    """Return the columns of the result, with names of classes if they are known."""
    columns: dict[str, np.ndarray | None] = {
        "predicted": details.probabilities.argmax(axis=1),
        "confidence": details.probabilities.max(axis=1),
        "temperature": details.temperature,
        "covered": details.covered,
        "id": block.ids,
        "label": block.labels,
        "domain": block.domains,
    }
    for name in ("predicted", "label"):
        if columns[name] is not None:
            columns[name] = name_labels(columns[name], class_names)
    own = {name: array for name, array in columns.items() if array is not None}
    kept = block.kept or {}
    for name in kept:
        if name in own or name.startswith("prob"):
            raise ValueError(
                f"the column {name!r} cannot be kept: the result has one of that name"
            )
    return Written(details.probabilities, own | kept)
